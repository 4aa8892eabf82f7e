# SPDX-License-Identifier: Apache-2.0
"""A trace.dat of trace-cmd, versions 6 and 7: its parts as the files that a record of ours keeps of a trace.

trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) describe the layouts. Compression by zlib is read, others are refused by
name. A file that was cut short yields what is whole in it, and sentences that say what is missing.
"""

import hashlib
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from rtproof.core.bounded import MOST_BYTES, Room
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.summary.imported_samples import ImportedTrace

MAGIC = b"\x17\x08\x44tracing"
MOST_CPUS = 4096
TOO_LARGE = (
    f"{{0}} is damaged, or too large: its events and formats take more than {MOST_BYTES >> 20} MiB. Cut a shorter "
    "trace from it with trace-cmd split"
)
OVERLAPPING = "the trace is damaged, or too large for rtproof: the events of its CPUs are more than the file"
COMPRESSED = 1
VERSIONS = ("6", "7")
OPTIONS, STATISTICS, BUFFER, CLOCK, UNAME, HEADER, OWN_FORMATS, FORMATS = 0, 2, 3, 4, 5, 16, 17, 18
SIZED_FILES = {19: ("kallsyms", 4), 20: ("printk_formats", 4), 21: ("saved_cmdlines", 8)}
"""Sections that hold one file, and how many bytes its size takes."""
SECTIONS = {
    HEADER: "the layout of the pages",
    OWN_FORMATS: "the formats of the events",
    FORMATS: "the formats of the events",
    **{number: f"the file {name}" for number, (name, _) in SIZED_FILES.items()},
}
"""What each section holds, in the order of version 6."""
OTHER_UNITS = ("counter", "uptime", "x86-tsc", "ppc-tb")
"""Clocks of the kernel's trace that count something else than nanoseconds."""
_NAME = re.compile(rb"(?m)^name: *([\w.-]{1,100})$")
_SYSTEM = re.compile(r"[\w.-]{1,100}")
_CPU = re.compile(rb"CPU: *(\d{1,4})\n")


class _CutShortError(Exception):
    """The file ends where something must follow. The message says what."""


@dataclass
class _Cursor:
    """Reads numbers, texts and pieces of a file or of some bytes, one after the other.

    room: for all that is kept of the file. what: is being read. order: of the bytes.
    """

    file: BinaryIO
    room: Room
    order: Literal["big", "little"]
    at: int = 0
    what: str = "the header"

    @property
    def size(self) -> int:
        return self.file.seek(0, io.SEEK_END)

    def piece(self, size: int) -> bytes:
        """The next bytes, or fewer at the end, without taking them."""
        if self.at >= self.size:
            return b""
        self.file.seek(self.at)
        return self.file.read(size)

    def take(self, size: int) -> bytes:
        if self.at + size > self.size:
            raise _CutShortError(self.what)
        self.room.take(size)
        found = self.piece(size)
        self.at += size
        return found

    def taken(self, size: int) -> "_Cursor":
        """A cursor of its own for the next piece."""
        return replace(self, file=io.BytesIO(self.take(size)), at=0)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), self.order)

    def sized(self, size: int) -> bytes:
        return self.take(self.number(size))

    def text(self, most: int = 256) -> str:
        """A text up to its zero. What is longer is damaged."""
        end = self.piece(most).find(b"\0")
        if end < 0:
            raise _CutShortError(self.what)
        return self.take(end + 1)[:-1].decode(errors="replace")


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
    """What has been read so far. name: of the file."""

    name: str
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
    found = _Found(str(path))
    try:
        with path.open("rb") as file:
            cursor = _Cursor(file, Room(MOST_BYTES, TOO_LARGE.format(path)), "little")
            try:
                (_read_version_6 if _version(cursor, path) == "6" else _read_version_7)(cursor, found)
            except _CutShortError as cut:
                found.missing.append(f"{path} is cut short or damaged: it ends within {cut}")
            _take_pages(cursor, found)
            _check(found)
            file.seek(0)
            identity = hashlib.file_digest(file, "sha256").digest()[:16]
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None
    return ImportedTrace("trace-cmd", found.files, cursor.order == "big", identity, tuple(found.missing), found.system)


def _version(cursor: _Cursor, path: Path) -> str:
    """Read the part that all versions have, and return the version. UserError for a version that is not known."""
    if cursor.piece(len(MAGIC)) != MAGIC:
        raise UserError(f"{path} is no trace.dat of trace-cmd")
    cursor.take(len(MAGIC))
    version = cursor.text(16)
    if version not in VERSIONS:
        raise UserError(f"{path} is a trace.dat of version {version[:16]!r}, and versions 6 and 7 can be read")
    cursor.order = "big" if cursor.number(1) else "little"
    cursor.take(1 + 4)  # the size of a long in user space, and the size of a page
    return version


def _check(found: _Found) -> None:
    """UserError if the trace cannot be used at all."""
    name, why = found.name, f" ({found.missing[0]})" if found.missing else ""
    if "header_page" not in found.files or not any(path.startswith("events/sched/") for path in found.files):
        raise UserError(f"{name} does not say how its events are laid out{why}")
    if not any(path.endswith("/raw") for path in found.files):
        raise UserError(f"{name} holds no events{why}")
    if found.clock in OTHER_UNITS:
        raise UserError(f"{name} has the clock {found.clock}, which does not count nanoseconds: record with -C mono")
    found.files["trace_clock"] = f"[{found.clock or 'local'}]\n".encode()


# Version 6: one part after the other.


def _read_version_6(cursor: _Cursor, found: _Found) -> None:
    for number, cursor.what in SECTIONS.items():
        _read_section(number, cursor, found)
    cursor.what = "the list of CPUs"
    cpus = cursor.number(4)
    kind = cursor.text(16)
    if kind.rstrip() == "options":
        cursor.what = "the options"
        while number := cursor.number(2):
            option = cursor.taken(cursor.number(4))
            if number == BUFFER:
                there = replace(cursor, at=option.number(8))
                buffer = _Buffer(option.text())
                if there.text(16) == "flyrecord":
                    _places(there, buffer, cpus)
                    found.buffers.append(buffer)
            else:
                _read_option(number, option, found)
        kind = cursor.text(16)
    if kind.rstrip() == "latency":
        raise UserError(f"{found.name} holds the text of a latency tracer and no events")
    if kind != "flyrecord":
        raise _CutShortError(cursor.what)
    found.buffers.insert(0, _Buffer(""))
    _places(cursor, found.buffers[0], cpus)


def _refuse_many(cpus: int) -> None:
    if cpus > MOST_CPUS:
        raise UserError(
            f"a trace of {cpus:,} CPUs is damaged, or too large for rtproof: it reads {MOST_CPUS:,} at most"
        )


def _places(cursor: _Cursor, buffer: _Buffer, cpus: int) -> None:
    _refuse_many(cpus)
    for cpu in range(cpus):
        buffer.cpus.append((cpu, cursor.number(8), cursor.number(8)))
    if cursor.at + 8 < cursor.size:
        buffer.clock = _chosen_clock(cursor.sized(8))


# Version 7: sections, and options that say where each begins.


def _read_version_7(cursor: _Cursor, found: _Found) -> None:
    compression = cursor.text()
    cursor.text()
    if compression not in ("none", "zlib"):
        raise UserError(
            f"{found.name} is compressed with {one_line(compression[:20])}, which rtproof does not read: write it "
            f"without compression, with trace-cmd convert --compression none -i {found.name} -o FILE"
        )
    seen: set[int] = set()
    at = cursor.number(8)
    while at and at not in seen:
        seen.add(at)
        options = _section(cursor, at, OPTIONS)
        while (number := options.number(2)) != OPTIONS:
            option = options.taken(options.number(4))
            try:
                if number == BUFFER:
                    found.buffers.append(_buffer_of_version_7(option, cursor))
                elif number in SECTIONS:
                    _read_section(number, _section(cursor, option.number(8), number), found)
                else:
                    _read_option(number, option, found)
            except _CutShortError as cut:
                found.missing.append(f"{cut} is cut short or damaged")
        at = options.taken(options.number(4)).number(8)


def _buffer_of_version_7(option: _Cursor, whole: _Cursor) -> _Buffer:
    option.what = "the list of buffers"
    head = replace(whole, at=option.number(8))
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
    head = replace(whole, at=at, what=SECTIONS.get(number, "the options"))
    found, flags = head.number(2), head.number(2)
    head.take(4)
    size = head.number(8)
    if found != number:
        raise _CutShortError(head.what)
    return replace(head, file=io.BytesIO(_unpacked(head)), at=0) if flags & COMPRESSED else head.taken(size)


def _unpacked(place: _Cursor) -> bytes:
    """The bytes of a piece that zlib packed. The file states both sizes before it."""
    packed, size = place.number(4), place.number(4)
    place.room.take(size)
    content = place.take(packed)
    try:
        return zlib.decompressobj().decompress(content, size) if size else b""  # zlib takes 0 for no bound
    except zlib.error:
        raise _CutShortError(place.what) from None


# What both versions have.


def _read_option(number: int, option: _Cursor, found: _Found) -> None:
    content = option.take(option.size).partition(b"\0")[0]
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


def _read_section(number: int, cursor: _Cursor, found: _Found) -> None:
    if number == HEADER:
        for name in ("header_page", "header_event"):
            if cursor.text(16) != name:
                raise _CutShortError(cursor.what)
            found.files[name] = cursor.sized(8)
    elif number in SIZED_FILES:
        name, size = SIZED_FILES[number]
        found.files[name] = cursor.sized(size)
    else:
        for _ in range(1 if number == OWN_FORMATS else cursor.number(4)):
            system = "ftrace" if number == OWN_FORMATS else cursor.text()
            for _ in range(cursor.number(4)):
                content = cursor.sized(8)
                event = _NAME.search(content)
                if event and _SYSTEM.fullmatch(system):
                    found.files[f"events/{system}/{event[1].decode()}/format"] = content


def _take_pages(cursor: _Cursor, found: _Found) -> None:
    """Keep the pages of the buffer that has the most. Those of others have events of their own."""
    if not found.buffers:
        return
    name, buffer = found.name, max(found.buffers, key=lambda each: each.size)
    others = [each for each in found.buffers if each is not buffer and each.size]
    if others:
        named = ", ".join(one_line(each.name) or "the one at the top" for each in others)
        found.missing.append(f"{name} has {quantity(len(others), 'other buffer')}, which are not used: {named}")
    found.clock = buffer.clock or found.clock
    once = Room(cursor.size, OVERLAPPING)
    for cpu, at, size in buffer.cpus:
        taken = io.BytesIO()  # a list of all chunks would take their memory twice
        taken.writelines(_pages(replace(cursor, at=at, what="the events"), buffer, size, once))
        pages = taken.getvalue()
        found.files.setdefault(f"cpu{cpu}/stats", b"")
        found.files[f"cpu{cpu}/raw"] = pages
        if len(pages) < size and not buffer.compressed:
            found.missing.append(f"{name} has only {len(pages):,} of {size:,} bytes of the events of CPU {cpu}")


def _pages(place: _Cursor, buffer: _Buffer, size: int, once: Room) -> Iterator[bytes]:
    """The pages of a CPU, as far as they are there. once: each byte of the file belongs to one CPU."""
    if not buffer.compressed:
        there = max(min(size, place.size - place.at), 0)
        once.take(there)
        yield place.take(there) if there else b""
        return
    try:
        for _ in range(place.number(4) if size else 0):
            begin = place.at
            yield _unpacked(place)
            once.take(place.at - begin)
    except _CutShortError:
        return
