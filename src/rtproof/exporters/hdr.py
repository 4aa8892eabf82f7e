# SPDX-License-Identifier: Apache-2.0
"""HdrHistogram's interval log (V2, compressed), a tagged histogram for each thread, for HdrHistogram's many readers.

Where activations have several values, there is a histogram for each field of each thread.

The bytes are those of HdrHistogram's own AbstractHistogram.encodeIntoByteBuffer and HistogramLogWriter, log format 1.3.
"""

import base64
import struct
import zlib
from pathlib import Path

import numpy as np

from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record import encoding
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts
from rtproof.summary.summary_model import Summary

SUFFIX = ".hlog"
HOLDS_COUNTS = True
OPTIONS = {"digits": "decimal digits kept of each value, 1 to 5 (default 3)", "view": _columns.VIEW_HELP}

COOKIE = 0x1C849303 | 0x10
COMPRESSED_COOKIE = 0x1C849304 | 0x10
HEADER = struct.Struct(">iiiiqqd")
HEADING = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write one interval per thread, as long as the run. Values are in ns, but Interval_Max is in milliseconds."""
    digits = _columns.whole_number(options, "digits", 3, most=5)
    view = _columns.choice(options, "view", _columns.VIEWS)
    if analysis.imported and analysis.imported.overflow:
        raise UserError(
            f"nothing tells where {analysis.imported.overflow:,} values beyond its scale lie, and this format needs it"
        )
    columns = _columns.columns_of(analysis)
    start_s = analysis.started_ns / 1e9
    with _columns.new_file(path) as file:
        file.write(f"#[Histogram log format version 1.3]\n#[StartTime: {start_s:.3f} (seconds since epoch)]\n")
        file.write(f"#[BaseTime: {start_s:.3f} (seconds since epoch)]\n")
        file.writelines(f"#[{words}]\n" for words in _columns.marks(analysis.run_record).values())
        file.write(f"{HEADING}\n")
        for name, summary in columns:
            file.write(_line(name, summary, view, digits))
    counts = [_columns.counts_of(summary, view) for _, summary in columns]
    negative = sum(int(each.n[_middle(each) < 0].sum()) for each in counts)
    clamp = f"; {negative} values below 0 stand at 0, because the format has no negative values" if negative else ""
    note = clamp + _columns.summary_note(analysis) + _columns.mark_note(analysis)
    return f"{path}: {len(columns)} histograms, {view} view, {digits} digits{note}"


def _middle(counts: Counts) -> Int64Array:
    return counts.lo + (counts.hi - counts.lo) // 2


def _line(name: str, summary: Summary, view: str, digits: int) -> str:
    counts = _columns.counts_of(summary, view)
    values = np.maximum(_middle(counts), 0)
    largest_ms = int(values.max(initial=0)) / 1e6
    text = base64.b64encode(encode(values, counts.n, digits)).decode()
    return f"Tag={name},0.000,{summary.span_ns / 1e9:.3f},{largest_ms:.3f},{text}\n"


def encode(values: Int64Array, counts: Int64Array, digits: int) -> bytes:
    """The bytes of a compressed V2 histogram. values: none below 0; counts: of equal length."""
    # The power of two that is half of a bucket's slots. All slots together resolve 2 * 10^digits in single units.
    half_bits = int(2 * 10**digits - 1).bit_length() - 1
    slots = np.zeros(int(_slot(values, half_bits).max(initial=0)) + 1, np.int64)
    np.add.at(slots, _slot(values, half_bits), counts)
    payload = encoding.leb128_encode(encoding.zigzags(_run_lengths(slots)).view(np.uint64))
    largest = max(int(values.max(initial=0)), 2 << half_bits)
    plain = HEADER.pack(COOKIE, len(payload), 0, digits, 1, largest, 1.0) + payload
    compressed = zlib.compress(plain)
    return struct.pack(">ii", COMPRESSED_COOKIE, len(compressed)) + compressed


def _slot(values: Int64Array, half_bits: int) -> Int64Array:
    """Index in the flat array of counts: each power of two above the first bucket has 2^half_bits slots."""
    # The bit length of each value, in two halves because a double cannot hold 63 bits.
    high, low = values >> 31, values & 0x7FFFFFFF
    bits = np.asarray(np.where(high > 0, np.frexp(high)[1] + 31, np.frexp(low)[1]), np.int64)
    bucket = np.maximum(bits - (half_bits + 1), 0)
    return (bucket << half_bits) + (values >> bucket)


def _run_lengths(slots: Int64Array) -> Int64Array:
    """The counts, with each run of empty slots replaced by its negative length."""
    used = np.flatnonzero(slots)
    gaps = np.diff(used, prepend=-1) - 1
    pairs = np.stack((-gaps, slots[used]), axis=1)
    return np.asarray(pairs[np.stack((gaps > 0, np.ones(used.size, bool)), axis=1)])
