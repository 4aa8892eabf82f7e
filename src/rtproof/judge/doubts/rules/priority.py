# SPDX-License-Identifier: Apache-2.0
"""No thread can have both the policy and the priority that a row names."""

from collections.abc import Iterable, Sequence

from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.rules.command import known_policy
from rtproof.summary.summary_model import Doubt

ORDER = 90
CODE = "priority"
REMEDY = "find what changes it"
PRIORITIES = {"other": range(1), "fifo": range(1, 100), "rr": range(1, 100)}
DOUBTS: tuple[str, ...] = ()


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        allowed = PRIORITIES.get(known_policy(claim.policy) or "")
        if allowed and claim.priority is not None and claim.priority not in allowed:
            what = f"no thread has policy {claim.policy} and priority {claim.priority}"
            detail = f"{claim.policy} has priority {allowed[0]}" + (f" to {allowed[-1]}" if len(allowed) > 1 else "")
            yield Doubt(CODE, WARNING, what, REMEDY, detail, (claim.name,))
