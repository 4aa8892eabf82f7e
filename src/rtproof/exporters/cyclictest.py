# SPDX-License-Identifier: Apache-2.0
"""The histogram text that cyclictest of rt-tests prints with -h, for scripts that read it.

Latencies are whole microseconds or nanoseconds, rounded towards zero as cyclictest does. Latencies beyond the
scale are counted as overflows, with the number of each one's activation. Where activations have several values, the
file holds the field that a limit judges: the whole reaction.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.summary.summary_model import Moments

SUFFIX = ".hist.txt"
HOLDS_COUNTS = True
OPTIONS = {
    "bins": "number of bins of one unit, from 0 (default 400)",
    "unit": _columns.TIME_UNIT_HELP,
    "total": "1: a column for all threads together, as with cyclictest -H",
    "smi": _columns.SMI_HELP,
}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the observed view, which is the only one that cyclictest knows."""
    _columns.refuse_without_threads(analysis)
    unit_ns = _columns.time_unit_ns(options)
    bins = _columns.bins_within(analysis, options, "bins", 400, (0, unit_ns))
    parts = [summary.observed_counts.fixed_bins(0, unit_ns, bins) for summary in analysis.summaries]
    rows = np.array([part.counts for part in parts])
    early = sum(part.below for part in parts)
    rows[:, 0] += [part.below for part in parts]
    overflows = [part.above for part in parts]
    smis = _columns.smis_of(analysis, options)
    total = _columns.choice(options, "total", _columns.NO_YES) == "1" and len(parts) > 1
    table = np.vstack([rows, rows.sum(0)]) if total else rows
    with _columns.new_file(path) as file:
        file.write("# Histogram\n")
        file.writelines(
            f"{bin_:06} " + "\t".join(f"{n:06}" for n in row) + "\n" for bin_, row in enumerate(table.T.tolist())
        )
        moments = [summary.observed for summary in analysis.summaries]
        file.writelines(_footer(rows.sum(1).tolist(), moments, overflows, unit_ns, total))
        for number, (summary, beyond) in enumerate(zip(analysis.summaries, overflows, strict=True)):
            # Like cyclictest, a line names at most as many cycles as there are bins.
            known, most = beyond and summary.series.has_samples, min(bins, beyond)
            cycles = _cycles_above(analysis.record, summary.series.id, bins * unit_ns, most) if known else []
            others = f" # {beyond - len(cycles):05} others" if len(cycles) < beyond else ""
            file.write(f"# Thread {number}:{''.join(f' {cycle:05}' for cycle in cycles)}{others}\n")
        if smis:
            file.write(_numbers("SMIs", smis))
        file.write(_columns.mark_lines(analysis.run_record) + "\n")
    return f"{path}: {bins} bins of 1 {options.get('unit', 'us')}{_losses(analysis, sum(overflows), early)}"


def _footer(
    totals: list[int], moments: list[Moments], overflows: list[int], unit_ns: int, total: bool
) -> Iterator[str]:
    """total: with the figures of all threads together, where cyclictest has them."""
    lows, means, highs = (
        [max(value, 0) // unit_ns for value in values]
        for values in (
            [part.min for part in moments],
            [part.sum // part.count if part.count else 0 for part in moments],
            [part.max for part in moments],
        )
    )
    yield _numbers("Total", totals + [sum(totals)] * total, 9)
    yield _numbers("Min Latencies", lows)
    yield _numbers("Avg Latencies", means)
    yield _numbers("Max Latencies", highs + [max(highs)] * total)
    yield _numbers("Histogram Overflows", overflows + [sum(overflows)] * total)
    yield "# Histogram Overflow at cycle number:\n"


def _numbers(name: str, numbers: list[int], width: int = 5) -> str:
    return f"# {name}:" + "".join(f" {number:0{width}}" for number in numbers) + "\n"


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
    if len(analysis.every) > len(analysis.summaries):
        notes.append(f"of several fields it holds {_columns.plain(analysis.pooled.series.field)}")
    return "".join(f"; {note}" for note in notes) + _columns.summary_note(analysis) + _columns.mark_note(analysis)
