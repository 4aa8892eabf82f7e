# SPDX-License-Identifier: Apache-2.0
"""Bring the times of a trace to CLOCK_MONOTONIC where the kernel had no clock ``mono`` for it.

Each ``hrtimer_expire_entry`` holds ``now``, which the kernel read just before by the clock of the timer. The smallest
difference among many timers is the offset between the two clocks, plus the shortest time from the reading to the event.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from rtproof.explain.trace_events import TraceEvent

OF_ANCHOR = 500
"""So many timers make one anchor; the last one may have more."""
BASES_APART_NS = 1_000_000_000
"""Differences to timers of another clock, such as CLOCK_REALTIME, lie further apart than this."""
WORTH_TELLING_NS = 2_000

Anchors = list[tuple[int, int]]
"""Times of the trace, which increase, each with the offset of the trace's clock from CLOCK_MONOTONIC; in ns."""


def clock_anchors(events: Sequence[TraceEvent]) -> Anchors:
    """The anchors of a CPU's events, by the trace's own clock; none without a timer."""
    timers = [event for event in events if event.name == "hrtimer_expire_entry" and "now" in event.values]
    pairs = [(event.time_ns, event.time_ns - event.number("now")) for event in timers]
    nearest = min((abs(offset_ns) for _, offset_ns in pairs), default=0)
    same = [pair for pair in pairs if abs(pair[1]) - nearest < BASES_APART_NS]
    anchors: Anchors = []
    last = max(0, len(same) // OF_ANCHOR - 1) * OF_ANCHOR
    for begin in range(0, last + 1, OF_ANCHOR) if same else ():
        anchor = min(same[begin : begin + OF_ANCHOR if begin < last else None], key=lambda pair: pair[1])
        if not anchors or anchor[0] > anchors[-1][0]:
            anchors.append(anchor)
    return anchors


def clock_error_ns(anchors: Anchors) -> int:
    """By how much neighbouring anchors differ at most; with one anchor it is not known, and 0."""
    return max((abs(after - before) for (_, before), (_, after) in pairwise(anchors)), default=0)


def monotonic_ns(anchors: Anchors, time_ns: int) -> int:
    """A time of the trace by CLOCK_MONOTONIC: linear between two anchors, and with the nearest outside of them."""
    at = bisect_right(anchors, time_ns, key=lambda anchor: anchor[0])
    if at in (0, len(anchors)):
        return time_ns - anchors[max(0, at - 1)][1]
    (before, low), (after, high) = anchors[at - 1], anchors[at]
    return time_ns - low - (high - low) * (time_ns - before) // (after - before)
