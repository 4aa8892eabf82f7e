# SPDX-License-Identifier: Apache-2.0
"""Article 3's table of work, loop time and top of loop, and its figures: loop times of all systems over each other."""

from collections.abc import Iterator, Sequence

from rtproof.analysis import app as loops
from rtproof.analysis.envelope import Drawn
from rtproof.articles import Article, Figure, Row
from rtproof.profiles import CellPlan, Profile
from rtproof.report import looptimes
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.campaign.metrics import part_of, printed
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell
from rtproof.report.figures import US

PARTS = {"work": "work duration", "loop": "overall loop time", "top": "top of loop timing error"}
"""By the names that the article's figures have."""
LINES = {"min": "minimum", "max": "maximum", "mean": "average", "deviation": "standard deviation"}
SHARED = "Top of loop timing error: what all loops share, and what varies"
TERMS = ("min", "mean", "max", "deviation")
"""Of which ``lateness`` makes its parts."""
SUMMARY = "No sample was kept, so that single loops, and with them these tables and plots, are not to be had: "


def render(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """Of each cell one table and one plot, with all systems in it."""
    cells = by_cell(outcomes)
    found = [
        block for cell, group in cells for block in _cell(cell, group, [*article_rows(cell, article)], len(cells) > 1)
    ]
    without = [f"{each.cell.label}, {each.system}" for each in outcomes if each.analysis and not each.loops]
    return [*found, *([Text((f"{SUMMARY}{'; '.join(without)}.",))] if without else [])]


def _cell(cell: CellPlan, group: Sequence[Outcome], published: Sequence[Row], several: bool) -> Iterator[Block]:
    told = [each for each in group if each.loops]
    if not told:
        return
    of = f": {cell.label}" if several else ""
    here = [f"{each.system} (n = {_n(each):,})" for each in told]
    header = ("", "[us]", *here, *(f"article: {row.label}" for row in published))
    rows = tuple(row for part, words in PARTS.items() for row in _lines(part, words, told, published))
    caption = f"Work, overall loop time and top of loop timing error{of}"
    yield Table(caption, header, rows, tuple(range(2, len(header))))
    columns = [*(_lateness_here(each) for each in told), *(_lateness_there(row) for row in published)]
    names = [name for name, _ in loops.lateness(None, None, None, None)]
    yield Table(SHARED, header[1:], tuple(zip(names, *columns, strict=True)), tuple(range(1, len(header) - 1)))
    drawn = looptimes.plot([named for each in told for named in _times(each)], f"{looptimes.TITLE}{of}")
    if drawn:
        yield drawn


def _lines(part: str, words: str, told: Sequence[Outcome], published: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for at, (name, line) in enumerate(LINES.items()):
        here = (_here(each, part, name) for each in told)
        beside = (printed(row.figures.get(f"{part}.{name}"), US) for row in published)
        yield ("" if at else words, line, *here, *beside)


def _n(outcome: Outcome) -> int:
    return outcome.loops.work.count if outcome.loops else 0


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


def _times(outcome: Outcome) -> Iterator[tuple[str, Drawn]]:
    """Of the first thread; where there are several, that is said."""
    if outcome.analysis is None or outcome.loops is None:
        return
    first = min(series.thread for series in outcome.analysis.record.series)
    several = len(outcome.analysis.summaries) > 1
    name = f"{outcome.system}, thread {first}" if several else outcome.system
    for each in looptimes.drawn(outcome.analysis.record, {first: outcome.loops.length}).values():
        yield name, each
