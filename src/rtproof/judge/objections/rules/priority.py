# SPDX-License-Identifier: Apache-2.0
"""Threads did not have the policy or priority that was asked for, or no thread can have both."""

from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.checks.case import sentence_list
from rtproof.judge.objections.result_row import Objection, ResultClaim, RowThread
from rtproof.judge.objections.rules.command import known_policy

ORDER = 90
CODE = "priority"
REMEDY = "find what changes it"
PRIORITIES = {"other": range(1), "fifo": range(1, 100), "rr": range(1, 100)}
DOUBTS = ("policy", "unprivileged", "priority", "policy-changed", "policy-between", "priority-between", "nice-changed")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        wrong = [says for thread in claim.threads if (says := _wrong(thread))]
        if wrong:
            yield Objection(
                CODE, (claim.name,), f"{quantity(len(wrong), 'thread')} did not run as asked", sentence_list(wrong)
            )

        allowed = PRIORITIES.get(known_policy(claim.policy) or "")
        if allowed and claim.priority is not None and claim.priority not in allowed:
            detail = f"{claim.policy} has priority {allowed[0]}" + (f" to {allowed[-1]}" if len(allowed) > 1 else "")
            yield Objection(
                CODE, (claim.name,), f"no thread has policy {claim.policy} and priority {claim.priority}", detail
            )


def _wrong(thread: RowThread) -> str:
    for asked, got in ((thread.policy_asked, thread.policy), (thread.priority_asked, thread.priority)):
        if asked is not None and got is not None and asked != got:
            return f"{thread.name} was to have {asked} and had {got}"
    return ""
