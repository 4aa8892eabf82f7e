# SPDX-License-Identifier: Apache-2.0
"""What was above each limit of the run, one by one, as text; also of runs that kept only a summary.

While the agent measures, it lists the activations above each limit, for each thread's last field, until a list is full.
The lists do not hold activations that never ran.
"""

from collections.abc import Iterator
from pathlib import Path

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Level, Record, Series

SUFFIX = ".exceedances.csv"
OPTIONS: dict[str, str] = {}
NEEDS = "a run with --limit"
HEADER = "limit_ns,thread,cpu,activation,due_ns,latency_ns\n"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the lists, limit after limit and thread after thread; due times count from the origin of the record."""
    lists = list(_lists(analysis.record))
    if not lists:
        raise UserError("this run was given no limit before it began (rtproof run --limit), so nothing was listed")
    with _columns.new_file(path) as file:
        file.write(_columns.mark_lines(analysis.record) + HEADER)
        for series, level in lists:
            file.write(_lines(series, level))
    written = sum(level.index.size for _, level in lists)
    limits = ", ".join(units.format_duration(value) for value in dict.fromkeys(level.value for _, level in lists))
    return f"{path}: {written} activations above {limits}{_absent(lists)}{_columns.mark_note(analysis)}"


def _lists(record: Record) -> Iterator[tuple[Series, Level]]:
    """The lists of all threads, in the order in which the user gave the limits."""
    levels = [(series, one) for series in record.series for one in record.levels.get(series.id, ()) if not one.learned]
    return iter(sorted(levels, key=lambda pair: pair[1].number))


def _lines(series: Series, level: Level) -> str:
    rows = zip(*(column.tolist() for column in (level.index, level.due_ns, level.above)), strict=True)
    return "".join([f"{level.value},{series.thread},{series.cpu},{at},{due},{value}\n" for at, due, value in rows])


def _absent(lists: list[tuple[Series, Level]]) -> str:
    """A note on activations above a limit that no list holds, because the list was full or they never ran."""
    more = sum(int(level.ran.sum()) - level.index.size for _, level in lists)
    missed = sum(int(level.missed.sum()) for _, level in lists)
    full = f"; {more} more were above, which full lists do not hold" if more else ""
    return full + (f"; {missed} that never ran were above as well, counted from their due times" if missed else "")
