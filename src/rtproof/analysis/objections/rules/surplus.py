# SPDX-License-Identifier: Apache-2.0
"""More samples than the told length has room for: the clock that made the period and the one that timed the run differ.

Two clocks of one board may differ by what the kernel lets NTP slew one of them, 500 parts in a million, which is more
than crystals differ by. A measured run has one clock for both and no such excuse: its doubt is stricter.
"""

from collections.abc import Iterable, Sequence

from rtproof.analysis.objections.claim import Claim, Objection, counted, named
from rtproof.analysis.phrases import duration

ORDER = 20
CODE = "samples-surplus"
DOUBTS = ("activations-surplus",)
CLOCKS = 500e-6


def judge(claims: Sequence[Claim]) -> Iterable[Objection]:
    for claim in claims:
        for each, count, due in counted(claim):
            if claim.span and count > due.most + 1 + int(CLOCKS * due.most):
                what = (
                    f"{named(claim, each.name)}: {count:,} samples, {count - due.most:,} more than "
                    f"{duration(claim.span.longest_ns)} has room for ({100 * count / due.most:.2f} %): one of the two "
                    "clocks is wrong"
                )
                yield Objection(CODE, (claim.name,), what)
