# SPDX-License-Identifier: Apache-2.0
"""Curves against each other, as article 5 reads its own: which is better, from where on, and which are the same."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from rtproof.analysis.crossing import Crossing, Distance, Likeness, Sample, crossing, distance, sample
from rtproof.analysis.phrases import percent, value
from rtproof.articles import Article, Statement
from rtproof.profiles import Bins, Profile
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.campaign.outcome import Outcome
from rtproof.report.campaign.result import PUBLISHED

MOST = 28
"""Rows of pairs that can be read, which is all of eight curves."""
HEADER = ("latency", "first", "second", "which tail is lighter", "how far the curves are apart")
EXPLAINED = (
    "A tail is called lighter only as far as the shares above a latency surely differ; beyond that a few values decide "
    "by chance. How far curves are apart is the largest difference of their percentages, and 95 % sure."
)


def render(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Block]:
    """Of cells of the same load on several systems and of several loads on the same system."""
    rows = [row for bins in profile.bins for row in _rows(bins, outcomes)][:MOST]
    published = [_published(each, article) for each in article.statements] if article else []
    if not rows:
        return []
    return [Table("Curves against each other", HEADER, (*rows, *published)), Text((EXPLAINED,))]


def _rows(bins: Bins, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    known = [(each, stage) for each in outcomes if (stage := each.stage(bins.stage)) and stage.observed.count]
    samples = [(each, sample(stage)) for each, stage in known]
    names = iter((bins.name, *[""] * len(samples) ** 2))
    for (one, first), (other, second) in combinations(samples, 2):
        if one.system == other.system or one.cell.key == other.cell.key:
            yield (next(names), _name(one), _name(other), *_against(first, second))


def _name(outcome: Outcome) -> str:
    return f"{outcome.cell.label}, {outcome.system}"


def _against(first: Sample, second: Sample) -> tuple[str, str]:
    return _tail(crossing(first, second)), _apart(distance(first, second))


def _tail(found: Crossing | None) -> str:
    if found is None:
        return "no part surely differs"
    which = "the first" if found.first_is_better else "the second"
    if found.above is None:
        return f"{which}, throughout"
    return f"{which} above {value(found.above)} (the top {percent(round(found.top_share, 5))})"


def _apart(found: Distance | None) -> str:
    if found is None:
        return ""
    words = {Likeness.SAME: "the same", Likeness.DIFFERENT: "different", Likeness.UNDECIDED: "undecided"}
    return f"{words[found.likeness]}: {percent(round(found.seen, 4))} at {value(found.at)}"


def _published(statement: Statement, article: Article) -> tuple[str, ...]:
    labels = [row.label if (row := article.row(key)) else key for key in statement.rows]
    if statement.says == "same":
        return (f"{PUBLISHED}{statement.field}", *labels, "", "the same")
    above = f" above {statement.above.text}" if statement.above else ""
    top = f" (the top {statement.top_share.text})" if statement.top_share else ""
    return (f"{PUBLISHED}{statement.field}", *labels, f"the first{above}{top}", "")
