# SPDX-License-Identifier: Apache-2.0
"""Loops: article 3's table of work, loop time and top of loop, and what article 2's cycles tell."""

from collections.abc import Iterator, Sequence

from rtproof.analysis import cycles as counting
from rtproof.analysis.model import Cycles
from rtproof.articles import Article, Row
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


def app(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """Article 3's table, for each of its three parts one: a column for each system and each row of the article."""
    return [table for cell, group in by_cell(outcomes) for table in _app(group, [*article_rows(cell, article)])]


def _app(group: Sequence[Outcome], published: Sequence[Row]) -> Iterator[Table]:
    told = [each for each in group if each.loops]
    if not told:
        return
    for part, words in PARTS.items():
        header = ("[us]", *(each.system for each in told), *(f"article: {row.label}" for row in published))
        rows = tuple(
            (
                line,
                *(_here(each, part, name) for each in told),
                *(printed(row.figures.get(f"{part}.{name}"), US) for row in published),
            )
            for name, line in LINES.items()
        )
        yield Table(words.capitalize(), header, rows, tuple(range(1, len(header))))


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
