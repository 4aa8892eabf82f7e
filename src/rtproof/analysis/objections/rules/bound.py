# SPDX-License-Identifier: Apache-2.0
"""No violation seen, and taken for none to come: n samples only bound how often one comes (the rule of three)."""

from collections.abc import Iterable, Sequence

from rtproof.analysis.bounds import share_upper
from rtproof.analysis.objections.claim import Claim, Objection, named
from rtproof.analysis.phrases import duration, percent

ORDER = 70
CODE = "zero-is-no-bound"
DOUBTS: tuple[str, ...] = ()
CONFIDENCE = 0.95


def judge(claims: Sequence[Claim]) -> Iterable[Objection]:
    for claim in claims:
        for each in claim.figures:
            if claim.judged and each.out_of_band == 0 and each.count:
                most = share_upper(0, each.count, CONFIDENCE)
                often = f", one every {duration(each.period_ns / most)}" if each.period_ns else ""
                what = (
                    f"{named(claim, each.name)}: 0 of {each.count:,} out of band does not show that none "
                    f"comes: a share of up to {most:.2g} is possible{often} ({percent(CONFIDENCE)} confidence, if "
                    "they do not depend on each other)"
                )
                yield Objection(CODE, (claim.name,), what)
