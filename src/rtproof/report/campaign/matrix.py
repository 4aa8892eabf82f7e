# SPDX-License-Identifier: Apache-2.0
"""Article 1's matrix: the largest latency of each board with each kernel, a column for each cell."""

from collections.abc import Sequence

from rtproof.articles import Article, Row
from rtproof.profiles import Profile
from rtproof.report.blocks import Block, Table
from rtproof.report.campaign.metrics import longest, printed
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell
from rtproof.report.figures import US


def render(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    cells = by_cell(outcomes)
    systems = dict.fromkeys(each.system for each in outcomes)
    rows = [(system, _kernel(system, outcomes), *(_largest(system, group) for _, group in cells)) for system in systems]
    places: dict[tuple[str, str], list[str]] = {}
    for at, (cell, _) in enumerate(cells):
        for row in article_rows(cell, article):
            places.setdefault((row.board, row.kernel), [""] * len(cells))[at] = _published(row)
    rows += [(f"article: {board}", kernel, *maxima) for (board, kernel), maxima in places.items()]
    header = ("board", "kernel", *(cell.label for cell, _ in cells))
    caption = "Largest latency of each board with each kernel [us]"
    return [Table(caption, header, tuple(rows), tuple(range(2, len(header))))]


def _kernel(system: str, outcomes: Sequence[Outcome]) -> str:
    """The release of the first cell that was measured there."""
    releases = [
        each.analysis.record.begin.kernel_release for each in outcomes if each.analysis and each.system == system
    ]
    return releases[0] if releases else ""


def _largest(system: str, group: Sequence[Outcome]) -> str:
    shown = next((each.shown for each in group if each.system == system), None)
    return longest(shown) if shown and (shown.observed.count or shown.never_ran) else "not measured"


def _published(row: Row) -> str:
    return printed(row.figures.get("max"), US)
