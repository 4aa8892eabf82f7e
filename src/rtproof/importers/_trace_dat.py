# SPDX-License-Identifier: Apache-2.0
"""A trace.dat of trace-cmd, versions 6 and 7: its parts as the files that a record of ours keeps of a trace.

trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) describe the layouts. Compression by zlib is read, others are refused by
name. A file that was cut short yields what is whole in it, and sentences that say what is missing.
"""

import hashlib
import io
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rtproof.core.bounded import MOST_BYTES, Room
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.summary.imported_trace import ImportedTrace

MAGIC = b"\x17\x08\x44tracing"
MOST_CPUS = 4096
PIECE_BYTES = 1 << 20
TOO_LARGE = (
    f"{{0}} is damaged, or too large: its events and formats take more than {MOST_BYTES >> 20} MiB. Cut a shorter "
    "trace from it with trace-cmd split"
)
OVERLAPPING = "the trace is damaged, or too large for rtproof: the events of its CPUs are more than the file"
COMPRESSED = 1
VERSIONS = (b"6", b"7")
OPTIONS, STATISTICS, BUFFER, CLOCK, UNAME, HEADER, OWN_FORMATS, FORMATS, SYMBOLS, PRINTS, NAMES = (
    0, 2, 3, 4, 5, 16, 17, 18, 19, 20, 21,
)  # fmt: skip
OTHER_UNITS = ("counter", "uptime", "x86-tsc", "ppc-tb")
"""Clocks of the kernel's trace that count something else than nanoseconds."""
_NAME = re.compile(rb"(?m)^name: *([\w.-]{1,100})$")
_SYSTEM = re.compile(r"[\w.-]{1,100}")
_CPU = re.compile(rb"CPU: *(\d{1,4})\n")


class _CutShortError(Exception):
    """The file ends where something must follow. The message says what."""


class _Source:
    """The bytes of a file, or of a piece of it that was unpacked. room: for all that is kept of the file."""

    def __init__(self, content: bytes | BinaryIO, room: Room) -> None:
        self.room = room
        self._file = io.BytesIO(content) if isinstance(content, bytes) else content
        self.size = self._file.seek(0, io.SEEK_END)

    def piece(self, at: int, size: int) -> bytes:
        """So many bytes from an offset on, or fewer at the end."""
        if at >= self.size:
            return b""
        self._file.seek(at)
        return self._file.read(min(size, self.size - at))


@dataclass
class _Cursor:
    """Reads numbers, texts and pieces one after the other."""

    source: _Source
    order: str
    at: int = 0
    what: str = "the header"

    def take(self, size: int) -> bytes:
        if self.at + size > self.source.size:
            raise _CutShortError(self.what)
        self.source.room.take(size)
        self.at += size
        return self.source.piece(self.at - size, size)

    def taken(self, size: int) -> "_Cursor":
        """A cursor of its own for the next piece."""
        return self.of(self.take(size))

    def of(self, content: bytes) -> "_Cursor":
        return _Cursor(_Source(content, self.source.room), self.order, what=self.what)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big" if self.order == ">" else "little")

    def sized(self, size: int) -> bytes:
        return self.take(self.number(size))

    def text(self, most: int = 256) -> str:
        """A text up to its zero. What is longer is damaged."""
        end = self.source.piece(self.at, most).find(b"\0")
        if end < 0:
            raise _CutShortError(self.what)
        return self.take(end + 1)[:-1].decode(errors="replace")

    def elsewhere(self, at: int) -> "_Cursor":
        return _Cursor(self.source, self.order, at, self.what)


@dataclass
class _Buffer:
    """One buffer of the trace: the place and the size of each CPU's pages. compressed: whether they are chunks."""

    name: str
    cpus: list[tuple[int, int, int]] = field(default_factory=list)
    clock: str = ""
    compressed: bool = False

    @property
    def size(self) -> int:
        return sum(size for _, _, size in self.cpus)


@dataclass
class _Found:
    """What has been read so far."""

    files: dict[str, bytes] = field(default_factory=dict)
    buffers: list[_Buffer] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    clock: str = ""
    system: str = ""


def looks_like(path: Path) -> bool:
    """Whether a file begins as a trace.dat does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path) -> ImportedTrace:
    """The trace in a file. UserError if it cannot be read, or if nothing of it is of use."""
    try:
        with path.open("rb") as file:
            return parse(file, str(path))
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None


def parse(content: bytes | BinaryIO, name: str) -> ImportedTrace:
    """The trace in the bytes of a file; name: for messages. UserError as for ``read``."""
    cursor = _Cursor(_Source(content, Room(MOST_BYTES, TOO_LARGE.format(name))), "<")
    found = _Found()
    try:
        version = _head(cursor, name)
        (_read_version_6 if version == b"6" else _read_version_7)(cursor, found, name)
    except _CutShortError as cut:
        found.missing.append(f"{name} is cut short or damaged: it ends within {cut}")
    _take_pages(cursor, found, name)
    _check(found, name)
    identity = _digest(cursor.source)
    return ImportedTrace("trace-cmd", found.files, cursor.order == ">", identity, tuple(found.missing), found.system)


def _digest(source: _Source) -> bytes:
    """16 bytes that are the same for the same file."""
    found = hashlib.sha256()
    for at in range(0, source.size, PIECE_BYTES):
        found.update(source.piece(at, PIECE_BYTES))
    return found.digest()[:16]


def _head(cursor: _Cursor, name: str) -> bytes:
    """Read the part that all versions have, and return the version. UserError for a version that is not known."""
    if cursor.source.piece(0, len(MAGIC)) != MAGIC:
        raise UserError(f"{name} is no trace.dat of trace-cmd")
    cursor.take(len(MAGIC))
    version = cursor.text(16).encode()
    if version not in VERSIONS:
        told = version.decode(errors="replace")[:16]
        raise UserError(f"{name} is a trace.dat of version {told!r}, and versions 6 and 7 can be read")
    cursor.order = ">" if cursor.number(1) else "<"
    cursor.take(1 + 4)  # the size of a long in user space, and the size of a page
    return version


def _check(found: _Found, name: str) -> None:
    """UserError if the trace cannot be used at all."""
    why = f" ({found.missing[0]})" if found.missing else ""
    if "header_page" not in found.files or not any(path.startswith("events/sched/") for path in found.files):
        raise UserError(f"{name} does not say how its events are laid out{why}")
    if not any(path.endswith("/raw") for path in found.files):
        raise UserError(f"{name} holds no events{why}")
    if found.clock in OTHER_UNITS:
        raise UserError(f"{name} has the clock {found.clock}, which does not count nanoseconds: record with -C mono")
    found.files["trace_clock"] = f"[{found.clock or 'local'}]\n".encode()


# Version 6: one part after the other.


def _read_version_6(cursor: _Cursor, found: _Found, name: str) -> None:
    _header_info(cursor, found)
    _own_formats(cursor, found)
    _formats(cursor, found)
    _sized_file(cursor, found, "kallsyms", 4)
    _sized_file(cursor, found, "printk_formats", 4)
    _sized_file(cursor, found, "saved_cmdlines", 8)
    cursor.what = "the list of CPUs"
    cpus = cursor.number(4)
    kind = cursor.text(16)
    top = _Buffer("")
    if kind.rstrip() == "options":
        _options_of_version_6(cursor, found, cpus)
        kind = cursor.text(16)
    if kind.rstrip() == "latency":
        raise UserError(f"{name} holds the text of a latency tracer and no events")
    if kind != "flyrecord":
        raise _CutShortError(cursor.what)
    found.buffers.insert(0, top)
    _places(cursor, top, cpus)


def _options_of_version_6(cursor: _Cursor, found: _Found, cpus: int) -> None:
    cursor.what = "the options"
    while number := cursor.number(2):
        option = cursor.taken(cursor.number(4))
        if number == BUFFER:
            there = cursor.elsewhere(option.number(8))
            buffer = _Buffer(option.text())
            if there.text(16) == "flyrecord":
                _places(there, buffer, cpus)
                found.buffers.append(buffer)
        else:
            _common_option(number, option, found)


def _refuse_many(cpus: int) -> None:
    if cpus > MOST_CPUS:
        raise UserError(
            f"a trace of {cpus:,} CPUs is damaged, or too large for rtproof: it reads {MOST_CPUS:,} at most"
        )


def _places(cursor: _Cursor, buffer: _Buffer, cpus: int) -> None:
    _refuse_many(cpus)
    for cpu in range(cpus):
        buffer.cpus.append((cpu, cursor.number(8), cursor.number(8)))
    if cursor.at + 8 < cursor.source.size:
        buffer.clock = _chosen_clock(cursor.sized(8))


# Version 7: sections, and options that say where each begins.


def _read_version_7(cursor: _Cursor, found: _Found, name: str) -> None:
    compression = cursor.text()
    cursor.text()
    if compression not in ("none", "zlib"):
        raise UserError(
            f"{name} is compressed with {one_line(compression[:20])}, which rtproof does not read: write it without "
            f"compression, with trace-cmd convert --compression none -i {name} -o FILE"
        )
    seen: set[int] = set()
    at = cursor.number(8)
    while at and at not in seen:
        seen.add(at)
        at = _options_of_version_7(_section(cursor, at, OPTIONS), cursor, found)


def _options_of_version_7(options: _Cursor, whole: _Cursor, found: _Found) -> int:
    """Read a section of options, and return where the next one begins; 0 if there is none."""
    options.what = "the options"
    while True:
        number = options.number(2)
        option = options.taken(options.number(4))
        if number == OPTIONS:
            return option.number(8)
        try:
            _option_of_version_7(number, option, whole, found)
        except _CutShortError as cut:
            found.missing.append(f"{cut} is cut short or damaged")


def _option_of_version_7(number: int, option: _Cursor, whole: _Cursor, found: _Found) -> None:
    if number == BUFFER:
        found.buffers.append(_buffer_of_version_7(option, whole))
    elif number in _SECTIONS:
        _SECTIONS[number](_section(whole, option.number(8), number), found)
    else:
        _common_option(number, option, found)


def _buffer_of_version_7(option: _Cursor, whole: _Cursor) -> _Buffer:
    option.what = "the list of buffers"
    head = whole.elsewhere(option.number(8))
    head.take(2)
    buffer = _Buffer(option.text(), compressed=bool(head.number(2) & COMPRESSED))
    buffer.clock = option.text()
    option.number(4)
    count = option.number(4)
    _refuse_many(count)
    for _ in range(count):
        buffer.cpus.append((option.number(4), option.number(8), option.number(8)))
    return buffer


def _section(whole: _Cursor, at: int, number: int) -> _Cursor:
    """The content of a section, uncompressed."""
    head = whole.elsewhere(at)
    head.what = SECTION_WORDS.get(number, "a section")
    found, flags = head.number(2), head.number(2)
    head.take(4)
    size = head.number(8)
    if found != number:
        raise _CutShortError(head.what)
    if not flags & COMPRESSED:
        return head.taken(size)
    return head.of(_unpacked(head))


def _unpacked(place: _Cursor) -> bytes:
    """The bytes of a piece that zlib packed. The file states both sizes before it."""
    packed, size = place.number(4), place.number(4)
    place.source.room.take(size)
    content = place.take(packed)
    try:
        return zlib.decompressobj().decompress(content, size) if size else b""  # zlib takes 0 for no bound
    except zlib.error:
        raise _CutShortError(place.what) from None


# What both versions have.


def _common_option(number: int, option: _Cursor, found: _Found) -> None:
    content = option.take(option.source.size).partition(b"\0")[0]
    if number == STATISTICS and (cpu := _CPU.match(content)):
        found.files[f"cpu{int(cpu[1])}/stats"] = content[cpu.end() :]
    elif number == CLOCK:
        found.clock = _chosen_clock(content)
    elif number == UNAME:
        found.system = content.decode(errors="replace")


def _chosen_clock(content: bytes) -> str:
    """The clock in brackets, or the only word."""
    found = re.search(rb"\[([\w-]{1,20})\]", content) or re.fullmatch(rb"\s*([\w-]{1,20})\s*", content)
    return found[1].decode() if found else ""


def _header_info(cursor: _Cursor, found: _Found) -> None:
    cursor.what = "the layout of the pages"
    for name in ("header_page", "header_event"):
        if cursor.text(16) != name:
            raise _CutShortError(cursor.what)
        found.files[name] = cursor.sized(8)


def _own_formats(cursor: _Cursor, found: _Found) -> None:
    cursor.what = "the formats of the events"
    for _ in range(cursor.number(4)):
        _keep_format("ftrace", cursor.sized(8), found)


def _formats(cursor: _Cursor, found: _Found) -> None:
    cursor.what = "the formats of the events"
    for _ in range(cursor.number(4)):
        system = cursor.text()
        for _ in range(cursor.number(4)):
            _keep_format(system, cursor.sized(8), found)


def _keep_format(system: str, content: bytes, found: _Found) -> None:
    name = _NAME.search(content)
    if name and _SYSTEM.fullmatch(system):
        found.files[f"events/{system}/{name[1].decode()}/format"] = content


def _sized_file(cursor: _Cursor, found: _Found, name: str, size: int) -> None:
    cursor.what = f"the file {name}"
    found.files[name] = cursor.sized(size)


_SECTIONS: dict[int, Callable[[_Cursor, _Found], None]] = {
    HEADER: _header_info,
    OWN_FORMATS: _own_formats,
    FORMATS: _formats,
    SYMBOLS: lambda cursor, found: _sized_file(cursor, found, "kallsyms", 4),
    PRINTS: lambda cursor, found: _sized_file(cursor, found, "printk_formats", 4),
    NAMES: lambda cursor, found: _sized_file(cursor, found, "saved_cmdlines", 8),
}
SECTION_WORDS = {
    OPTIONS: "the options",
    HEADER: "the layout of the pages",
    OWN_FORMATS: "the formats of the events",
    FORMATS: "the formats of the events",
    SYMBOLS: "the file kallsyms",
    PRINTS: "the file printk_formats",
    NAMES: "the file saved_cmdlines",
}


def _take_pages(cursor: _Cursor, found: _Found, name: str) -> None:
    """Keep the pages of the buffer that has the most. Those of others have events of their own."""
    if not found.buffers:
        return
    buffer = max(found.buffers, key=lambda each: each.size)
    others = [each for each in found.buffers if each is not buffer and each.size]
    if others:
        named = ", ".join(one_line(each.name) or "the one at the top" for each in others)
        found.missing.append(f"{name} has {quantity(len(others), 'other buffer')}, which are not used: {named}")
    found.clock = buffer.clock or found.clock
    once = Room(cursor.source.size, OVERLAPPING)
    for cpu, at, size in buffer.cpus:
        taken = io.BytesIO()
        taken.writelines(_pages(cursor, buffer, at, size, once))
        pages = taken.getvalue()
        found.files.setdefault(f"cpu{cpu}/stats", b"")
        found.files[f"cpu{cpu}/raw"] = pages
        if len(pages) < size and not buffer.compressed:
            found.missing.append(f"{name} has only {len(pages):,} of {size:,} bytes of the events of CPU {cpu}")


def _pages(cursor: _Cursor, buffer: _Buffer, at: int, size: int, once: Room) -> Iterator[bytes]:
    """The pages of a CPU, as far as they are there. once: each byte of the file belongs to one CPU."""
    place = cursor.elsewhere(at)
    if not buffer.compressed:
        there = max(min(size, cursor.source.size - at), 0)
        once.take(there)
        yield from (place.take(min(PIECE_BYTES, there - done)) for done in range(0, there, PIECE_BYTES))
        return
    place.what = "the events"
    try:
        for _ in range(place.number(4) if size else 0):
            begin = place.at
            yield _unpacked(place)
            once.take(place.at - begin)
    except _CutShortError:
        return
