# SPDX-License-Identifier: Apache-2.0
"""Article 5's tables: the largest latency and the 99.999 % threshold, and context switches from the fullest bins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtproof.analysis.dominant import Dominant, dominant
from rtproof.analysis.phrases import duration, percent
from rtproof.articles import Article, Row
from rtproof.profiles import Bins, Profile
from rtproof.report import figures, thresholds
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.campaign.metrics import printed
from rtproof.report.campaign.naming import named
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell
from rtproof.report.figures import US

LOST = "The article's own tables of these are not to be had any more, so nothing stands beside."


def render(profile: Profile, outcomes: Sequence[Outcome], _article: Article | None) -> list[Block]:
    """Of each kind of latency that the profile has bins for."""
    tables = [table for each in profile.bins for table in _thresholds(each, outcomes)]
    return [*tables, Text((thresholds.DEFINITION, LOST))] if tables else []


def _thresholds(bins: Bins, outcomes: Sequence[Outcome]) -> Iterator[Block]:
    found = [(name, each.stage(bins.stage)) for name, each in named(outcomes)]
    known = [(name, summary) for name, summary in found if summary is not None]
    caption = f"{bins.name.capitalize()}; the article's bins were {bins.count:,} of {duration(bins.width_ns)}"
    if known:
        yield thresholds.table(caption, known)


def switches(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """From the interrupt to the task, as far as the fullest bin of each tells; the profile's first bins are the
    interrupt's, its second ones the task's."""
    if len(profile.bins) != 2:
        return []
    rows = [_switch(each, found) for each in outcomes if (found := context_switch(each, profile.bins))]
    note = RANGE if rows else UNTOLD
    cells = [cell for cell, _ in by_cell(outcomes)]
    rows += [row for cell in cells for each in article_rows(cell, article) for row in _published(cell.label, each)]
    header = (
        *("cell", "measured on", "n", "interrupt, fullest bin [us]", "share in it"),
        *("task, fullest bin [us]", "share in it", "context switch [us]"),
    )
    caption = "Context switch: from the fullest bin of the interrupt to the fullest bin of the task"
    table = [Table(caption, header, tuple(rows), tuple(range(2, len(header))))] if rows else []
    return [*table, Text((note,))]


UNTOLD = "No way that was taken tells the interrupt apart, so there is no context switch to tell of here."
RANGE = (
    "The difference of two bins is a range: from the end of the one to the start of the other at least, from the start "
    "of the one to the end of the other at most."
)


@dataclass(frozen=True)
class Context:
    """The fullest bins of interrupt and task, and between what the context switch lies, in nanoseconds."""

    interrupt: Dominant
    task: Dominant
    least: int
    most: int

    @property
    def n(self) -> int:
        return min(self.interrupt.total, self.task.total)


def context_switch(outcome: Outcome, bins: Sequence[Bins]) -> Context | None:
    """None where the interrupt was not told apart. bins: the interrupt's and the task's."""
    if len(bins) != 2:
        return None
    stages = [outcome.stage(each.stage) for each in bins]
    if stages[0] is None or stages[1] is None or stages[0] is stages[1]:
        return None
    early = dominant(stages[0].observed_counts, bins[0].width_ns)
    late = dominant(stages[1].observed_counts, bins[1].width_ns)
    if early is None or late is None:
        return None
    return Context(early, late, max(late.start - early.end, 0), late.end - early.start)


def _switch(outcome: Outcome, found: Context) -> tuple[str, ...]:
    between = f"{_us(found.least)} to {_us(found.most)}"
    bins = (*_bin(found.interrupt), *_bin(found.task))
    return (outcome.cell.label, outcome.system, figures.count(found.n), *bins, between)


def _bin(found: Dominant) -> tuple[str, str]:
    return f"{_us(found.start)} to {_us(found.end)}", percent(round(found.n / found.total, 4))


def _us(ns: int) -> str:
    return f"{ns / US.ns:g}"


def _published(cell: str, row: Row) -> Iterator[tuple[str, ...]]:
    start, end, share = (row.figures.get(f"preemption.bin_{part}") for part in ("from", "to", "share"))
    if start and end and share:
        edges = f"{printed(start, US)} to {printed(end, US)}"
        yield (cell, f"article: {row.label}", "", "", "", edges, f"over {share.text}", "")
