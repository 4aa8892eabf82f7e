# SPDX-License-Identifier: Apache-2.0
"""A row is said to be unloaded, but more tasks wanted to run, or waited for a disk, than there are CPUs for.

Each measuring thread is allowed for as if it had always run: the same tick may wake it and count the tasks. One task
more for each CPU is allowed for too, since drivers leave kernel threads waiting in a way that counts and loads nothing.
"""

import math
from collections.abc import Iterable, Sequence

from rtproof.judge.objections.result_row import Objection, ResultClaim, RowKind
from rtproof.judge.objections.rules.unequal_load import AVERAGES_NS, FORGETS

ORDER = 55
CODE = "not-unloaded"
DOUBTS: tuple[str, ...] = ()
TICK_NS = 5_010_000_000
"""Between two looks of the kernel at its tasks: 5 s and a tick, of which the longest is 10 ms."""
FEWEST_LOOKS = 3
"""One look may meet tasks that run for a moment only."""


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    for claim in claims:
        cpus, least = claim.online_count, least_average(claim) if claim.said_idle else None
        own = max(1, sum(each.kind is RowKind.LATENCY for each in claim.figures))
        if cpus is not None and least is not None and least > cpus + own:
            what = (
                f"it is said to be unloaded, but while it ran the load average was at least {least:.2f} with {cpus} "
                f"CPU{'s' if cpus > 1 else ''} and {own} measuring thread{'s' if own > 1 else ''}: something else ran"
            )
            yield Objection(CODE, (claim.name,), f"{claim.name}: {what}")


def least_average(claim: ResultClaim) -> float | None:
    """How many tasks there were at least, on average, while it ran; None if the averages can't tell.

    Of both ends: what was before is taken off by as much as the shortest possible time leaves of it. If it rose, it was
    at least what it has risen to. Of the end alone: of an average that has forgotten what was before.
    """
    if claim.span is None:
        return None
    length_ns = claim.span.shortest_ns
    covered = [place for place, over_ns in enumerate(AVERAGES_NS) if FORGETS * over_ns <= length_ns]
    if len(claim.loadavg_before) < len(AVERAGES_NS) or len(claim.loadavg) < len(AVERAGES_NS):
        return claim.loadavg[covered[-1]] if covered and len(claim.loadavg) == len(AVERAGES_NS) else None
    place = covered[-1] if covered else 0
    looks = length_ns // TICK_NS
    if looks < FEWEST_LOOKS:
        return None
    left = math.exp(-looks * 5e9 / AVERAGES_NS[place])
    before, after = claim.loadavg_before[place], claim.loadavg[place]
    return min(after, (after - before * left) / (1 - left))
