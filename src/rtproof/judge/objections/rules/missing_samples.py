# SPDX-License-Identifier: Apache-2.0
"""Fewer samples than the stated length has room for. Activations that never ran are in no minimum, mean or maximum.

The rule takes the shortest length that the printed digits allow. "11 h 09 min" may have been half a minute less, and
"-D30m" is exact. A further thousandth may be missing, as in a measured run, because programs start their threads one
by one and end by a signal.
"""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration
from rtproof.judge.checks.case import TOLERANCE
from rtproof.judge.objections.result_row import Figures, Objection, ResultClaim, counted, of_parts

ORDER = 10
CODE = "samples-missing"
REMEDY = "find what kept the threads from running"
NOWHERE = "; the others are in no minimum, mean or maximum"
CHARGED = "; no figure of those that ran has the others, only the schedule view counts them"
DOUBTS = ("activations-missing",)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        yield from of_parts(CODE, claim, _short(claim), CHARGED if claim.measured else NOWHERE)


def _short(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each, count, due in counted(claim):
        if claim.span and count < due.least - max(1, int(TOLERANCE * due.least)):
            of = f"{due.told:,} were due in {duration(claim.span.told_ns)}"
            yield each, f"{count:,} samples where {of} ({100 * count / due.told:.1f} %)"
