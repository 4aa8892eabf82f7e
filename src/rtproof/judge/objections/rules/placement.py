# SPDX-License-Identifier: Apache-2.0
"""Threads shared a CPU although another one was free. They measure how they disturb each other."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 80
CODE = "placement"
REMEDY = "give each thread a CPU of its own"
DOUBTS = ("cpu", "affinity")


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        places = Counter(thread.cpu for thread in claim.threads if thread.cpu is not None)
        shared = sorted(cpu for cpu, threads in places.items() if threads > 1)
        if shared and claim.cpu_count is not None and len(places) < claim.cpu_count:
            threads = sum(places[cpu] for cpu in shared)
            cpus = f"CPU{'s' if len(shared) > 1 else ''} {', '.join(map(str, shared))}"
            free = f"{claim.cpu_count - len(places)} of {claim.cpu_count} CPUs had none"
            what = f"{claim.name}: {threads} threads shared {cpus}, while {free}"
            yield Objection(CODE, (claim.name,), what)
