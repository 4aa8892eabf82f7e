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


@dataclass(frozen=True)
class Pair:
    """Two curves of a kind of latency. better, apart: None where nothing surely differs, or nothing was measured."""

    first: Drawn
    second: Drawn
    samples: tuple[Sample, Sample]
    better: Crossing | None
    apart: Distance | None


def pairs(profile: Profile, outcomes: Sequence[Outcome]) -> list[tuple[str, list[Pair]]]:
    """By the name of the kind of latency that the profile draws curves of, at most PAIRS of each."""
    parts = profile.bins or (Bins("latency", "", 0, 0, profile.zooms),)
    return [(each.name, list(_pairs(_drawn(outcomes, each.stage)))) for each in parts if each.zooms]


def section(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> Section:
    """Of each kind of latency that the profile draws curves of."""
    tables = [table for name, some in pairs(profile, outcomes) for table in _tables(name, some, article)]
    return Section("tails", "What the curves tell", (*tables, Text((EXPLAINED,))) if tables else ())


def _drawn(outcomes: Sequence[Outcome], stage: str) -> list[Drawn]:
    found = [(name, each, each.stage(stage)) for name, each in named(outcomes)]
    return [Drawn(name, each, part) for name, each, part in found if part is not None and part.observed.count]


def _tables(name: str, some: list[Pair], article: Article | None) -> list[Block]:
    rows = tuple(_told(pair) for pair in some)
    if not rows:
        return []
    header = ("first", "second", "n (independent)", "better", "largest distance")
    return [Table(f"The {name} of cells two by two", header, (*rows, *_published(name, article)))]


def _pairs(drawn: list[Drawn]) -> Iterator[Pair]:
    samples = {id(each): sample(each.summary) for each in drawn}
    found = sorted(combinations(drawn, 2), key=lambda pair: not _alike(*pair))
    for first, second in found[:PAIRS]:
        a, b = samples[id(first)], samples[id(second)]
        yield Pair(first, second, (a, b), crossing(a, b), distance(a, b))


def _alike(first: Drawn, second: Drawn) -> bool:
    return first.outcome.system == second.outcome.system or first.outcome.cell.key == second.outcome.cell.key


def _told(pair: Pair) -> tuple[str, ...]:
    first, second = pair.first.name, pair.second.name
    worth = "; ".join(map(_worth, pair.samples))
    return first, second, worth, _better(first, second, pair.better), _likeness(pair.apart) if pair.apart else ""


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
