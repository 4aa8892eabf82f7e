# SPDX-License-Identifier: Apache-2.0
"""Which cell has the lighter tail and from where on, and which are the same: what article 5 reads from its curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from rtproof.analysis.crossing import Crossing, Distance, Likeness, Sample, crossing, distance, sample
from rtproof.analysis.model import Summary
from rtproof.analysis.phrases import percent, value
from rtproof.articles import Article, Statement
from rtproof.profiles import Bins, Profile
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.campaign.naming import named
from rtproof.report.campaign.outcome import Outcome

EXPLAINED = (
    "Better means: fewer activations are later than each latency from there on, up to where chance decides. The "
    "same means: nowhere further apart than 2 % of the activations. n activations whose neighbours are alike are worth "
    "fewer; dependence over longer times is not seen, so that little differences may still be those of two runs."
)
PAIRS = 30
"""At most so many are told, those of the same cell or the same system first."""


@dataclass(frozen=True)
class Drawn:
    """A cell's curve. name: of the cell and, where there are several, of the system."""

    name: str
    outcome: Outcome
    summary: Summary


def section(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> Section:
    """Of each kind of latency that the profile draws curves of."""
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    tables = [
        table for each in parts if each.zooms for table in _tables(each.name, _drawn(outcomes, each.stage), article)
    ]
    return Section("tails", "What the curves tell", (*tables, Text((EXPLAINED,))) if tables else ())


def _drawn(outcomes: Sequence[Outcome], stage: str) -> list[Drawn]:
    found = [(name, each, each.stage(stage)) for name, each in named(outcomes)]
    return [Drawn(name, each, part) for name, each, part in found if part is not None and part.observed.count]


def _tables(name: str, drawn: list[Drawn], article: Article | None) -> list[Block]:
    rows = tuple(_pairs(drawn))
    if not rows:
        return []
    header = ("first", "second", "n (independent)", "better", "largest distance")
    return [Table(f"The {name} of cells two by two", header, (*rows, *_published(name, article)))]


def _pairs(drawn: list[Drawn]) -> Iterator[tuple[str, ...]]:
    samples = {id(each): sample(each.summary) for each in drawn}
    pairs = sorted(combinations(drawn, 2), key=lambda pair: not _alike(*pair))
    for first, second in pairs[:PAIRS]:
        yield (first.name, second.name, *_told(first.name, second.name, samples[id(first)], samples[id(second)]))


def _alike(first: Drawn, second: Drawn) -> bool:
    return first.outcome.system == second.outcome.system or first.outcome.cell.key == second.outcome.cell.key


def _told(first: str, second: str, a: Sample, b: Sample) -> tuple[str, str, str]:
    crossed, apart = crossing(a, b), distance(a, b)
    return f"{_worth(a)}; {_worth(b)}", _better(first, second, crossed), _likeness(apart) if apart else ""


def _worth(of: Sample) -> str:
    return f"{of.counts.total:,} ({round(of.effective):,})"


def _better(first: str, second: str, found: Crossing | None) -> str:
    if found is None:
        return "neither, as far as chance does not decide"
    better = first if found.first_is_better else second
    if found.above is None:
        return f"{better}, throughout up to {value(found.until)}"
    top = percent(_two_digits(found.top_share))
    return f"{better}, above {value(found.above)}, the top {top}, up to {value(found.until)}"


def _likeness(found: Distance) -> str:
    seen, most = percent(_two_digits(found.seen)), percent(_two_digits(found.most))
    where = f"{seen} at {value(found.at)}"
    if found.likeness is Likeness.SAME:
        return f"{where}; the same, surely nowhere above {most}"
    if found.likeness is Likeness.DIFFERENT:
        return f"{where}; different, surely above {percent(_two_digits(found.least))} somewhere"
    return f"{where}; undecided, up to {most} is possible"


def _two_digits(share: float) -> float:
    return float(f"{share:.2g}")


def _published(name: str, article: Article | None) -> Iterator[tuple[str, ...]]:
    for each in article.statements if article else ():
        if article and name.startswith(each.field):
            first, second = (row.label if (row := article.row(key)) else key for key in each.rows)
            yield (f"article: {first}", f"article: {second}", "", *_statement(first, each))


def _statement(first: str, each: Statement) -> tuple[str, str]:
    if each.says == "same":
        return "", "nearly the same"
    above = f", above {each.above.text}" if each.above else ""
    return f"{first}{above}, the top {each.top_share.text}" if each.top_share else f"{first}{above}", ""
