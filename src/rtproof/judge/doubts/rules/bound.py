# SPDX-License-Identifier: Apache-2.0
"""No violation was seen, and the row concludes that none will come. n samples only bound the rate (rule of three)."""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration, percent, value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, of_parts
from rtproof.judge.doubts.rules.conclusion import contradiction
from rtproof.statistics import share_upper
from rtproof.summary.summary_model import Doubt

ORDER = 70
CODE = "zero-is-no-bound"
REMEDY = "state the rate"
DOUBTS: tuple[str, ...] = ()
CONFIDENCE = 0.95


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        if claim.judged:
            yield from _no_bound(claim, "out of band", [each for each in claim.figures if each.out_of_band == 0])
        held = [each for each in claim.figures if each.said_below_ns is not None and not contradiction(each)]
        for limit_ns in dict.fromkeys(each.said_below_ns or 0 for each in held):
            some = [each for each in held if each.said_below_ns == limit_ns]
            yield from _no_bound(claim, f"above {value(round(limit_ns))}", some)


def _no_bound(claim: ResultClaim, where: str, some: Sequence[Figures]) -> Iterator[Doubt]:
    """An objection to figures of which no value is where it should not be."""
    found = [(each, _possible_share(each.count, each.period_ns)) for each in some if each.count]
    values = sum(each.count or 0 for each, _ in found)
    yield from of_parts(Doubt(CODE, WARNING, f"0 of {values:,} values {where} prove no limit", REMEDY), claim, found)


def _possible_share(count: int, period_ns: int | None) -> str:
    """What none of ``count`` values leaves possible."""
    most = share_upper(0, count, CONFIDENCE)
    often = f", one every {duration(period_ns / most)}" if period_ns else ""
    sure = f"({percent(CONFIDENCE)} confidence, if values do not depend on each other)"
    return f"a share of up to {most:.2g} is possible{often} {sure}"
