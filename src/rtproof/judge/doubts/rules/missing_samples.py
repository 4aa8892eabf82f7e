# SPDX-License-Identifier: Apache-2.0
"""Fewer samples than the stated length has room for. Activations that never ran are in no minimum, mean or maximum.

The rule takes the shortest length that the printed digits allow. "11 h 09 min" may have been half a minute less, and
"-D30m" is exact. A further thousandth may be missing, as in a measured run, because programs start their threads one
by one and end by a signal.
"""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration
from rtproof.judge.doubts.case import TOLERANCE, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, counted, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 10
CODE = "samples-missing"
NOWHERE = "the others are in no minimum, mean or maximum"
CHARGED = "only the schedule view counts the others"
DOUBTS = ("activations-missing",)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        found = list(_short(claim))
        gone, due = (sum(numbers[side] for _, _, numbers in found) for side in (0, 1))
        told = (f"{gone:,} of {due:,} samples are missing", "find what stops them")
        if claim.measured:
            told = (f"{gone:,} of {due:,} activations never ran", "find what blocks them")
        doubt = Doubt(CODE, WARNING, *told)
        yield from of_parts(doubt, claim, ((each, detail) for each, detail, _ in found))


def _short(claim: ResultClaim) -> Iterator[tuple[Figures, str, tuple[int, int]]]:
    """Figures with too few samples; how many are missing, and how many were due."""
    for each, count, due in counted(claim):
        if claim.span and count < due.least - max(1, int(TOLERANCE * due.least)):
            of = f"{due.told:,} were due in {duration(claim.span.told_ns)}"
            detail = f"{count:,} samples where {of} ({100 * count / due.told:.1f} %)"
            yield each, f"{detail}; {CHARGED if claim.measured else NOWHERE}", (due.told - count, due.told)
