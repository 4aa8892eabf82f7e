# SPDX-License-Identifier: Apache-2.0
"""No violation was seen, and the row concludes that none will come. n samples only bound the rate (rule of three)."""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration, percent
from rtproof.judge.objections.result_row import Figures, Objection, ResultClaim, of_parts
from rtproof.statistics import share_upper

ORDER = 70
CODE = "zero-is-no-bound"
REMEDY = "measure for longer, and state the rate"
DOUBTS: tuple[str, ...] = ()
CONFIDENCE = 0.95


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        if claim.judged:
            tail = f" ({percent(CONFIDENCE)} confidence, if they do not depend on each other)"
            yield from of_parts(CODE, claim, _zeros(claim), tail)


def _zeros(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each in claim.figures:
        if each.out_of_band == 0 and each.count:
            most = share_upper(0, each.count, CONFIDENCE)
            often = f", one every {duration(each.period_ns / most)}" if each.period_ns else ""
            seen = f"0 of {each.count:,} values out of band do not show that none ever is"
            yield each, f"{seen}: a share of up to {most:.2g} is possible{often}"
