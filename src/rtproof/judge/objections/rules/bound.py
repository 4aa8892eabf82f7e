# SPDX-License-Identifier: Apache-2.0
"""No violation was seen, and the row concludes that none will come. n samples only bound the rate (rule of three)."""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration, percent
from rtproof.judge.objections.result_row import Figures, Objection, ResultClaim, of_parts
from rtproof.statistics import share_upper

ORDER = 70
CODE = "zero-is-no-bound"
REMEDY = "state the rate"
DOUBTS: tuple[str, ...] = ()
CONFIDENCE = 0.95


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        if claim.judged:
            found = list(_zeros(claim))
            values = sum(each.count or 0 for each, _ in found)
            yield from of_parts(CODE, claim, found, f"0 of {values:,} values out of band prove no limit")


def _zeros(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each in claim.figures:
        if each.out_of_band == 0 and each.count:
            most = share_upper(0, each.count, CONFIDENCE)
            often = f", one every {duration(each.period_ns / most)}" if each.period_ns else ""
            sure = f"({percent(CONFIDENCE)} confidence, if values do not depend on each other)"
            yield each, f"a share of up to {most:.2g} is possible{often} {sure}"
