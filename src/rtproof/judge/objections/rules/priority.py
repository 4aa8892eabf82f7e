# SPDX-License-Identifier: Apache-2.0
"""Threads did not have the policy or priority that was asked for: they were real-time in name only."""

from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.checks.case import sentence_list
from rtproof.judge.objections.result_row import Objection, ResultClaim, RowThread

ORDER = 90
CODE = "priority"
REMEDY = "find what changes it"
DOUBTS = ("policy", "unprivileged", "priority", "policy-changed", "policy-between", "priority-between", "nice-changed")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        wrong = [says for thread in claim.threads if (says := _wrong(thread))]
        if wrong:
            yield Objection(
                CODE, (claim.name,), f"{quantity(len(wrong), 'thread')} did not run as asked", sentence_list(wrong)
            )


def _wrong(thread: RowThread) -> str:
    for asked, got in ((thread.policy_asked, thread.policy), (thread.priority_asked, thread.priority)):
        if asked is not None and got is not None and asked != got:
            return f"{thread.name} was to have {asked} and had {got}"
    return ""
