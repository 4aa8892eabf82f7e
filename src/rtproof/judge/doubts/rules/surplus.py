# SPDX-License-Identifier: Apache-2.0
"""More samples than the stated length has room for: the clock of the period and the clock of the run differ.

Two clocks of one board may differ by 500 parts in a million, because the kernel lets NTP slew one of them by so much.
Crystals differ by less, and no clock is off by a hundredth. A measured run uses one clock for both and has no such
excuse, so its doubt is stricter.
"""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration
from rtproof.judge.doubts.case import INVALID, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, counted, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 20
CODE = "samples-surplus"
REMEDY = "check the clock"
DOUBTS = ("activations-surplus",)
CLOCKS = 500e-6
WRONG = 0.01
"""No clock is off by this share."""


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        found = list(_long(claim))
        surplus = sum(more for _, _, more in found)
        impossible = any(more > WRONG * (each.count or 0) for each, _, more in found)
        severity = INVALID if impossible and not claim.measured else WARNING
        yield from of_parts(
            Doubt(CODE, severity, f"{surplus:,} samples too many", REMEDY),
            claim,
            ((each, detail) for each, detail, _ in found),
        )


def _long(claim: ResultClaim) -> Iterator[tuple[Figures, str, int]]:
    for each, count, due in counted(claim):
        if claim.span and count > due.most + 1 + int(CLOCKS * due.most):
            room = f"{count - due.most:,} more than {duration(claim.span.longest_ns)} has room for"
            share = f" ({100 * count / due.most:.2f} %)" if due.most else ""
            yield each, f"{count:,} samples, {room}{share}: one of the two clocks is wrong", count - due.most
