# SPDX-License-Identifier: Apache-2.0
"""The events of a trace as lines of text, made from the pages of its buffers by the formats that the kernel states.

The kernel's own text would be three times as long as the pages, so records since 1.4 do not keep it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Literal, NamedTuple

from rtproof.summary.trace_pages import PageLayout, Pages, timed_events, trace_pages

MARK, STACK = "print", "kernel_stack"
"""The event of what a program writes into the trace, and that of the functions that were running, innermost first."""

NAMING = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new")
"""Events with the names of threads."""

_FIELD = re.compile(
    r"field:\s*(?P<type>[^;]*?)(?P<name>\w+)(?P<array>\[\w*\])?;\s*offset:(?P<offset>\d{1,6});\s*size:(?P<size>\d{1,6});"
    r"(?:\s*signed:(?P<signed>\d))?"
)
_ID = re.compile(r"(?m)^ID: *(\d{1,9})")
_ADDRESS = re.compile(r"[0-9a-fA-F]{1,16}")
_SYMBOLS = re.compile(r"__print_symbolic\(\s*REC->(?P<name>\w+)\s*,(?P<table>(?:\s*\{[^}]*\}\s*,?)*)")
_SYMBOL = re.compile(r"\{\s*(0x[0-9a-fA-F]{1,16}|[1-9][0-9]{0,8}|0)\s*,\s*\"([^\"]*)\"\s*\}")

_INTERRUPT = re.compile(r"asm_(sysvec|common_interrupt|exc)|el[01].*_(irq|fiq)|__(irq|fiq|pabt|dabt)_")

MASKS = ("target_cpus",)
"""Fields that are sets of CPUs."""

Value = int | str | tuple[int, ...]
"""The value of a field: a number, a text, or the addresses of a stack."""
Values = Mapping[str, Value]
Reader = Callable[[memoryview], Value]
"""Reads a value from the content of an event."""


class Field(NamedTuple):
    """Where a field stands, in bytes. kind: text, place or relative place (of a text), array, signed or unsigned."""

    name: str
    offset: int
    size: int
    kind: str

    @property
    def is_stack(self) -> bool:
        """Whether it has the addresses of a stack, which go on to the end of the event, however long it is."""
        return self.kind == "array" and self.name == "caller"

    @property
    def end(self) -> int:
        """The least length in bytes of an event that has it. A stack may be empty."""
        return self.offset + (0 if self.is_stack else self.size)


VECTOR = re.compile(r"irq_vectors/(?P<name>\w+)_(?P<way>entry|exit)")
SYSTEM_CALL = re.compile(r"syscalls/sys_(?P<way>enter|exit)_(?P<name>\w+)")


@dataclass(frozen=True)
class EventFormat:
    """How one kind of event is laid out and printed.

    path: subsystem and name. printed: how the kernel prints it, as C would; "" if it does not say.
    """

    id: int
    path: str
    fields: tuple[Field, ...]
    printed: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def full_name(self) -> str:
        """The name that its events have for an explanation: of interrupt vectors and system calls the whole path."""
        return self.path if VECTOR.fullmatch(self.path) or SYSTEM_CALL.fullmatch(self.path) else self.name

    @property
    def symbols(self) -> dict[int, str]:
        """The names that the kernel prints for numbers, such as 3 for NET_RX."""
        return parse_symbols(self.printed)


class RawEvent(NamedTuple):
    """One event of a page. time_ns: by the trace's clock. format: None for an event of an unknown kind."""

    time_ns: int
    cpu: int
    format: EventFormat | None
    content: memoryview


def event_number(text: str) -> int | None:
    """The number that events of a format have; None if the text is no format."""
    found = _ID.search(text)
    return int(found[1]) if found else None


def event_format(path: str, text: str) -> EventFormat | None:
    """The format in a file ``format`` of tracefs; None if the text is none."""
    number = event_number(text)
    if number is None:
        return None
    return EventFormat(number, path, parse_fields(text), text.partition("print fmt: ")[2])


def parse_fields(text: str) -> tuple[Field, ...]:
    """The fields of an event, the common ones first, in the text of its file ``format`` of tracefs."""
    return tuple(Field(f["name"], int(f["offset"]), int(f["size"]), _kind(f)) for f in _FIELD.finditer(text))


def parse_symbols(text: str) -> dict[int, str]:
    """The names that the kernel prints for numbers, such as 3 for NET_RX, in a format or a part of one."""
    return {int(value, 0): name for value, name in _SYMBOL.findall(text)}


def _kind(field: re.Match[str]) -> str:
    kind = field["type"]
    if "__data_loc" in kind:
        return "place"
    if "__rel_loc" in kind:
        return "relative place"
    if field["array"]:
        return "text" if "char" in kind else "array"
    signed = field["signed"] == "1" if field["signed"] else not re.search(r"unsigned|\bu(8|16|32|64)\b|\*", kind)
    return "signed" if signed else "unsigned"


def raw_events(pages: Pages, cpu: int, layout: PageLayout, formats: Mapping[int, EventFormat]) -> Iterator[RawEvent]:
    """Yield the events of a CPU's pages, in the order of the pages."""
    number = Struct(f"{layout.order}H")
    for page in trace_pages(pages, layout):
        for time_ns, content in timed_events(page, layout):
            known = formats.get(number.unpack_from(content)[0]) if len(content) >= number.size else None
            yield RawEvent(time_ns, cpu, known, content)


class FieldReader:
    """Reads the values of fields from the content of events."""

    def __init__(self, layout: PageLayout) -> None:
        self._order: Literal["big", "little"] = "big" if layout.big else "little"
        self._word = layout.commit_size  # that of a word of the kernel
        self._texts: dict[bytes, str] = {}

    def of(self, field: Field) -> Reader:
        """What reads the value of a field."""
        first, end = field.offset, field.offset + field.size
        if field.kind == "text":  # one without a size goes on to the end of the event
            behind = end if field.size else None
            return lambda content: self._text(bytes(content[first:behind]))
        if field.name in MASKS and field.kind == "place":
            return lambda content: self._mask_at(content, self.number(content[first:end]))
        if field.kind in ("place", "relative place"):
            begin = end if field.kind == "relative place" else 0
            return lambda content: self._text_at(content, self.number(content[first:end]), begin)
        if field.is_stack:
            return lambda content: self._addresses(content[first:])
        if field.kind == "array":
            return lambda content: bytes(content[first:end]).hex()
        signed = field.kind == "signed"
        return lambda content: self.number(content[first:end], signed=signed)

    def number(self, content: memoryview, *, signed: bool = False) -> int:
        return int.from_bytes(content, self._order, signed=signed)

    def _addresses(self, content: memoryview) -> tuple[int, ...]:
        """All addresses up to the end of an event, which may be longer than its format says."""
        places = range(0, len(content) - self._word + 1, self._word)
        numbers = (self.number(content[at : at + self._word]) for at in places)
        return tuple(number for number in numbers if number not in (0, (1 << 8 * self._word) - 1))

    def _text(self, content: bytes) -> str:
        known = self._texts.get(content)
        if known is None:
            known = self._texts[content] = content.partition(b"\0")[0].decode(errors="replace")
        return known

    def _mask_at(self, content: memoryview, place: int) -> int:
        """A set of bits that stands behind the fields, in words of the kernel, the lowest first."""
        begin = place & 0xFFFF
        words = content[begin : begin + (place >> 16)]
        numbers = [self.number(words[at : at + self._word]) for at in range(0, len(words), self._word)]
        return sum(number << (8 * self._word * at) for at, number in enumerate(numbers))

    def _text_at(self, content: memoryview, place: int, begin: int) -> str:
        """A text that stands behind the fields: the low half of its place is where, the high half how long."""
        first = begin + (place & 0xFFFF)
        return self._text(bytes(content[first : first + (place >> 16)]))


FUNCTION_MOST = 1 << 16
"""No function of the kernel has more bytes. What is further behind one is code without a line, such as BPF's."""


class Functions:
    """Names of the kernel's functions by their addresses, from lines as in /proc/kallsyms."""

    def __init__(self, kallsyms: str) -> None:
        lines = (line.split(maxsplit=2) for line in kallsyms.splitlines())
        known = sorted(
            (int(line[0], 16), line[2].split()[0]) for line in lines if len(line) == 3 and _ADDRESS.fullmatch(line[0])
        )
        self._addresses = [address for address, _ in known]
        self._names = [name for _, name in known]

    def name(self, address: int) -> str | None:
        """The function that begins nearest at or below the address; None if none does, or too far below."""
        at = bisect_right(self._addresses, address)
        return self._names[at - 1] if at and address - self._addresses[at - 1] < FUNCTION_MOST else None


def is_interrupt(name: str) -> bool:
    """Whether a function of the kernel is where an interrupt or an exception enters it."""
    return _INTERRUPT.match(name) is not None


class EventWriter:
    """Makes text of events, with the values of their fields."""

    def __init__(self, layout: PageLayout, tasks: Mapping[int, str], functions: Functions) -> None:
        """tasks: names of threads by their id in the kernel. The events tell more of them."""
        self._read = FieldReader(layout)
        self._tasks = dict(tasks)
        self.functions = functions
        self._readers: dict[int, list[tuple[Field, Reader]]] = {}
        self._symbols: dict[int, dict[str, dict[int, str]]] = {}

    def values(self, event: RawEvent) -> dict[str, Value]:
        """The values of all fields whose bytes are there."""
        known, length = event.format, len(event.content)
        if known is None:
            return {}
        if known.id not in self._readers:
            self._readers[known.id] = [(field, self._read.of(field)) for field in known.fields]
        there = ((field, read) for field, read in self._readers[known.id] if field.end <= length)
        return {field.name: read(event.content) for field, read in there}

    def line(self, event: RawEvent) -> str:
        """The event as a line: task, CPU, flags and time as in the kernel's file ``trace``, then name and fields."""
        values = self.values(event)
        known = event.format
        if known and known.name in NAMING:
            for which in ("", "prev_", "next_"):
                tid, task = values.get(f"{which}pid"), values.get(f"{which}comm")
                if isinstance(tid, int) and isinstance(task, str) and task:
                    self._tasks.setdefault(tid, task)
        pid = _number(values, "common_pid", -1)
        name = "<idle>" if pid == 0 else self._tasks.get(pid, "<...>")
        seconds, microseconds = divmod((event.time_ns + 500) // 1000, 1_000_000)  # rounded, as the kernel does
        head = f"{name:>16}-{pid:<7} [{event.cpu:03d}] {_marks(values)} {seconds:>5}.{microseconds:06d}: "
        if known is None:
            return f"{head}unknown: {bytes(event.content).hex()}"
        if known.name == MARK:
            function = self.functions.name(_number(values, "ip")) or MARK
            return f"{head}{function}: {values.get('buf', '')}".rstrip("\n")
        if known.name == STACK:
            caller = values.get("caller")
            addresses = caller if isinstance(caller, tuple) else ()
            names = (self.functions.name(address) or f"{address:x}" for address in addresses)
            return f"{head}{STACK}: {' <- '.join(names)}"
        return f"{head}{known.name}: {self._message(known, values)}"

    def _message(self, known: EventFormat, values: Values) -> str:
        """The values of the fields; a number that the kernel has a name for as this name."""
        if known.id not in self._symbols:
            found = _SYMBOLS.finditer(known.printed)
            self._symbols[known.id] = {each["name"]: parse_symbols(each["table"]) for each in found}
        symbols = self._symbols[known.id]
        shown = {name: value for name, value in values.items() if not name.startswith("common_")}
        return " ".join(f"{name}={self._named(value, symbols.get(name, {}))}" for name, value in shown.items())

    def _named(self, value: Value, symbols: Mapping[int, str]) -> Value:
        return symbols.get(value) or self.functions.name(value) or value if isinstance(value, int) else value


def _number(values: Values, name: str, otherwise: int = 0) -> int:
    found = values.get(name, otherwise)
    return found if isinstance(found, int) else otherwise


def _marks(values: Values) -> str:
    """How the CPU stood: interrupts off, rescheduling needed, hard interrupt or softirq, depth of preemption off."""
    flags, depth = _number(values, "common_flags"), _number(values, "common_preempt_count")
    inside = "Z" if flags & 0x40 else {0x18: "H", 0x08: "h", 0x10: "s"}.get(flags & 0x18, ".")
    off = "D" if flags & 0x81 == 0x81 else "d" if flags & 1 else "b" if flags & 0x80 else "."
    return f"{off}{'N' if flags & 4 else '.'}{inside}{depth & 15 or '.'}{depth >> 4 or '.'}"
