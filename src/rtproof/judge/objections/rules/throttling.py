# SPDX-License-Identifier: Apache-2.0
"""The kernel throttled during the run, or gave up its clock. Doubts about a run look for both."""

from collections.abc import Iterable, Sequence

from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 105
CODE = "throttling"
REMEDY = "give real-time threads enough budget"
DOUBTS = ("throttled", "budget-stops", "clock-changed")


def judge(_claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    """Return nothing. No published row has the kernel's log, and doubts cover measured runs."""
    return ()
