# SPDX-License-Identifier: Apache-2.0
"""The largest latencies with their times, threads and CPUs, and which of them happened together."""

from dataclasses import dataclass

from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import instant, quantity
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.streams import latency_unit, streams

SHOWN = 20
MORE = 100
COLUMNS = ("date and time (UTC)", "thread", "CPU", "activation", "together")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Outlier:
    """One activation among the largest: late from ``due_ns`` until ``due_ns + value_ns``."""

    thread: str
    cpu: str
    index: int
    due_ns: int
    value_ns: int

    @property
    def ran_ns(self) -> int:
        return self.due_ns + self.value_ns


def render(analysis: Analysis) -> list[Block]:
    found = outliers(analysis)
    if not found:
        return []
    groups, unit = together(found), latency_unit(analysis)
    origin_ns = analysis.record.begin.origin_realtime_ns
    rows = tuple(
        (str(rank), unit.show(each.value_ns), *_where_and_when(each, origin_ns), groups.get(each, ""))
        for rank, each in enumerate(found, 1)
    )
    tables = [_table(_caption(analysis), rows[:SHOWN], unit, folded=False)]
    if rows[SHOWN:]:
        tables.append(_table("Those that follow", rows[SHOWN:], unit, folded=True))
    return [*tables, Text((_explained(analysis, groups),))] if len(found) > 1 else [*tables]


def _table(caption: str, rows: tuple[tuple[str, ...], ...], unit: figures.Unit, folded: bool) -> Table:
    header = ("rank", *figures.headings(unit, "latency"), "due at [s]", *COLUMNS)
    return Table(caption, header, rows, (0, 1, 2, 6), folded=folded)


def _where_and_when(each: Outlier, origin_ns: int) -> tuple[str, ...]:
    due = f"{each.due_ns / figures.NS_PER_S:,.6f}"
    return due, instant(origin_ns, each.due_ns), each.thread, each.cpu, figures.count(each.index)


def outliers(analysis: Analysis) -> list[Outlier]:
    """The largest latencies of all threads, largest first, at most SHOWN + MORE."""
    found = [
        Outlier(stream.name, stream.cpu, int(index), int(due), int(value))
        for stream in streams(analysis)
        if not stream.pooled
        for index, due, value in zip(
            stream.summary.top.index, stream.summary.top.due_ns, stream.summary.top.value, strict=True
        )
    ]
    return sorted(found, key=lambda each: (-each.value_ns, each.due_ns, each.thread))[: SHOWN + MORE]


def together(found: list[Outlier]) -> dict[Outlier, str]:
    """A letter for every group of outliers whose times of being late overlap, in the order of time."""
    groups: list[list[Outlier]] = []
    reach = None
    for each in sorted(found, key=lambda outlier: outlier.due_ns):
        if reach is None or each.due_ns >= reach:
            groups.append([])
            reach = each.ran_ns
        groups[-1].append(each)
        reach = max(reach, each.ran_ns)
    several = [group for group in groups if len(group) > 1]
    return {each: _letters(at) for at, group in enumerate(several) for each in group}


def _letters(at: int) -> str:
    """A to Z, then AA, AB, ..."""
    more, last = divmod(at, len(LETTERS))
    return (_letters(more - 1) if more else "") + LETTERS[last]


def _caption(analysis: Analysis) -> str:
    ran = quantity(analysis.pooled.observed.count, "activation")
    return f"The largest of {ran} that ran; due at: since measuring began"


def _explained(analysis: Analysis, groups: dict[Outlier, str]) -> str:
    if not groups:
        return "No two of these were late at the same time."
    letters = set(groups.values())
    several = sum(len({each.thread for each in groups if groups[each] == letter}) > 1 for letter in letters)
    across = f", {several} of them across threads" if len(analysis.summaries) > 1 else ""
    return (
        'Those with the same letter under "together" were late at the same time, so one cause may be behind them: '
        f"{quantity(len(letters), 'group')}{across}."
    )
