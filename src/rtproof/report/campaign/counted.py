# SPDX-License-Identifier: Apache-2.0
"""What the counted cycles leave possible, here and in article 2, and whether late ones were caught up."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.bounds import share_upper
from rtproof.analysis.cycles import CONFIDENCE, most_out_of_band
from rtproof.analysis.model import Cycles
from rtproof.analysis.phrases import duration, percent
from rtproof.articles import Article, Row
from rtproof.profiles import CellPlan, Profile
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import article_rows, by_cell

HEADER = (
    *("cell", "measured on", "not counted", "cycles", "out of the band", "possible share", "that is one every"),
    *("catch-up pairs", "correlation"),
)
EXPLAINED = (
    f"Possible is a share up to this one ({percent(CONFIDENCE)} confidence, if cycles do not depend on each other): "
    "none of n out of the band still leaves up to 3 in n, the rule of three. A catch-up pair is a long cycle with a "
    "short one directly behind. The correlation is that of neighbouring cycles; a loop that makes up for each delay in "
    "its next cycle shows -0.5. A loop in virtual time has no possible share: run again it counts the same."
)


def render(_profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """A row for each cell on each system, the article's below."""
    found = [row for cell, group in by_cell(outcomes) for row in _cell(cell, group, article)]
    if not any(each.analysis and each.analysis.cycles for each in outcomes):
        return []
    bands = dict.fromkeys(_band(each.analysis.cycles) for each in outcomes if each.analysis and each.analysis.cycles)
    caption = f"Cycles out of the band of {' or '.join(bands)}"
    return [Table(caption, HEADER, tuple(found), tuple(range(2, len(HEADER)))), Text((EXPLAINED,))]


def _band(found: Cycles) -> str:
    return f"{duration(found.low_ns)} to {duration(found.high_ns)}"


def _cell(cell: CellPlan, group: Sequence[Outcome], article: Article | None) -> Iterator[tuple[str, ...]]:
    rows = [_here(each, each.analysis.cycles) for each in group if each.analysis and each.analysis.cycles]
    rows += [row for each in article_rows(cell, article) for row in _published(each, cell.period_ns)]
    yield from (("" if at else cell.label, *row) for at, row in enumerate(rows))


def _here(outcome: Outcome, found: Cycles) -> tuple[str, ...]:
    correlation = figures.UNKNOWN if found.correlation is None else f"{found.correlation:.2f}"
    pairs = figures.count(found.catch_up_pairs)
    counted = _shown(found.counted, found.out_of_band, found.period_ns, most_out_of_band(found))
    return (outcome.system, figures.count(found.ignored), *counted, pairs, correlation)


def _published(row: Row, period_ns: int) -> Iterator[tuple[str, ...]]:
    told = [row.figures.get(name) for name in ("count", "below", "above")]
    n, below, above = (round(figure.value) if figure else None for figure in told)
    if n is not None and below is not None and above is not None:
        yield (f"article: {row.label}", "", *_counted(n, below + above, period_ns), "", "")


def _counted(n: int, out_of_band: int, period_ns: int) -> tuple[str, ...]:
    return _shown(n, out_of_band, period_ns, share_upper(out_of_band, n, CONFIDENCE) if n else None)


def _shown(n: int, out_of_band: int, period_ns: int, most: float | None) -> tuple[str, ...]:
    possible = (figures.number(most, 2), duration(period_ns / most)) if most else (figures.UNKNOWN,) * 2
    return (figures.count(n), figures.count(out_of_band), *possible)
