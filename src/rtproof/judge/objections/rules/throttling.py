# SPDX-License-Identifier: Apache-2.0
"""The kernel throttled during the run, or gave up its clock. Doubts look for both in all that a run left."""

from collections.abc import Iterable, Sequence

from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 105
CODE = "throttling"
DOUBTS = ("throttled", "budget-stops", "clock-changed")


def judge(_claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    """Nothing beside the doubts, as no published row has the kernel's log."""
    return ()
