# SPDX-License-Identifier: Apache-2.0
"""The kernel's own trace of a run: its text, its ring-buffer pages, what was lost, and for which time it is complete.

The agent stores a trace as files ``trace/NAME`` of the record; a long file is in several parts.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from struct import Struct

from rtproof.core.errors import UserError
from rtproof.record.contents import Record

TRACE_PREFIX = "trace/"
EVENT_LINE = re.compile(
    r"^ *(?P<task>.+)-(?P<pid>\d+) +(?:\([ \d-]*\) +)?\[(?P<cpu>\d+)\] +(?:\S+ +)?"
    r"(?P<seconds>\d+)\.(?P<fraction>\d+): (?P<what>.*)$"
)
"""A line of the file ``trace``: task, id, CPU, flags (not before Linux 2.6.39), time and the event."""
SYSTEM_CALL = re.compile(r"^(sys_\w+)(\(| -> )")
"""Events of system calls are written without their name: ``sys_NAME(...)`` and ``sys_NAME -> RESULT``."""

MARKER, MARK = "tracing_mark_write", "print"
"""What a program wrote into the trace itself stands under the function that took it, and is the event ``print``."""


@dataclass(frozen=True)
class TraceLine:
    """One event of the text. ``time_ns``: by the trace's clock, as exact as the text."""

    task: str
    pid: int
    cpu: int
    time_ns: int
    event: str


def has_trace(record: Record) -> bool:
    """Whether the run was traced and the record holds what came of it."""
    return any(file.path.startswith(TRACE_PREFIX) for file in record.files)


def trace_names(record: Record) -> list[str]:
    """The files that were kept, in their order."""
    found = (file.path.removeprefix(TRACE_PREFIX) for file in record.files if file.path.startswith(TRACE_PREFIX))
    return list(dict.fromkeys(found))


def trace_content(record: Record, name: str) -> bytes:
    """A file, put together from its parts; empty if it was not kept."""
    return b"".join(file.content for file in record.files if file.path == TRACE_PREFIX + name)


def trace_text(record: Record, name: str) -> str:
    return trace_content(record, name).decode(errors="replace")


def trace_information(record: Record) -> dict[str, str]:
    """What the agent says of the trace: a word and the rest of its line."""
    return dict(line.partition(" ")[::2] for line in trace_text(record, "about").splitlines())


def trace_clock(record: Record) -> str:
    """Name of the trace's clock, which its file has in brackets."""
    found = re.search(r"\[(\S+)\]", trace_text(record, "trace_clock"))
    return found[1] if found else ""


def trace_cpus(record: Record) -> list[int]:
    """CPUs of which there is a buffer, in increasing order."""
    found = (re.fullmatch(r"cpu(\d+)/stats", name) for name in trace_names(record))
    return sorted(int(match[1]) for match in found if match)


def trace_statistics(record: Record, cpu: int) -> dict[str, str]:
    """What the buffer of a CPU says of itself, such as ``entries`` and ``overrun``."""
    lines = trace_text(record, f"cpu{cpu}/stats").splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def parse_line(line: str) -> TraceLine | None:
    """A line of the text; None if it is no event but a remark, such as how many events were lost."""
    found = EVENT_LINE.match(line)
    if not found:
        return None
    time_ns = int(found["seconds"]) * 1_000_000_000 + int(found["fraction"].ljust(9, "0")[:9])
    return TraceLine(found["task"], int(found["pid"]), int(found["cpu"]), time_ns, _event(found["what"]))


def _event(what: str) -> str:
    call = SYSTEM_CALL.match(what)
    if call:
        return call[1].replace("sys_", "sys_enter_" if call[2] == "(" else "sys_exit_", 1)
    name = what.partition(":")[0]
    return MARK if name == MARKER else name


def trace_lines(record: Record) -> list[TraceLine]:
    """Every event of the text, in its order."""
    return [line for line in map(parse_line, trace_text(record, "text").splitlines()) if line]


def event_kinds(found: list[TraceLine]) -> dict[str, int]:
    """How many events there are of each name, the most frequent first."""
    return dict(Counter(line.event for line in found).most_common())


LARGEST_PAGE = 1 << 26
"""Bytes; those of kernels have 4 KiB to 64 KiB, or what somebody set."""
FIELD_LINE = re.compile(r"field: *[\w ]*?(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);")
_ID = re.compile(r"(?m)^ID: *(\d+)")
PRINT = "events/ftrace/print/format"
KIND_BITS, KIND_MASK, KIND_SHIFT_BIG = 5, 31, 27
DATA_MOST, PADDING = 28, 29
"""Values of ``type_len``: up to DATA_MOST words of four bytes; 0 for an event that is longer and tells its size itself.

Behind PADDING come those that move the clock, with a word each.
"""
COMMIT_MASK = (1 << 27) - 1
"""Bits of ``commit`` that are a number of bytes; those above tell of events lost."""


@dataclass(frozen=True)
class PageLayout:
    """Bytes. ``order``: that of the target, as struct has it. ``page``: of one; ``data``: where its events begin."""

    order: str
    page: int
    commit: int
    commit_size: int
    data: int

    @property
    def big(self) -> bool:
        return self.order == ">"


def format_fields(text: str) -> dict[str, tuple[int, int]]:
    """Offset and size of each field, by its name, of a page or of an event."""
    found = FIELD_LINE.finditer(text)
    return {name: (int(offset), int(size)) for name, offset, size in (match.groups() for match in found)}


def page_layout(record: Record) -> PageLayout:
    """How the pages of a record's trace are laid out; UserError where it does not tell."""
    known = format_fields(trace_text(record, "header_page"))
    data, commit = known.get("data", (0, 0)), known.get("commit", (0, 0))
    page = sum(data)
    if not 0 < page <= LARGEST_PAGE or commit[1] not in (4, 8):
        raise UserError("the record does not tell how the pages of its trace are laid out")
    order = ">" if trace_information(record).get("endian") == "big" else "<"
    return PageLayout(order, page, commit[0], commit[1], data[0])


def page_events(pages: bytes, of: PageLayout) -> Iterator[memoryview]:
    """The content of each event, in their order; it begins with two bytes of the event's id."""
    whole = memoryview(pages)
    commit = Struct(of.order + ("I" if of.commit_size == 4 else "Q"))
    for at in range(0, len(pages), of.page):
        (length,) = commit.unpack_from(whole, at + of.commit)
        first = at + of.data
        yield from _events_of(whole[first : min(first + (length & COMMIT_MASK), at + of.page)], of)


def _events_of(page: memoryview, of: PageLayout) -> Iterator[memoryview]:
    word = Struct(f"{of.order}I")
    at = 0
    while at + 4 <= len(page):
        (head,) = word.unpack_from(page, at)
        kind, delay = _parts(head, of.big)
        if kind == PADDING and not delay:  # the rest of the page
            return
        at += 4
        size = 4 * kind
        if kind == 0 or kind > DATA_MOST:
            if at + 4 > len(page):
                return
            (told,) = word.unpack_from(page, at)
            size = max(0, told - 4) if kind in (0, PADDING) else 0
            at += 4
        if kind <= DATA_MOST:
            yield page[at : at + size]
        at += -(-size // 4) * 4


def _parts(head: int, big: bool) -> tuple[int, int]:
    """The kind of an event, or its length, and the time since the one before."""
    if big:
        return head >> KIND_SHIFT_BIG, head & ((1 << KIND_SHIFT_BIG) - 1)
    return head & KIND_MASK, head >> KIND_BITS


def print_addresses(record: Record) -> dict[int, str]:
    """Functions that wrote into the trace itself, by the address that their events have: the kernel's text names them.

    Event by event, so only of CPUs whose text is whole. Empty for a trace without such events.
    """
    text = trace_text(record, PRINT)
    number, (offset, size) = _ID.search(text), format_fields(text).get("ip", (0, 0))
    lines = trace_lines(record)
    if not number or size not in (4, 8) or not any(line.event == MARK for line in lines):
        return {}
    of = page_layout(record)
    wanted = int(number[1]).to_bytes(2, "big" if of.big else "little")
    found: dict[int, str] = {}
    for cpu in trace_cpus(record):
        named = [line.event for line in lines if line.cpu == cpu]
        raw = list(page_events(trace_content(record, f"cpu{cpu}/raw"), of))
        if len(raw) == len(named):
            found |= {
                int.from_bytes(event[offset : offset + size], "big" if of.big else "little"): name
                for event, name in zip(raw, named, strict=True)
                if event[:2] == wanted
            }
    return {address: MARKER if name == MARK else name for address, name in found.items()}


RECORDS_CLOCK = "mono"
"""The trace's name of the clock that the record uses."""


@dataclass(frozen=True)
class TraceSummary:
    """Numbers of a trace. Times count from the origin of the record, and are None where the clocks differ.

    missing: patterns of events that the kernel does not have. entries: left in the buffers; overrun: overwritten by
    later ones; dropped: not written at all. on_ns, off_ns: when recording began and ended. oldest_ns, newest_ns: of the
    events that are left. whole_from_ns: from here on no CPU's buffer lacks anything that was overwritten. enough_kib:
    of a CPU, about what would have held all that the busiest one wrote; None if nothing was overwritten.
    """

    clock: str
    kinds: dict[str, int]
    missing: tuple[str, ...]
    entries: int
    overrun: int
    dropped: int
    on_ns: int | None
    off_ns: int | None
    oldest_ns: int | None
    newest_ns: int | None
    whole_from_ns: int | None
    enough_kib: int | None


def lost_trace_events(record: Record) -> tuple[int, int]:
    """How many events were overwritten by later ones, and how many were not written at all; cheap to ask for."""
    stats = {cpu: trace_statistics(record, cpu) for cpu in trace_cpus(record)}
    return _total(stats, "overrun"), _total(stats, "dropped events") + _total(stats, "commit overrun")


def trace_summary(record: Record) -> TraceSummary:
    """The numbers of a record that has a trace."""
    lines = trace_lines(record)
    stats = {cpu: trace_statistics(record, cpu) for cpu in trace_cpus(record)}
    overrun, dropped = lost_trace_events(record)
    clock = trace_clock(record)
    in_record = [line for line in lines if clock == RECORDS_CLOCK]
    times_ns = [line.time_ns - record.begin.origin_monotonic_ns for line in in_record]
    return TraceSummary(
        clock=clock,
        kinds=event_kinds(lines),
        missing=tuple(trace_information(record).get("missing", "").split()),
        entries=_total(stats, "entries"),
        overrun=overrun,
        dropped=dropped,
        on_ns=_switched(record, "loop=begins"),
        off_ns=_switched(record, "loop=ends"),
        oldest_ns=min(times_ns, default=None),
        newest_ns=max(times_ns, default=None),
        whole_from_ns=_whole_from(record, in_record, stats),
        enough_kib=_enough(record, stats),
    )


def _enough(record: Record, stats: dict[int, dict[str, str]]) -> int | None:
    """As many events as there were take as many times more room than those that are left."""
    told = trace_information(record).get("buffer_kib", "")
    counted = [(_total({cpu: of}, "entries"), _total({cpu: of}, "overrun")) for cpu, of in stats.items()]
    parts = [(left + gone) / left for left, gone in counted if left and gone]
    return ceil(int(told) * max(parts)) if parts and told.isdecimal() else None


def _total(stats: dict[int, dict[str, str]], key: str) -> int:
    numbers = (values.get(key, "") for values in stats.values())
    return sum(int(number) for number in numbers if number.isdecimal())


def _switched(record: Record, what: str) -> int | None:
    return next((event.time_ns for event in record.events if event.text.startswith(f"{what};")), None)


def _whole_from(record: Record, lines: list[TraceLine], stats: dict[int, dict[str, str]]) -> int | None:
    """When the oldest event of the CPU happened that forgot most; None if no CPU forgot any."""
    forgetful = {cpu for cpu, values in stats.items() if values.get("overrun", "0") != "0"}
    oldest: dict[int, int] = {}
    for line in lines:
        if line.cpu in forgetful:
            oldest.setdefault(line.cpu, line.time_ns)
    return max(oldest.values()) - record.begin.origin_monotonic_ns if oldest else None
