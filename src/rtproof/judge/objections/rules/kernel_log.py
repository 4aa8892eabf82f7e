# SPDX-License-Identifier: Apache-2.0
"""The kernel logged during the run that a part of it broke the kernel's own rules, or stood still."""

import re
from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.checks.case import sentence_list
from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 110
CODE = "kernel-log"
REMEDY = "mend what it reports"
DOUBTS: tuple[str, ...] = ()
TELLING = re.compile(
    r"scheduling while atomic|sleeping function called from invalid context|soft lockup|hard LOCKUP|rcu.*stall"
    r"|NETDEV WATCHDOG|blocked for more than|^BUG:|\bBUG: |Oops",
    re.IGNORECASE,
)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        lines = list(dict.fromkeys(line for line in claim.kernel_lines if TELLING.search(line)))
        if lines:
            what = f"the kernel logged {quantity(len(lines), 'fault')} during the run"
            yield Objection(CODE, (claim.name,), what, sentence_list(lines))
