# SPDX-License-Identifier: Apache-2.0
"""The one table of a campaign: a row for each cell on each system, the article's own figures below it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rtproof.articles import Article, Row
from rtproof.profiles import CellPlan, Profile
from rtproof.report import figures
from rtproof.report.blocks import Block, Link, Section, Table, Text
from rtproof.report.campaign.metrics import Metric, metrics
from rtproof.report.campaign.outcome import Given, Outcome
from rtproof.report.figures import US

BESIDE = (
    "Rows that say article are figures which the article published. They were measured on another machine, with "
    "another kernel and for another length of time: they stand beside the figures of this run, not against them."
)
NONE = "The article gives no figures for these columns."
PUBLISHED = "article: "
LENGTH = "length"
NUMBER = "n"
"""Alone it is no figure to put beside."""
NOT_MEASURED = "not measured"
MEASURED_BY = "measured on"


def section(
    profile: Profile, outcomes: Sequence[Outcome], article: Article | None, given: Sequence[Given], *, short: bool
) -> Section:
    """short: without columns that tell nothing here, since a terminal is narrow."""
    names = tuple(name for name in profile.columns if not short or _tells(name, outcomes))
    columns = metrics(names)
    rows = [row for cell, several in by_cell(outcomes) for row in _cell_rows(cell, several, article, columns)]
    rows += [_given_row(each, names) for each in given]
    header = ("cell", MEASURED_BY, *(column.heading for column in columns))
    table = Table(f"{profile.title}: the cells", header, tuple(rows), tuple(range(2, len(header))))
    blocks: list[Block] = [table]
    blocks += [Text(tuple(f"{each.label}: {note}." for each in given for note in each.notes))] if given else []
    if article:
        beside = any(row[1].startswith(PUBLISHED) for row in rows)
        blocks.append(Text((BESIDE if beside else NONE, f"Source: {article.title}, {article.source}.")))
    return Section("result", "Result", tuple(blocks))


def _tells(name: str, outcomes: Sequence[Outcome]) -> bool:
    """Lengths stand in another table too."""
    (metric,) = metrics((name,))
    said = {metric.here(each) for each in outcomes if each.analysis}
    return name != LENGTH and (not said or not said <= {figures.UNKNOWN, ""})


def by_cell(outcomes: Sequence[Outcome]) -> list[tuple[CellPlan, list[Outcome]]]:
    """Outcomes of the same cell together, in the order of the cells."""
    order = list(dict.fromkeys(each.cell.key for each in outcomes))
    found = sorted(outcomes, key=lambda each: order.index(each.cell.key))
    groups = [list(group) for _, group in groupby(found, key=lambda each: each.cell.key)]
    return [(group[0].cell, group) for group in groups]


def article_rows(cell: CellPlan, article: Article | None) -> Iterator[Row]:
    """The article's rows that a cell repeats, as far as the article has them."""
    for key in cell.article_rows if article else ():
        row = article.row(key) if article else None
        if row:
            yield row


def _cell_rows(
    cell: CellPlan, several: list[Outcome], article: Article | None, columns: list[Metric]
) -> Iterator[tuple[str, ...]]:
    names = iter((cell.label, *("" for _ in range(len(several) + len(cell.article_rows)))))
    for outcome in several:
        yield (next(names), *_here(outcome, columns))
    for row in article_rows(cell, article):
        published = [column.article(row) for column in columns]
        if any(words for column, words in zip(columns, published, strict=True) if column.heading != NUMBER):
            yield (next(names), f"{PUBLISHED}{row.label}", *published)


def _here(outcome: Outcome, columns: list[Metric]) -> tuple[str, ...]:
    name = f"{outcome.system} (INVALID)" if outcome.invalid else outcome.system
    where = Link(name, outcome.link) if outcome.link else name
    if outcome.analysis is None:
        return (where, NOT_MEASURED, *("" for _ in columns[1:]))
    return (where, *(column.here(outcome) for column in columns))


def _given_row(given: Given, columns: tuple[str, ...]) -> tuple[str, ...]:
    values = {
        "n": figures.count(given.count),
        "min": US.show(given.min_ns),
        "mean": US.show(given.mean_ns),
        "max": US.show(given.max_ns),
    }
    return (given.label, f"given: {given.tool}", *(values.get(name, "") for name in columns))
