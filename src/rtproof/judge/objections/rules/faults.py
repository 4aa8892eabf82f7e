# SPDX-License-Identifier: Apache-2.0
"""Page faults in the measured loop. A part of the latency comes from memory."""

from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 100
CODE = "page-faults"
REMEDY = "lock the memory"
DOUBTS = ("page-faults",)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        faults = sum(thread.faults or 0 for thread in claim.threads)
        if faults:
            yield Objection(CODE, (claim.name,), f"the measured loop had {quantity(faults, 'page fault')}")
