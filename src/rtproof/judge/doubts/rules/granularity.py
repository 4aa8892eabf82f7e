# SPDX-License-Identifier: Apache-2.0
"""A timer with coarse ticks: the row shows the tick and not how the system schedules.

A timer that fires only at its own ticks is late by anything up to one tick, each value as likely. So the mean lies near
the middle of the range. If the tick is longer than the period, the range is longer than the period too. Latencies from
disturbance look different: their mean lies close to the minimum, and only the maximum is far away. Samples show coarse
ticks if all values lie on a lattice. The median of a measured run tells more than the ends of its range. So the doubt
``coarse-timer`` judges the median instead.
"""

from collections.abc import Iterable, Sequence

from rtproof.core.phrases import value
from rtproof.judge.doubts.case import WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, of_parts
from rtproof.summary.summary_model import Doubt

ORDER = 30
CODE = "granularity"
REMEDY = "use a finer clock"
DOUBTS = ("coarse-timer",)
MIDDLE = (0.25, 0.75)
"""The part of the range in which the mean of an even spread may lie: its middle half."""
LATTICE_NS = 10_000
"""A finer lattice hides nothing: the smallest published latencies of a task are larger than its step."""


def judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    for claim in claims:
        spread = _nothing if claim.measured else _spread
        found = ((each, spread(each) or _lattice(each)) for each in claim.figures)
        what = "the values show the tick of a clock"
        yield from of_parts(Doubt(CODE, WARNING, what, REMEDY), claim, ((each, says) for each, says in found if says))


def _nothing(_each: Figures) -> str:
    return ""


def _spread(each: Figures) -> str:
    period, least, mean, most = each.period_ns, each.min_ns, each.mean_ns, each.max_ns
    if each.kind is not RowKind.LATENCY or not period or least is None or mean is None or most is None or each.at_least:
        return ""
    width = most - least
    if width < period or not MIDDLE[0] <= (mean - least) / width <= MIDDLE[1]:
        return ""
    return (
        f"at a period of {value(period)} the lateness ranges over {value(round(width))} with its mean "
        f"({value(round(mean))}) near the middle, as of a timer that ticks no finer than that"
    )


def _lattice(each: Figures) -> str:
    if each.lattice_ns is None or each.lattice_ns < LATTICE_NS:
        return ""
    return f"all values are {value(each.lattice_ns)} apart or a multiple of that: the clock ticks no finer"
