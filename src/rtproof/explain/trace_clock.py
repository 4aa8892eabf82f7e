# SPDX-License-Identifier: Apache-2.0
"""Bring the times of a trace to CLOCK_MONOTONIC where the kernel had no clock ``mono`` for it.

Each ``hrtimer_expire_entry`` holds ``now``, which the kernel read just before by the clock of the timer. The smallest
difference among many timers is the offset between the two clocks, plus the shortest time from the reading to the event.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtproof.explain.trace_events import TraceEvent

OF_ANCHOR = 500
"""So many timers make one anchor."""
BASES_APART_NS = 1_000_000_000
"""Differences to timers of another clock, such as CLOCK_REALTIME, lie further apart than this."""
WORTH_TELLING_NS = 2_000


@dataclass(frozen=True)
class ClockAnchors:
    """Offsets of the trace's clock from CLOCK_MONOTONIC at some times of the trace, in order.

    error_ns: by how much neighbouring anchors differ at most; with one anchor it is not known, and 0.
    """

    times_ns: tuple[int, ...]
    offsets_ns: tuple[int, ...]

    @property
    def error_ns(self) -> int:
        return max((abs(after - before) for before, after in pairwise(self.offsets_ns)), default=0)

    def monotonic_ns(self, time_ns: int) -> int:
        """A time of the trace by CLOCK_MONOTONIC: linear between two anchors, and with the nearest outside of them."""
        at = bisect_right(self.times_ns, time_ns)
        if at in (0, len(self.times_ns)):
            return time_ns - self.offsets_ns[max(0, at - 1)]
        before, after = self.times_ns[at - 1], self.times_ns[at]
        low, high = self.offsets_ns[at - 1], self.offsets_ns[at]
        return time_ns - low - (high - low) * (time_ns - before) // (after - before)


def clock_anchors(events: Iterable[TraceEvent]) -> ClockAnchors | None:
    """The anchors of a CPU's events, by the trace's own clock; None without a timer."""
    pairs = [(event.time_ns, now) for event in events if (now := _now(event)) is not None]
    if not pairs:
        return None
    nearest = min(abs(time_ns - now) for time_ns, now in pairs)
    same = [(time_ns, time_ns - now) for time_ns, now in pairs if abs(time_ns - now) - nearest < BASES_APART_NS]
    return _in_order([min(group, key=lambda pair: pair[1]) for group in _in_groups(same)])


def _in_groups(pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Groups of OF_ANCHOR pairs; the last one also has what is left, which may make it longer."""
    count = max(1, len(pairs) // OF_ANCHOR)
    return [pairs[at * OF_ANCHOR : (at + 1) * OF_ANCHOR if at < count - 1 else None] for at in range(count)]


def _now(event: TraceEvent) -> int | None:
    now = event.values.get("now") if event.name == "hrtimer_expire_entry" else None
    return now if isinstance(now, int) else None


def _in_order(anchors: Sequence[tuple[int, int]]) -> ClockAnchors:
    """Anchors whose times increase; one that goes back in time is left out."""
    kept: list[tuple[int, int]] = []
    for anchor in anchors:
        if not kept or anchor[0] > kept[-1][0]:
            kept.append(anchor)
    return ClockAnchors(tuple(time_ns for time_ns, _ in kept), tuple(offset_ns for _, offset_ns in kept))
