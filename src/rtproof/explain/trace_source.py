# SPDX-License-Identifier: Apache-2.0
"""The events of a record's trace, CPU by CPU, by CLOCK_MONOTONIC, and what is needed to understand them."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from heapq import merge
from itertools import pairwise
from operator import attrgetter, or_

from rtproof.core.errors import UserError
from rtproof.explain.program_waits import file_namer
from rtproof.explain.thread_modes import call_namer
from rtproof.explain.trace_events import LOST, OTHER_CLOCK_NS, EventDecoder, TraceEvent
from rtproof.explain.trace_timelines import Meaning
from rtproof.record.contents import Record
from rtproof.summary import kernel_trace
from rtproof.summary.target_threads import every_real_time_thread
from rtproof.summary.trace_text import EventFormat, Functions
from rtproof.summary.tracing_effect import untraced_times

SLEEPING_DEFAULT = 0xFF
LOCAL_TIMER = "local_timer"
"""The vector of x86 in which timers expire."""
LAST_NS = 1 << 61
"""No event comes so late: 73 years after a machine started, or after 1970."""


OF_ANCHOR = 500
"""So many timers make one anchor; the last one may have more."""
WORTH_TELLING_NS = 2_000

Anchors = list[tuple[int, int]]
"""Times of the trace, which increase, each with the offset of the trace's clock from CLOCK_MONOTONIC; in ns."""


class TraceSource:
    """Reads the events of a record's trace.

    names: of all kinds of events in it, as ``EventFormat.full_name`` has them. skipped: how many were, and why.
    clock_error_ns: of the events read so far, where they had to be brought to CLOCK_MONOTONIC; else 0.
    marks: events that are wanted besides, as ``EventDecoder`` takes them.
    """

    def __init__(self, record: Record, origin_ns: int) -> None:
        """origin_ns: what is subtracted from each time. UserError without a trace that can be read and charged."""
        self.record, self.origin_ns = record, origin_ns
        self.formats = _formats(record)
        self.layout = kernel_trace.page_layout(record)
        self.clock_error_ns = 0
        self.skipped: Counter[str] = Counter()
        self.marks: Mapping[str, tuple[str, ...]] = {}
        # What names a function by its address: the kernel's table, as far as the record has it.
        functions = Functions(kernel_trace.trace_text(record, "kallsyms"))
        self.meaning = replace(
            meaning_of(self.formats, lambda address: functions.name(address) or f"{address:#x}"),
            call=call_namer(record.begin.machine),
            file=file_namer(record),
            urgent={thread.id: thread.kernel_priority for thread in every_real_time_thread(record)},
        )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(known.full_name for known in self.formats.values())

    @property
    def cpus(self) -> list[int]:
        return kernel_trace.trace_cpus(self.record)

    def events(self, cpu: int) -> Iterable[TraceEvent]:
        """The events of a CPU, in order; none if nothing brings their times to CLOCK_MONOTONIC."""
        right = has_records_clock(self.record)
        decoder = EventDecoder(self.formats.values(), self.layout, -self.origin_ns if right else 0, self.marks)
        decoder.skipped = self.skipped
        pages = kernel_trace.cpu_page_list(self.record, cpu, self.layout)
        events = self._possible(decoder.events(cpu, pages, _following_pages(self.record, cpu)))
        untraced = untraced_times(self.record)
        return with_holes(events if right else self._possible(self._aligned(list(events))), cpu, untraced)

    def all_events(self) -> Iterable[TraceEvent]:
        """The events of all CPUs in the order of time."""
        return merge(*(self.events(cpu) for cpu in self.cpus), key=attrgetter("time_ns"))

    def _possible(self, events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
        """The events whose times can be right. Others are damaged, and counted."""
        for event in events:
            if -LAST_NS < event.time_ns < LAST_NS:
                yield event
            else:
                self.skipped["time"] += 1

    def _aligned(self, events: list[TraceEvent]) -> Iterator[TraceEvent]:
        anchors = clock_anchors(events)
        self.clock_error_ns = max(self.clock_error_ns, clock_error_ns(anchors))
        for event in events if anchors else ():
            yield event._replace(time_ns=monotonic_ns(anchors, event.time_ns) - self.origin_ns)


def with_holes(events: Iterable[TraceEvent], cpu: int, untraced: Sequence[tuple[int, int]]) -> Iterator[TraceEvent]:
    """The events of a CPU, with a LOST behind each time in which nothing was traced. Events of that time are left out.

    untraced: from when to when, in order.
    """
    at, last_ns = 0, None
    for event in events:
        while at < len(untraced) and untraced[at][1] <= event.time_ns:
            values = {"from_ns": untraced[at][0] if last_ns is None else last_ns}
            yield TraceEvent(event.time_ns, cpu, LOST, 0, 0, -1, values)
            at += 1
        if at == len(untraced) or event.time_ns < untraced[at][0]:
            last_ns = event.time_ns
            yield event


def _formats(record: Record) -> dict[int, EventFormat]:
    if not kernel_trace.has_trace(record):
        if record.end is None:
            raise UserError("this record was cut off and holds no trace, so the causes are unknown")
        raise UserError("this run has no trace: measure again with --explain")
    formats = kernel_trace.event_formats(record)
    names = {known.name for known in formats.values()}
    missing = [] if "sched_switch" in names else ["sched_switch"]
    if not names & {"sched_waking", "sched_wakeup"}:
        missing.append("sched_waking")
    if missing:
        raise UserError(f"the trace of this run lacks {' and '.join(missing)}, without which no time can be charged")
    if not has_records_clock(record) and "hrtimer_expire_entry" not in names:
        raise UserError(
            "the trace of this run has another clock than its latencies, and no hrtimer_expire_entry to align them"
        )
    return formats


def has_records_clock(record: Record) -> bool:
    return kernel_trace.trace_clock(record) == kernel_trace.RECORDS_CLOCK


def _following_pages(record: Record, cpu: int) -> frozenset[tuple[int, int]] | None:
    """The time stamps of pages of a CPU that follow each other, as two and two; None if all pages do."""
    if not kernel_trace.has_recorder(record):
        return None
    lanes = [lane.stamps for snapshot in record.snapshots for lane in snapshot.pages if lane.cpu == cpu]
    return frozenset(pair for stamps in lanes for pair in pairwise(stamps))


def meaning_of(formats: Mapping[int, EventFormat], symbol: Callable[[int], str]) -> Meaning:
    """What the formats tell. symbol: the name of an address."""
    names = {known.full_name for known in formats.values()}
    paired = {name.removesuffix("_entry") for name in names if f"{name.removesuffix('_entry')}_exit" in names}
    by_name = {known.name: known for known in formats.values()}
    half = f"irq_vectors/{LOCAL_TIMER}_exit" in names and f"irq_vectors/{LOCAL_TIMER}" not in paired
    return Meaning(
        paired=frozenset(paired),
        softirqs=dict(by_name["softirq_entry"].symbols) if "softirq_entry" in by_name else {},
        sleeping=reduce(or_, by_name["sched_switch"].symbols, 0) or SLEEPING_DEFAULT,
        symbol=symbol,
        every_call={"sys_enter", "sys_exit", "page_fault_user"} <= names,
        shown_by_timers=LOCAL_TIMER if half else "",
        faults=not names.isdisjoint(("page_fault_user", "fault_begin")),
    )


# Bring the times of a trace to CLOCK_MONOTONIC where the kernel had no clock ``mono`` for it. Each
# ``hrtimer_expire_entry`` holds ``now``, which the kernel read just before by the clock of the timer. The smallest
# difference among many timers is the offset between the two clocks, plus the shortest time from the reading to the
# event.


def clock_anchors(events: Sequence[TraceEvent]) -> Anchors:
    """The anchors of a CPU's events, by the trace's own clock; none without a timer."""
    timers = [event for event in events if event.name == "hrtimer_expire_entry" and "now" in event.values]
    pairs = [(event.time_ns, event.time_ns - event.number("now")) for event in timers]
    nearest = min((abs(offset_ns) for _, offset_ns in pairs), default=0)
    same = [pair for pair in pairs if abs(pair[1]) - nearest < OTHER_CLOCK_NS]
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
