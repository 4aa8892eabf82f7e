# SPDX-License-Identifier: Apache-2.0
"""The events of a trace as data, by the formats that the kernel states for them.

Only events and fields that a budget needs are decoded. Others are skipped and counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rtproof.record.contents import Record
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import PageLayout, Pages, timed_events, trace_pages
from rtproof.summary.trace_text import Field, parse_fields, parse_symbols

IRQS_OFF, HARDIRQ, SOFTIRQ, NMI, BH_OFF = 0x01, 0x08, 0x10, 0x40, 0x80
"""Bits of ``common_flags``. BH_OFF is there since Linux 5.18; before, SOFTIRQ also means that softirqs are off."""
DEPTH_MASK = 15
"""The bits of ``common_preempt_count`` that count how often preemption is off. Those above count migration."""

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
MASKS = ("target_cpus",)
"""Fields that are sets of CPUs."""
FORK = "sched/sched_process_fork"
FORK_VALUES = "parent_pid", "child_pid"
"""It tells whose a new thread is. Budgets do not need it."""
VECTOR = re.compile(r"irq_vectors/(?P<name>\w+)_(?P<way>entry|exit)")
SYSTEM_CALL = re.compile(r"syscalls/sys_(?P<way>enter|exit)_(?P<name>\w+)")

_FORMAT = re.compile(r"events/(?P<path>[^/]+/[^/]+)/format")
_ID = re.compile(r"(?m)^ID: *(\d{1,9})")


Value = int | str | tuple[int, ...]
"""The value of a field: a number, a text, or the addresses of a stack."""


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


@dataclass(frozen=True)
class EventFormat:
    """How one kind of event is laid out.

    path: subsystem and name. symbols: the names that the kernel prints for numbers, such as 3 for NET_RX.
    """

    id: int
    path: str
    fields: tuple[Field, ...]
    symbols: Mapping[int, str]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def full_name(self) -> str:
        """The name that its events have here: of interrupt vectors and system calls with the subsystem."""
        return self.path if VECTOR.fullmatch(self.path) or SYSTEM_CALL.fullmatch(self.path) else self.name


def event_format(path: str, text: str) -> EventFormat | None:
    """The format in a file ``format`` of tracefs; None if the text is none."""
    number = _ID.search(text)
    if not number:
        return None
    return EventFormat(int(number[1]), path, parse_fields(text), parse_symbols(text))


def event_formats(record: Record) -> dict[int, EventFormat]:
    """The formats of the events that were traced, by the number that their events have."""
    paths = {name: match["path"] for name in kernel_trace.trace_names(record) if (match := _FORMAT.fullmatch(name))}
    found = (event_format(path, kernel_trace.trace_text(record, name)) for name, path in paths.items())
    return {known.id: known for known in found if known}


def values_of(known: EventFormat) -> tuple[str, ...] | None:
    """The names of the fields that a budget needs of an event; None if it needs the event not at all."""
    if known.full_name == known.path:
        return ()
    return VALUES.get(known.name)


def note_fork(event: TraceEvent, parents: dict[int, int]) -> None:
    """Learn from an event ``FORK`` who began a thread."""
    parent, child = (event.values.get(name) for name in FORK_VALUES)
    if isinstance(parent, int) and isinstance(child, int):
        parents[child] = parent


def ancestors(tid: int, parents: Mapping[int, int]) -> list[int]:
    """A thread, who began it, who began that one, and so on."""
    found = [tid]
    while (tid := parents.get(tid, tid)) not in found:
        found.append(tid)
    return found


NO_MARKS: Mapping[str, tuple[str, ...]] = {}
Reader = Callable[[memoryview], Value]
COMMON = ("common_flags", "common_preempt_count", "common_pid")


def _least_size(fields: Iterable[Field]) -> int:
    """The least length in bytes of an event with these fields. An array may be empty."""
    return max(field.offset + max(field.size, 1) for field in fields if field.kind != "array")


class EventDecoder:
    """Decodes the events of a trace. ``skipped`` counts events by why they were not decoded: unknown, short, unused."""

    def __init__(
        self,
        formats: Iterable[EventFormat],
        layout: PageLayout,
        shift_ns: int = 0,
        marks: Mapping[str, tuple[str, ...]] = NO_MARKS,
    ) -> None:
        """shift_ns: what is added to each time. marks: fields of events that are wanted too, by SYSTEM/NAME.

        Such an event has its SYSTEM/NAME for a name, unless a budget uses it, too.
        """
        self._marks = marks
        self._layout = layout
        self._order: str = "big" if layout.big else "little"
        self._shift_ns = shift_ns
        self._texts: dict[bytes, str] = {}
        self._kinds = {known.id: self._reader(known) for known in formats}
        self.skipped: Counter[str] = Counter()

    def _wanted(self, known: EventFormat) -> tuple[str, tuple[str, ...]] | None:
        """What an event is called here, and the names of its values; None: it is of no use."""
        of_budget = values_of(known)
        if of_budget is not None:
            return known.full_name, of_budget
        of_mark = self._marks.get(known.path)
        return None if of_mark is None else (known.path, of_mark)

    def _reader(self, known: EventFormat) -> tuple[str, int, tuple[Field, ...], tuple[tuple[str, Reader], ...]] | None:
        """The name, the least length in bytes, the three common fields and the readers of the values of an event.

        None for one of no use.
        """
        by_name = {field.name: field for field in known.fields}
        common = [by_name[name] for name in COMMON if name in by_name]
        wanted = self._wanted(known)
        if wanted is None or len(common) < len(COMMON):
            return None
        name, values = wanted
        needed = [by_name[value] for value in values if value in by_name]
        readers = tuple((field.name, self._read(field)) for field in needed)
        return name, _least_size([*common, *needed]), tuple(common), readers

    def _read(self, field: Field) -> Reader:
        first, end = field.offset, field.offset + field.size
        if field.kind == "text" and not field.size:  # it goes on to the end of the event
            return lambda content: self._text(bytes(content[first:]))
        if field.kind == "text":
            return lambda content: self._text(bytes(content[first:end]))
        if field.name in MASKS and field.kind == "place":
            return lambda content: self._mask_at(content, self._number(content[first:end]))
        if field.kind in ("place", "relative place"):
            begin = end if field.kind == "relative place" else 0
            return lambda content: self._text_at(content, self._number(content[first:end]), begin)
        if field.kind == "array":
            return lambda content: self._addresses(content[first:])
        signed = field.kind == "signed"
        return lambda content: self._number(content[first:end], signed)

    def _number(self, content: memoryview, signed: bool = False) -> int:
        return int.from_bytes(content, "big" if self._layout.big else "little", signed=signed)

    def _addresses(self, content: memoryview) -> tuple[int, ...]:
        """All addresses up to the end of an event, which may be longer than its format says."""
        size = self._layout.commit_size  # that of a word of the kernel
        places = range(0, len(content) - size + 1, size)
        numbers = (self._number(content[at : at + size]) for at in places)
        return tuple(number for number in numbers if number not in (0, (1 << 8 * size) - 1))

    def _text(self, content: bytes) -> str:
        known = self._texts.get(content)
        if known is None:
            known = self._texts[content] = content.partition(b"\0")[0].decode(errors="replace")
        return known

    def _mask_at(self, content: memoryview, place: int) -> int:
        """A set of bits that stands behind the fields, in words of the kernel, the lowest first."""
        size, begin = self._layout.commit_size, place & 0xFFFF
        words = content[begin : begin + (place >> 16)]
        numbers = [self._number(words[at : at + size]) for at in range(0, len(words), size)]
        return sum(number << (8 * size * at) for at, number in enumerate(numbers))

    def _text_at(self, content: memoryview, place: int, begin: int) -> str:
        """A text that stands behind the fields: the low half of its place is where, the high half how long."""
        first = begin + (place & 0xFFFF)
        return self._text(bytes(content[first : first + (place >> 16)]))

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
        number = self._number(content[:2])
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
            self._number(content[pid.offset : pid.offset + pid.size], signed=True), values,
        )  # fmt: skip
