# SPDX-License-Identifier: Apache-2.0
"""Loops: article 3's table of work, loop time and top of loop, and what article 2's cycles tell."""

from collections.abc import Iterator, Sequence

from rtproof.analysis import app as loops
from rtproof.analysis import cycles as counting
from rtproof.analysis.model import Cycles
from rtproof.articles import Article, Figure, Row
from rtproof.profiles import Profile
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.campaign.metrics import part_of, printed
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell
from rtproof.report.figures import US
from rtproof.report.sections.cycles import signature

PARTS = {"work": "work duration", "loop": "overall loop time", "top": "top of loop timing error"}
"""By the names that the article's figures have."""
LINES = {"min": "minimum", "max": "maximum", "mean": "average", "deviation": "standard deviation"}
SHARED = "Top of loop timing error: what all loops share, and what varies"
TERMS = ("min", "mean", "max", "deviation")
"""Of which ``lateness`` makes its parts."""


def app(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """Article 3's table, for each of its three parts one, and the timing error's constant part apart from its jitter.

    A column for each system and each row of the article.
    """
    return [table for cell, group in by_cell(outcomes) for table in _app(group, [*article_rows(cell, article)])]


def _app(group: Sequence[Outcome], published: Sequence[Row]) -> Iterator[Table]:
    told = [each for each in group if each.loops]
    if not told:
        return
    header = ("[us]", *(each.system for each in told), *(f"article: {row.label}" for row in published))
    numbers = tuple(range(1, len(header)))
    for part, words in PARTS.items():
        rows = tuple(
            (
                line,
                *(_here(each, part, name) for each in told),
                *(printed(row.figures.get(f"{part}.{name}"), US) for row in published),
            )
            for name, line in LINES.items()
        )
        yield Table(words.capitalize(), header, rows, numbers)
    columns = [*(_lateness_here(each) for each in told), *(_lateness_there(row) for row in published)]
    names = [name for name, _ in loops.lateness(None, None, None, None)]
    yield Table(SHARED, header, tuple(zip(names, *columns, strict=True)), numbers)


def _lateness_here(outcome: Outcome) -> list[str]:
    found = part_of(outcome, "top")
    terms = [getattr(found, name) if found and found.count else None for name in TERMS]
    return [US.show(ns) for _, ns in loops.lateness(*terms)]


def _lateness_there(row: Row) -> list[str]:
    """With the digits that the article printed."""
    told = [row.figures.get(f"top.{name}") for name in TERMS]
    parts = loops.lateness(*(figure.value if figure else None for figure in told))
    step = max((figure.step for figure in told[:3] if figure), default=0)
    exact = [None if ns is None else Figure("", ns, "ns", step) for _, ns in parts[:3]]
    return [printed(figure, US) for figure in (*exact, told[3])]


def _here(outcome: Outcome, part: str, name: str) -> str:
    found = part_of(outcome, part)
    return US.show(getattr(found, name) if found and found.count else None)


def cycles(_profile: Profile, outcomes: Sequence[Outcome], _article: Article | None) -> list[Block]:
    """What the counted cycles leave possible, and whether late ones were caught up."""
    found = [(each, each.analysis.cycles) for each in outcomes if each.analysis and each.analysis.cycles]
    lines = tuple(f"{each.cell.label}, {each.system}: {counting.says(told)} {_ignored(told)}" for each, told in found)
    caught = tuple(
        f"{each.cell.label}, {each.system}: {signature(told)}" for each, told in found if told.catch_up_pairs
    )
    return [Text(words) for words in (lines, caught) if words]


def _ignored(found: Cycles) -> str:
    """A shortened run leaves out fewer than the article did."""
    return f"The first {found.ignored:,} are not counted."
