# SPDX-License-Identifier: Apache-2.0
"""Which of the times that a trace was kept for lack events, and why."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rtproof.explain.cpu_contexts import CpuTimeline
from rtproof.explain.trace_events import Window
from rtproof.record.contents import Record
from rtproof.summary.kernel_trace import has_recorder
from rtproof.summary.tracing_effect import untraced_times

Spans = Sequence[tuple[int, int]]
"""Parts of the time that do not overlap, in order: from when to when, in ns."""


@dataclass(frozen=True)
class TraceWindows:
    """The windows of a flight recorder, or without one the times of the explained activations.

    count: how many there are. whole: how many lack no event. lost: how many lack events that the kernel or the recorder
    lost. untraced: how many reach into a turn without tracing. missing: in how many a switch between threads has no
    event. missing_on: the same for each CPU that has any; a window may lack several.
    """

    count: int = 0
    whole: int = 0
    lost: int = 0
    untraced: int = 0
    missing: int = 0
    missing_on: Mapping[int, int] = field(default_factory=dict)


def meets(span: Window, holes: Spans) -> bool:
    """Whether any of these parts of the time lies within a time, or a part of it does."""
    at = bisect_right(holes, span.to_ns, key=lambda hole: hole[0])
    return at > 0 and holes[at - 1][1] > span.from_ns


def trace_windows(record: Record, timelines: Mapping[int, CpuTimeline], activations: Iterable[Window]) -> TraceWindows:
    """What the windows of a record lack. activations: the times of those that are explained."""
    kept = [(Window(one.from_ns, one.to_ns), not one.whole) for one in record.snapshots]
    if not has_recorder(record):
        lost_ns = [[(hole.from_ns, hole.to_ns) for hole in each.lost] for each in timelines.values()]
        kept = [(span, any(meets(span, holes) for holes in lost_ns)) for span in activations]
    return count_windows(kept, untraced_times(record), {cpu: each.missing for cpu, each in timelines.items()})


def count_windows(kept: Sequence[tuple[Window, bool]], untraced: Spans, missing: Mapping[int, Spans]) -> TraceWindows:
    """kept: windows, each with whether events of it were lost. missing: where CPUs have switches without an event."""
    on: Counter[int] = Counter()
    lost = reaching = torn = whole = 0
    for span, is_lost in kept:
        cpus = [cpu for cpu, holes in missing.items() if meets(span, holes)]
        is_untraced = meets(span, untraced)
        on.update(cpus)
        lost, reaching, torn = lost + is_lost, reaching + is_untraced, torn + bool(cpus)
        whole += not (is_lost or is_untraced or cpus)
    return TraceWindows(len(kept), whole, lost, reaching, torn, dict(sorted(on.items())))
