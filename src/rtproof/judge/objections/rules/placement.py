# SPDX-License-Identifier: Apache-2.0
"""Threads shared a CPU although another one was free. They measure how they disturb each other."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 80
CODE = "placement"
REMEDY = "give each its own CPU"
DOUBTS = ("cpu", "affinity")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        places = Counter(thread.cpu for thread in claim.threads if thread.cpu is not None)
        shared = sorted(cpu for cpu, threads in places.items() if threads > 1)
        if shared and claim.cpu_count is not None and len(places) < claim.cpu_count:
            threads = sum(places[cpu] for cpu in shared)
            detail = f"CPU {', '.join(map(str, shared))}; {claim.cpu_count - len(places)} of {claim.cpu_count} had none"
            what = f"{threads} threads shared {quantity(len(shared), 'CPU')}"
            yield Objection(CODE, (claim.name,), what, detail)
