# SPDX-License-Identifier: Apache-2.0
"""The histogram text that cyclictest of rt-tests prints with -h, for scripts that read it.

Latencies are whole microseconds, rounded towards zero as cyclictest does. Latencies beyond the scale are counted as
overflows, with the number of each one's activation. Where activations have several values, the file holds the field
that a limit judges: the whole reaction.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.summary.summary_model import Moments, Summary

SUFFIX = ".hist.txt"
HOLDS_COUNTS = True
OPTIONS = {"bins": "number of bins of 1 us, from 0 (default 400)"}
US = 1_000


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the observed view, which is the only one that cyclictest knows."""
    _columns.refuse_without_threads(analysis)
    bins = _columns.bins_within(analysis, options, "bins", 400, (0, US))
    parts = [summary.observed_counts.fixed_bins(0, US, bins) for summary in analysis.summaries]
    rows = np.array([part.counts for part in parts])
    early = sum(part.below for part in parts)
    rows[:, 0] += [part.below for part in parts]
    overflows = [part.above for part in parts]
    with _columns.new_file(path) as file:
        file.write("# Histogram\n")
        file.writelines(
            f"{us:06} " + "\t".join(f"{n:06}" for n in row) + "\n" for us, row in enumerate(rows.T.tolist())
        )
        file.writelines(_footer([int(row.sum()) for row in rows], [s.observed for s in analysis.summaries], overflows))
        for number, summary in enumerate(analysis.summaries):
            file.write(_overflow_line(analysis.record, number, summary, bins, overflows[number]))
        file.write(_columns.mark_lines(analysis.record) + "\n")
    return f"{path}: {bins} bins of 1 us{_losses(analysis, sum(overflows), early)}"


def _footer(totals: list[int], moments: list[Moments], overflows: list[int]) -> Iterator[str]:
    yield _numbers("Total", totals, 9)
    yield _numbers("Min Latencies", [_us(part.min) for part in moments])
    yield _numbers("Avg Latencies", [_us(part.sum // part.count) if part.count else 0 for part in moments])
    yield _numbers("Max Latencies", [_us(part.max) for part in moments])
    yield _numbers("Histogram Overflows", overflows)
    yield "# Histogram Overflow at cycle number:\n"


def _numbers(name: str, numbers: list[int], width: int = 5) -> str:
    return f"# {name}:" + "".join(f" {number:0{width}}" for number in numbers) + "\n"


def _us(value_ns: int) -> int:
    return max(value_ns, 0) // US


def _overflow_line(record: Record, number: int, summary: Summary, bins: int, overflows: int) -> str:
    """The line on the overflows of a thread. Like cyclictest, it names at most as many cycles as there are bins.

    The line says how many overflows it does not name.
    """
    cycles: list[int] = []
    if overflows and summary.series.has_samples:
        cycles = _cycles_above(record, summary.series.id, bins * US, min(bins, overflows))
    others = f" # {overflows - len(cycles):05} others" if len(cycles) < overflows else ""
    return f"# Thread {number}:" + "".join(f" {cycle:05}" for cycle in cycles) + others + "\n"


def _cycles_above(record: Record, series: int, end_ns: int, most: int) -> list[int]:
    """Numbers of the first activations beyond the scale, at most ``most``, counted from 0 over those that ran."""
    found: list[int] = []
    ran = 0
    for block in record.blocks(series):
        found += (np.flatnonzero(block.values >= end_ns) + ran).tolist()
        ran += block.values.size
        if len(found) >= most:
            break
    return found[:most]


def _losses(analysis: Analysis, overflows: int, early: int) -> str:
    notes = [f"{overflows} latencies are beyond the scale"] * bool(overflows)
    notes += [f"{early} wake-ups before their due time stand at 0"] * bool(early)
    notes += [
        f"{analysis.pooled.never_ran} missed activations are not in it, because the format has no place for them"
    ] * bool(analysis.pooled.never_ran)
    if _columns.has_fields(analysis.record):
        notes.append(f"of several fields it holds {_columns.plain(analysis.pooled.series.field)}")
    return "".join(f"; {note}" for note in notes) + _columns.summary_note(analysis) + _columns.mark_note(analysis)
