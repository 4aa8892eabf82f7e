# SPDX-License-Identifier: Apache-2.0
"""Article 5's tables: the largest latency and the 99.999 % threshold, and context switches from the fullest bins."""

from collections.abc import Iterator, Sequence

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
    rows = [row for each in outcomes for row in _switch(each, *profile.bins)]
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


def _switch(outcome: Outcome, interrupt: Bins, task: Bins) -> Iterator[tuple[str, ...]]:
    stages = outcome.stage(interrupt.stage), outcome.stage(task.stage)
    if stages[0] is None or stages[1] is None or stages[0] is stages[1]:
        return
    early = dominant(stages[0].observed_counts, interrupt.width_ns)
    late = dominant(stages[1].observed_counts, task.width_ns)
    if early and late:
        least, most = max(late.start - early.end, 0), late.end - early.start
        n = figures.count(min(early.total, late.total))
        yield (outcome.cell.label, outcome.system, n, *_bin(early), *_bin(late), f"{_us(least)} to {_us(most)}")


def _bin(found: Dominant) -> tuple[str, str]:
    return f"{_us(found.start)} to {_us(found.end)}", percent(round(found.n / found.total, 4))


def _us(ns: int) -> str:
    return f"{ns / US.ns:g}"


def _published(cell: str, row: Row) -> Iterator[tuple[str, ...]]:
    start, end, share = (row.figures.get(f"preemption.bin_{part}") for part in ("from", "to", "share"))
    if start and end and share:
        edges = f"{printed(start, US)} to {printed(end, US)}"
        yield (cell, f"article: {row.label}", "", "", "", edges, f"over {share.text}", "")
