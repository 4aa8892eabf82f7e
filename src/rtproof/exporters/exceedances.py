# SPDX-License-Identifier: Apache-2.0
"""What was above each limit of the run, one by one, as text; also of runs that kept only a summary.

While the agent measures, it lists the activations above each limit, for each thread's last field, until a list is full.
The lists do not hold activations that never ran.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Level, Series

SUFFIX = ".exceedances.csv"
OPTIONS: dict[str, str] = {}
NEEDS = "a run with --limit"
HEADER = "limit_ns,thread,cpu,activation,due_ns,latency_ns"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the lists, limit after limit and thread after thread; due times count from the origin of the record."""
    every = [(series, one) for series in analysis.record.series for one in analysis.record.levels.get(series.id, ())]
    lists = sorted((each for each in every if not each[1].learned), key=lambda each: each[1].number)
    if not lists:
        raise UserError("this run was given no limit before it began (rtproof run --limit), so nothing was listed")
    written = sum(level.index.size for _, level in lists)
    limits = ", ".join(units.format_duration(value) for value in dict.fromkeys(level.value for _, level in lists))
    told = f"{written} activations above {limits}"
    # A list may have been full. Those that never ran are in none.
    if more := sum(int(level.ran.sum()) for _, level in lists) - written:
        told += f"; {more} more were above, which full lists do not hold"
    if missed := sum(int(level.missed.sum()) for _, level in lists):
        told += f"; {missed} that never ran were above as well, counted from their due times"
    return _columns.write_lines(analysis, path, _lines(lists), told)


def _lines(lists: Sequence[tuple[Series, Level]]) -> Iterator[str]:
    yield HEADER
    for series, level in lists:
        rows = zip(level.index.tolist(), level.due_ns.tolist(), level.above.tolist(), strict=True)
        yield from (f"{level.value},{series.thread},{series.cpu},{at},{due},{value}" for at, due, value in rows)
