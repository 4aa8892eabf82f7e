# SPDX-License-Identifier: Apache-2.0
"""A row is said to be unloaded, but more tasks wanted to run, or waited for a disk, than there are CPUs.

The rule allows for each measuring thread as if it had always run, because the same tick may wake it and count the
tasks. It also allows for one more task per CPU. Some drivers let kernel threads wait in a way that counts as a task
and loads nothing.
"""

import math
from collections.abc import Iterable, Sequence

from rtproof.core.phrases import quantity
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import ResultClaim, RowKind
from rtproof.judge.doubts.rules.unequal_load import AVERAGES_NS, FORGETS
from rtproof.summary.summary_model import Doubt

ORDER = 55
CODE = "not-unloaded"
REMEDY = "end the other work"
DOUBTS: tuple[str, ...] = ()
TICK_NS = 5_010_000_000
"""The time between two counts of the tasks by the kernel: 5 s and one tick. The longest tick is 10 ms."""
FEWEST_LOOKS = 3
"""The kernel must have counted this often. A single count may meet tasks that run only for a moment."""


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        cpus, least = claim.online_count, least_average(claim) if claim.said_idle else None
        own = max(1, sum(each.kind is RowKind.LATENCY for each in claim.figures))
        if cpus is not None and least is not None and least > cpus + own:
            what = f"the load average was {least:.2f} without a load"
            detail = (
                f"at least, with {quantity(cpus, 'CPU')} and {quantity(own, 'measuring thread')}: something else ran"
            )
            yield Doubt(CODE, WARNING, what, REMEDY, detail, (claim.name,))


def least_average(claim: ResultClaim) -> float | None:
    """The smallest possible average number of tasks during the run; None if the load averages cannot show it.

    With load averages of both ends, the earlier load is subtracted: as much of it as the shortest possible length of
    the run leaves. If the average fell to its end value, this subtraction gives the result; if it rose, the end value
    does. With an average of the end alone, the run must be so long that the average has forgotten the time before.
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
