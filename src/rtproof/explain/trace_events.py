# SPDX-License-Identifier: Apache-2.0
"""The events of a trace as data, by the formats that the kernel states for them.

Only events and fields that a budget needs are decoded. Others are skipped and counted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from rtproof.summary.trace_pages import PageLayout, Pages, timed_events, trace_pages
from rtproof.summary.trace_text import EventFormat, Field, FieldReader, Reader, Value

IRQS_OFF, HARDIRQ, SOFTIRQ, NMI, BH_OFF = 0x01, 0x08, 0x10, 0x40, 0x80
"""Bits of ``common_flags``. BH_OFF is there since Linux 5.18; before, SOFTIRQ also means that softirqs are off."""
DEPTH_MASK = 15
"""The bits of ``common_preempt_count`` that count how often preemption is off. Those above count migration."""

OTHER_CLOCK_NS = 1_000_000_000
"""Two readings that lie further apart are of different clocks, such as CLOCK_REALTIME and the trace's."""
LOST = "lost"
"""The name of what stands where events are missing. Its time is that of the next event; ``from_ns`` of the last."""
VALUES: Mapping[str, tuple[str, ...]] = {
    "sched_switch": ("prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"),
    "sched_waking": ("comm", "pid", "prio", "target_cpu"),
    "sched_wakeup": ("comm", "pid", "prio", "target_cpu"),
    "sched_wakeup_new": ("comm", "pid", "prio"),
    "sched_migrate_task": ("pid", "orig_cpu", "dest_cpu"),
    "sched_pi_setprio": ("pid", "newprio"),
    "irq_handler_entry": ("irq", "name"),
    "irq_handler_exit": ("irq",),
    "softirq_entry": ("vec",),
    "softirq_exit": ("vec",),
    "hrtimer_expire_entry": ("hrtimer", "function", "now"),
    "hrtimer_expire_exit": ("hrtimer",),
    "hrtimer_start": ("hrtimer", "softexpires", "expires"),
    "cpu_idle": ("state",),
    "nmi_handler": ("handler", "delta_ns"),
    "ipi_entry": ("reason",),
    "ipi_exit": (),
    "ipi_raise": ("target_cpus", "reason"),
    "ipi_send_cpu": ("cpu", "callsite", "callback"),
    "csd_queue_cpu": ("cpu", "func", "csd"),
    "csd_function_entry": ("csd",),
    "page_fault_user": (),
    "page_fault_kernel": (),
    "sys_enter": ("id",),
    "sys_exit": ("id",),
    "signal_deliver": ("sig", "sa_handler"),
    "mmap_lock_released": (),
    "rss_stat": (),
    "fault_begin": (),
    "fault_end": (),
    "irq_disable": ("caller_offs",),
    "irq_enable": ("caller_offs",),
    "kernel_stack": ("caller",),
    "user_stack": ("tgid", "caller"),
    "task_rename": ("pid", "oldcomm", "newcomm"),
    "block_rq_complete": ("dev",),
    "mm_filemap_add_to_page_cache": ("i_ino", "s_dev"),
}
"""The events that a budget can use, and their fields. Interrupt vectors and system calls come by their pattern."""
FORK = "sched/sched_process_fork"
FORK_VALUES = "parent_pid", "child_pid"
"""It tells whose a new thread is. Budgets do not need it."""


class Window(NamedTuple):
    """A part of the time."""

    from_ns: int
    to_ns: int


class TraceEvent(NamedTuple):
    """One event. A tuple, because there are hundreds of thousands of them.

    time_ns: by the clock of the caller's choice. flags, depth: how the CPU stood, as the kernel noted it.
    pid: the thread that ran or was interrupted.
    """

    time_ns: int
    cpu: int
    name: str
    flags: int
    depth: int
    pid: int
    values: Mapping[str, Value]

    def number(self, field: str) -> int:
        """The value of a field that is a number; 0 without one."""
        found = self.values.get(field, 0)
        return found if isinstance(found, int) else 0


EventFields = Mapping[str, tuple[str, ...]]
"""The names of the fields of events that are wanted, by SYSTEM/NAME."""
NO_MARKS: EventFields = {}
COMMON = ("common_flags", "common_preempt_count", "common_pid")


class EventDecoder:
    """Decodes the events of a trace. ``skipped`` counts events by why they were not decoded: unknown, short, unused."""

    def __init__(
        self, formats: Iterable[EventFormat], layout: PageLayout, shift_ns: int = 0, marks: EventFields = NO_MARKS
    ) -> None:
        """shift_ns: what is added to each time. marks: fields of events that are wanted too, by SYSTEM/NAME.

        Such an event has its SYSTEM/NAME for a name, unless a budget uses it, too.
        """
        self._marks = marks
        self._layout = layout
        self._read = FieldReader(layout)
        self._shift_ns = shift_ns
        self._kinds = {known.id: self._reader(known) for known in formats}
        self.skipped: Counter[str] = Counter()

    def _reader(self, known: EventFormat) -> tuple[str, int, tuple[Field, ...], tuple[tuple[str, Reader], ...]] | None:
        """The name, the least length in bytes, the three common fields and the readers of the values of an event.

        None for one of no use.
        """
        # Interrupt vectors and system calls have no fields that a budget needs.
        name, values = known.full_name, () if known.full_name == known.path else VALUES.get(known.name)
        if values is None:
            name, values = known.path, self._marks.get(known.path)
        by_name = {field.name: field for field in known.fields}
        common = [by_name[name] for name in COMMON if name in by_name]
        if values is None or len(common) < len(COMMON):
            return None
        needed = [by_name[value] for value in values if value in by_name]
        readers = tuple((field.name, self._read.of(field)) for field in needed)
        return name, max(field.end for field in (*common, *needed)), tuple(common), readers

    def events(
        self, cpu: int, pages: Pages, following: Collection[tuple[int, int]] | None = None
    ) -> Iterator[TraceEvent]:
        """Yield the events of a CPU's pages in order, and a LOST wherever some are missing.

        following: the time stamps of pages that follow each other, as two and two; None if all do.
        """
        last_ns: int | None = None
        stamp: int | None = None
        for page in trace_pages(pages, self._layout):
            hole = following is not None and (stamp, page.time_ns) not in following
            if page.lost != 0 or hole:
                begin_ns = page.time_ns + self._shift_ns
                yield TraceEvent(begin_ns, cpu, LOST, 0, 0, -1, {"from_ns": begin_ns if last_ns is None else last_ns})
            stamp = page.time_ns
            for time_ns, content in timed_events(page, self._layout):
                last_ns = time_ns + self._shift_ns
                event = self.event(cpu, last_ns, content)
                if event:
                    yield event

    def event(self, cpu: int, time_ns: int, content: memoryview) -> TraceEvent | None:
        """One event; None, and counted, if it cannot be decoded or has no use."""
        number = self._read.number(content[:2])
        if number not in self._kinds:
            self.skipped["unknown"] += 1
            return None
        kind = self._kinds[number]
        if kind is None:
            self.skipped["unused"] += 1
            return None
        name, least, (flags, depth, pid), readers = kind
        if len(content) < least:
            self.skipped["short"] += 1
            return None
        values = {key: read(content) for key, read in readers}
        return TraceEvent(
            time_ns, cpu, name, content[flags.offset], content[depth.offset],
            self._read.number(content[pid.offset : pid.offset + pid.size], signed=True), values,
        )  # fmt: skip
