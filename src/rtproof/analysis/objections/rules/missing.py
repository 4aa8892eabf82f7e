# SPDX-License-Identifier: Apache-2.0
"""Fewer samples than the told length has room for: what never ran is in no minimum, mean or maximum.

The length counts as its printed digits allow: "11 h 09 min" was at least half a minute less, "-D30m" is exact. Beyond
that a thousandth may be missing, as in a measured run: programs start their threads one by one and end by a signal.
"""

from collections.abc import Iterable, Sequence

from rtproof.analysis.checks.case import TOLERANCE
from rtproof.analysis.objections.claim import Claim, Objection, counted, named
from rtproof.analysis.phrases import duration

ORDER = 10
CODE = "samples-missing"
DOUBTS = ("activations-missing",)


def judge(claims: Sequence[Claim]) -> Iterable[Objection]:
    for claim in claims:
        for each, count, due in counted(claim):
            if claim.span and count < due.least - max(1, int(TOLERANCE * due.least)):
                what = (
                    f"{named(claim, each.name)}: {count:,} samples where {due.told:,} were due in "
                    f"{duration(claim.span.told_ns)} ({100 * count / due.told:.1f} %); the others are in no minimum, "
                    "mean or maximum"
                )
                yield Objection(CODE, (claim.name,), what)
