# SPDX-License-Identifier: Apache-2.0
"""The stages of every cell that has several, and the threads of every cell that has several."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.fields import several_stages
from rtproof.articles import Article, Row
from rtproof.profiles import Profile
from rtproof.report.blocks import Block, Table
from rtproof.report.campaign.metrics import printed
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell
from rtproof.report.figures import US
from rtproof.report.stagetable import ENDS, HEADINGS, ends, numbers
from rtproof.report.streams import streams


def render(_profile: Profile, outcomes: Sequence[Outcome], _article: Article | None) -> list[Block]:
    rows = tuple(row for each in outcomes for row in _stages(each))
    header = ("cell", "measured on", "stage", *HEADINGS)
    caption = "Every stage, from the due time until the clock was read"
    return [Table(caption, header, rows, tuple(range(3, len(header))))] if rows else []


def _stages(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for at, stage in enumerate(several_stages(outcome.analysis) if outcome.analysis else ()):
        names = ("", "") if at else (outcome.cell.label, outcome.system)
        yield (*names, stage.series.field, *numbers(stage.observed_counts, stage.observed))


def threads(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """As cyclictest prints them, a line for each thread; the article's threads have periods of their own."""
    rows = [row for each in outcomes for row in _threads(each)]
    if not rows:
        return []
    cells = [cell for cell, _ in by_cell(outcomes)]
    rows += [row for cell in cells for each in article_rows(cell, article) for row in _published(cell.label, each)]
    header = ("cell", "measured on", "thread", "CPU", "period [us]", *ENDS)
    return [Table("Every thread", header, tuple(rows), tuple(range(3, len(header))), folded=True)]


def _threads(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for stream in streams(outcome.analysis) if outcome.analysis else ():
        if not stream.pooled:
            period = f"{stream.summary.series.period_ns / US.ns:g}"
            yield (
                *(outcome.cell.label, outcome.system, stream.name, stream.cpu, period),
                *ends(stream.summary.observed),
            )


def _published(cell: str, row: Row) -> Iterator[tuple[str, ...]]:
    for each in row.numbers:
        told = [printed(each.figures.get(name), US) for name in ("period", "count", "min", "mean", "max")]
        yield (cell, f"article: {row.label}", each.name, "", *told)
