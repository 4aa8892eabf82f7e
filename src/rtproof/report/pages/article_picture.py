# SPDX-License-Identifier: Apache-2.0
"""All smallest, average and largest values of an article in one picture, each row's beside those measured here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtproof.articles import Article, ArticleRow
from rtproof.profiles import Profile
from rtproof.report.blocks import BarPart, Bars
from rtproof.report.number_format import US
from rtproof.report.pages.article_numbers import FIGURES, measured_numbers, runs_beside
from rtproof.report.pages.campaign_outcomes import CellOutcome
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, NOT_MEASURED, article_rows, outcomes_by_cell

TITLE = "The article's values and ours in one picture"
SAYS = (
    "Each bar goes from the smallest value to the largest, on a logarithmic axis, and changes its colour at the "
    "average. It begins at the edge where no smallest value is known. What was measured here stands below what the "
    "article printed."
)
KINDS = tuple(f"{whose}, up to the {end}" for whose in ("article", "here") for end in ("average", "largest"))
MOST_BARS = 60
FEWEST_ROWS = 2
HERE_PREFIX = "here: "
NARROW = 1.02
"""A bar of one value only ends at this many times its begin, so that it is seen."""


@dataclass(frozen=True)
class _Ends:
    """The smallest, average and largest value of a row in us; None for what is not told. words: as they are printed."""

    name: str
    published: bool
    least: float | None
    mean: float | None
    most: float
    words: str

    def parts(self, axis_begin: float) -> tuple[BarPart, ...]:
        """The bar. On a logarithmic axis a value below its begin is drawn there."""
        to_mean, to_most = KINDS[:2] if self.published else KINDS[2:]
        begin = min(max(self.least or axis_begin, axis_begin), self.most / NARROW)
        if self.mean is None or not begin < self.mean < self.most:
            return (BarPart(to_most, begin, self.most, self.words),)
        return BarPart(to_mean, begin, self.mean, self.words), BarPart(to_most, self.mean, self.most, self.words)


def article_picture(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> list[Bars]:
    """Return the picture; none if fewer than two rows of the article have a largest value."""
    groups = outcomes_by_cell(outcomes)
    found = [
        ends for cell, group in groups for row in article_rows(cell, article) for ends in _ends(profile, group, row)
    ]
    shown = found[:MOST_BARS]
    if sum(each.published for each in shown) < FEWEST_ROWS:
        return []
    told = [number for each in shown for number in (each.least, each.mean, each.most) if number and number > 0]
    begin, end = min(told) / NARROW, max(told)
    bars = tuple((each.name, each.parts(begin)) for each in shown)
    used = {part.kind for _, parts in bars for part in parts}
    kinds = tuple(kind for kind in KINDS if kind in used)
    values = tuple(each.words for each in shown)
    left_out = f" Of {len(found)} bars the first {MOST_BARS} are drawn." if len(found) > MOST_BARS else ""
    return [Bars(TITLE, f"{SAYS}{left_out}", "us, logarithmic", kinds, bars, end, log=True, begin=begin, values=values)]


def _ends(profile: Profile, group: Sequence[CellOutcome], row: ArticleRow) -> Iterator[_Ends]:
    """Yield the bars of the article's row, each with those of the runs that it stands beside."""
    for own in row.numbers:
        name = f", {own.name}" if len(row.numbers) > 1 else ""
        printed = {key: figure.text for key, figure in own.figures.items()}
        values_ns = {key: own.value(key) for key in own.figures}
        yield from _bar(f"{ARTICLE_PREFIX}{row.label}{name}", True, values_ns, printed)
        for outcome in runs_beside(row, group) if "max" in own.figures else []:
            found = measured_numbers(profile, outcome, own) if outcome.shown else NOT_MEASURED
            if not isinstance(found, str):
                here = {key: found.text(key, figure) for key, figure in own.figures.items()}
                yield from _bar(f"{HERE_PREFIX}{outcome.system}{name}", False, found.values, here)


def _bar(
    name: str, published: bool, values_ns: Mapping[str, float | None], texts: Mapping[str, str]
) -> Iterator[_Ends]:
    """Yield the bar of these values, if the largest can stand on a logarithmic axis. texts: as they are printed."""
    least, mean, most = (None if ns is None else US.scale(ns) for ns in map(values_ns.get, ("min", "mean", "max")))
    words = ", ".join(f"{FIGURES[key]} {texts[key]}" for key in ("mean", "max") if texts.get(key))
    if most and most > 0:
        yield _Ends(name, published, least, mean, most, words)
