# SPDX-License-Identifier: Apache-2.0
"""The events of a trace as lines of text, made from the pages of its buffers by the formats that the kernel states.

The kernel's own text would be three times as long as the pages, so records since 1.4 do not keep it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from rtproof.summary.trace_pages import PageLayout, Pages, timed_events, trace_pages

MARK, STACK = "print", "kernel_stack"
"""The event of what a program writes into the trace, and that of the functions that were running, innermost first."""

NAMING = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new")
"""Events with the names of threads."""

_FIELD = re.compile(
    r"field:\s*(?P<type>[^;]*?)(?P<name>\w+)(?P<array>\[\w*\])?;\s*offset:(?P<offset>\d{1,6});\s*size:(?P<size>\d{1,6});"
    r"(?:\s*signed:(?P<signed>\d))?"
)
_HEAD = re.compile(r"name: *(?P<name>\S+)\s+ID: *(?P<id>\d{1,9})")
_PRINT = re.compile(r'print fmt: "(?P<form>(?:[^"\\]|\\.)*)"(?P<arguments>.*)', re.DOTALL)
_CONVERSION = re.compile(
    r"%(?P<flags>[-#0 +]*)(?P<width>\d*)(?P<long>ll|l|h|hh|z)?(?P<kind>[a-zA-Z%])(?P<more>[sSfF]?)"
)
_PLAIN = re.compile(r"(?:\([\w ]+\*?\)\s*)*REC->(?P<name>\w+)")
_ADDRESS = re.compile(r"[0-9a-fA-F]{1,16}")
_STRING = re.compile(r"__get_str\((?P<name>\w+)\)")
_SYMBOLS = re.compile(r"__print_symbolic\(\s*REC->(?P<name>\w+)\s*,(?P<table>.*)\)", re.DOTALL)
_SYMBOL = re.compile(r"\{\s*(0x[0-9a-fA-F]{1,16}|[1-9][0-9]{0,8}|0)\s*,\s*\"([^\"]*)\"\s*\}")

_INTERRUPT = re.compile(r"asm_(sysvec|common_interrupt|exc)|el[01].*_(irq|fiq)|__(irq|fiq|pabt|dabt)_")

Value = int | str


class Field(NamedTuple):
    """Where a field stands, in bytes. kind: text, place or relative place (of a text), array, signed or unsigned."""

    name: str
    offset: int
    size: int
    kind: str


@dataclass(frozen=True)
class EventLayout:
    """One kind of event. form and arguments: how the kernel prints it, as C would; "" if it does not say."""

    id: int
    name: str
    fields: tuple[Field, ...]
    form: str
    arguments: tuple[str, ...]


class RawEvent(NamedTuple):
    """One event of a page. time_ns: by the trace's clock."""

    time_ns: int
    cpu: int
    layout: EventLayout | None
    content: memoryview


def parse_layout(text: str) -> EventLayout | None:
    """The layout in a file ``format`` of tracefs; None if the text is none."""
    head = _HEAD.search(text)
    if not head:
        return None
    printed = _PRINT.search(text)
    form = printed["form"].replace(r"\n", "").replace(r"\"", '"') if printed else ""
    arguments = _split(printed["arguments"]) if printed else ()
    return EventLayout(int(head["id"]), head["name"], parse_fields(text), form, arguments)


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


def _split(arguments: str) -> tuple[str, ...]:
    """The arguments behind a form, which begin with a comma; commas within brackets and strings do not part them."""
    parts: list[str] = []
    depth, quoted = 0, False
    for character in arguments.strip():
        quoted ^= character == '"'
        depth += (character in "({[") - (character in ")}]") if not quoted else 0
        if character == "," and not depth and not quoted:
            parts.append("")
        elif parts:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def raw_events(pages: Pages, cpu: int, layout: PageLayout, kinds: Mapping[int, EventLayout]) -> Iterator[RawEvent]:
    """Yield the events of a CPU's pages, in the order of the pages."""
    number = Struct(f"{layout.order}H")
    for page in trace_pages(pages, layout):
        for time_ns, content in timed_events(page, layout):
            kind = kinds.get(number.unpack_from(content)[0]) if len(content) >= number.size else None
            yield RawEvent(time_ns, cpu, kind, content)


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
    """Makes text of events. Where the kernel's form needs more than C's printf, it has the values of the fields."""

    def __init__(self, layout: PageLayout, tasks: Mapping[int, str], functions: Functions) -> None:
        """tasks: names of threads by their id in the kernel. The events tell more of them."""
        self._big = layout.big
        self._words_of_8 = layout.commit_size == 8  # as long as an address
        self._tasks = dict(tasks)
        self.functions = functions
        self._forms: dict[int, Callable[[Mapping[str, Value]], str] | None] = {}

    def values(self, event: RawEvent) -> dict[str, Value]:
        """The values of all fields whose bytes are there."""
        if event.layout is None:
            return {}
        values: dict[str, Value] = {}
        content, length = event.content, len(event.content)
        for field in event.layout.fields:
            name, offset, size, kind = field
            if offset + size > length:
                continue
            if kind in ("signed", "unsigned"):
                values[name] = self._number(content[offset : offset + size], signed=kind == "signed")
            else:
                values[name] = self._text_of(field, content)
        return values

    def _text_of(self, field: Field, content: memoryview) -> Value:
        _, offset, size, kind = field
        if kind == "text":
            return _text(content[offset : offset + size] if size else content[offset:])
        if kind == "array":
            return bytes(content[offset : offset + size]).hex()
        number = self._number(content[offset : offset + size], signed=False)
        first = (number & 0xFFFF) + (offset + size if kind == "relative place" else 0)
        return _text(content[first : first + (number >> 16)])

    def _number(self, content: memoryview | bytes, *, signed: bool) -> int:
        return int.from_bytes(content, "big" if self._big else "little", signed=signed)

    def task(self, event: RawEvent) -> tuple[str, int]:
        """Name and id of the thread that the event hit; "<...>" if the name is not known."""
        if event.layout and event.layout.name in NAMING:
            self._learn(self.values(event))
        fields = event.layout.fields if event.layout else ()
        place = next((field for field in fields if field.name == "common_pid"), None)
        return self._named(
            self._number(event.content[place.offset : place.offset + place.size], signed=True) if place else -1
        )

    def _learn(self, values: Mapping[str, Value]) -> None:
        """Take the names of threads from an event that has them."""
        for which in ("", "prev_", "next_"):
            tid, name = values.get(f"{which}pid"), values.get(f"{which}comm")
            if isinstance(tid, int) and isinstance(name, str) and name:
                self._tasks.setdefault(tid, name)

    def _named(self, pid: int) -> tuple[str, int]:
        return "<idle>" if pid == 0 else self._tasks.get(pid, "<...>"), pid

    def line(self, event: RawEvent) -> str:
        """The event as a line, in the form of the kernel's file ``trace``."""
        values = self.values(event)
        if event.layout and event.layout.name in NAMING:
            self._learn(values)
        name, pid = self._named(int(values.get("common_pid", -1)))
        seconds, microseconds = divmod((event.time_ns + 500) // 1000, 1_000_000)  # rounded, as the kernel does
        head = f"{name:>16}-{pid:<7} [{event.cpu:03d}] {_marks(values)} {seconds:>5}.{microseconds:06d}: "
        if event.layout is None:
            return f"{head}unknown: {bytes(event.content).hex()}"
        if event.layout.name == MARK:
            function = self.functions.name(int(values.get("ip", 0))) or MARK
            return f"{head}{function}: {values.get('buf', '')}".rstrip("\n")
        if event.layout.name == STACK:
            return f"{head}{STACK}: {' <- '.join(self.stack(event))}"
        return f"{head}{event.layout.name}: {self._message(event.layout, values)}"

    def stack(self, event: RawEvent) -> list[str]:
        """The functions of an event of a stack, innermost first; addresses where no name is known."""
        field = next((one for one in event.layout.fields if one.name == "caller"), None) if event.layout else None
        if not field:
            return []
        size = 8 if self._words_of_8 else 4
        content = event.content[field.offset :]
        numbers = (
            self._number(content[at : at + size], signed=False) for at in range(0, len(content) - size + 1, size)
        )
        return [
            self.functions.name(number) or f"{number:x}" for number in numbers if number not in (0, (1 << 8 * size) - 1)
        ]

    def _message(self, layout: EventLayout, values: Mapping[str, Value]) -> str:
        if layout.id not in self._forms:
            self._forms[layout.id] = self._form(layout)
        form = self._forms[layout.id]
        try:
            if form:
                return form(values)
        except (KeyError, TypeError, ValueError):
            pass  # a field is missing, or it is no number
        return " ".join(f"{name}={value}" for name, value in values.items() if not name.startswith("common_"))

    def _form(self, layout: EventLayout) -> Callable[[Mapping[str, Value]], str] | None:
        """What makes the kernel's text of an event's values; None if its form needs more than this reads."""
        conversions = [match for match in _CONVERSION.finditer(layout.form) if match["kind"] != "%"]
        readers = [
            self._reader(argument, match) for argument, match in zip(layout.arguments, conversions, strict=False)
        ]
        known = [reader for reader in readers if reader]
        if not layout.form or not len(conversions) == len(layout.arguments) == len(known):
            return None
        form = _CONVERSION.sub(_python_form, layout.form)
        return lambda values: form % tuple(reader(values) for reader in known)

    def _reader(self, argument: str, match: re.Match[str]) -> Callable[[Mapping[str, Value]], Value] | None:
        plain, symbols = _PLAIN.fullmatch(argument) or _STRING.fullmatch(argument), _SYMBOLS.fullmatch(argument)
        if match["kind"] == "p" and plain and match["more"]:
            name = plain["name"]
            return lambda values: self.functions.name(int(values[name])) or f"{int(values[name]):x}"
        if plain and match["kind"] in "duxXscip":
            name = plain["name"]
            return lambda values: values[name]
        if symbols and match["kind"] == "s":
            name, table = symbols["name"], parse_symbols(symbols["table"])
            return lambda values: table.get(int(values[name]), f"0x{int(values[name]):x}")
        return None


def _python_form(match: re.Match[str]) -> str:
    """A conversion of C as Python has it: without lengths, and functions as text."""
    kind, head = match["kind"], f"%{match['flags']}{match['width']}"
    if kind == "%":
        return "%%"
    if kind == "p":
        return head + ("s" if match["more"] else "x")
    return head + ("d" if kind == "u" else kind) + match["more"]


def _marks(values: Mapping[str, Value]) -> str:
    """How the CPU stood: interrupts off, rescheduling needed, hard interrupt or softirq, depth of preemption off."""
    flags, depth = int(values.get("common_flags", 0)), int(values.get("common_preempt_count", 0))
    inside = "Z" if flags & 0x40 else {0x18: "H", 0x08: "h", 0x10: "s"}.get(flags & 0x18, ".")
    off = "D" if flags & 0x81 == 0x81 else "d" if flags & 1 else "b" if flags & 0x80 else "."
    return f"{off}{'N' if flags & 4 else '.'}{inside}{depth & 15 or '.'}{depth >> 4 or '.'}"


def _text(content: memoryview) -> str:
    return bytes(content).partition(b"\0")[0].decode(errors="replace")
