# SPDX-License-Identifier: Apache-2.0
"""The lines that cyclictest prints at its end, one for each thread, for scripts that read them.

Figures are whole microseconds, or nanoseconds as with its option -N; "Act" is the last value. (Format: rt-tests,
src/cyclictest/cyclictest.c, print_stat.)
"""

from collections.abc import Iterator
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import fact_number
from rtproof.summary.summary_model import Summary

SUFFIX = ".cyclictest.txt"
OPTIONS = {"unit": "us (default) or ns, as with cyclictest -N"}
UNITS_NS = {"us": 1_000, "ns": 1}


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the observed view, which is the only one that cyclictest knows."""
    _columns.refuse_without_threads(analysis)
    _columns.require_samples(analysis.record, "the last value of each thread")
    unit = options.get("unit", "us")
    if unit not in UNITS_NS:
        raise UserError(f"the option unit={unit} is none of: {', '.join(UNITS_NS)}")
    with _columns.new_file(path) as file:
        file.write(_columns.mark_lines(analysis.record))
        file.writelines(f"{line}\n" for line in _lines(analysis, UNITS_NS[unit]))
    return f"{path}: {len(analysis.summaries)} threads{_columns.mark_note(analysis)}"


def _lines(analysis: Analysis, unit_ns: int) -> Iterator[str]:
    for number, summary in enumerate(analysis.summaries):
        thread, seen = summary.series.thread, summary.observed
        last_ns = _last_value(analysis.record, summary)
        mean_ns = 0 if seen.mean is None else seen.mean
        low, last, mean, high = (int(each / unit_ns) for each in (seen.min, last_ns, mean_ns, seen.max))
        tid, priority = (_told(analysis.record, key, thread) for key in ("tid", "priority"))
        yield (
            f"T:{number:2} ({tid:5}) P:{priority:2} I:{summary.series.period_ns // 1_000} C:{seen.count:7} "
            f"Min:{low:7} Act:{last:5} Avg:{mean:5} Max:{high:8}"
        )


def _told(record: Record, key: str, thread: int) -> int:
    """A number that the agent told of a thread; 0 if it did not, as for the priority of a thread without one."""
    return fact_number(record, key, Moment.START, thread) or 0


def _last_value(record: Record, summary: Summary) -> int:
    last = 0
    for block in record.blocks(summary.series.id):
        last = int(block.values[-1])
    return last
