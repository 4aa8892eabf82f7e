# SPDX-License-Identifier: Apache-2.0
"""Find a function in a program file: where its first instruction stands in the file, as the kernel's uprobes want it.

A file may be made to do harm: no size that it states is believed before the file is seen to be as long.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.core.files import refuse_what_waits
from rtproof.core.printable import one_line

MOST_SECTION = 1 << 28
"""No table of symbols or of names is larger; that of a large browser with debug symbols has less than half of this."""
MOST_HEADERS = 1 << 16
EXECUTABLE_FILES = (2, 3)
"""``e_type`` of a program at fixed addresses, and of one that may be anywhere, which libraries are too."""
ARM, PPC64 = 40, 21
LOADED, MAY_RUN = 1, 1
"""``p_type`` and the bit in ``p_flags`` of a segment with code."""
FULL_TABLE = 2
SYMBOL_TABLES = (FULL_TABLE, 11)
"""``sh_type`` of the full table of symbols and of that which stays in a stripped file."""
CHOOSES = 10
"""The type of a symbol whose code chooses a function when the file is loaded, and is not entered again."""
OF_CODE = (0, 2, CHOOSES)
"""Types of symbols: none, as in assembler; a function; CHOOSES."""
MOST_PLACES = 5
"""So many places of functions with one name are shown."""


NARROW = ("16xHH8xIII2xHHHH2x", "III4xI4xI4x", "4xI8xIII12x", (0, 4, 1, 2, 3), ("4", [0, 4, 8, 12, 13, 14], 16))
WIDE = ("16xHH12xQQI2xHHHH2x", "IIQQ8xQ16x", "4xI16xQQI20x", (0, 1, 2, 3, 4), ("8", [0, 8, 16, 4, 5, 6], 24))
"""How files of 32 and 64 bits are laid out: header, segment, section, the order of the fields of a segment, symbol.

header: e_type, e_machine, e_phoff, e_shoff, e_flags, e_phentsize, e_phnum, e_shentsize, e_shnum. segment, in its order:
p_type, p_flags, p_offset, p_vaddr, p_filesz. section: sh_type, sh_offset, sh_size, sh_link. symbol: the bytes of an
address, where its fields lie, its size.
"""


def function_offset(path: Path, name: str, plus: int = 0) -> int:
    """Where a function, and ``plus`` bytes behind its begin, stands in the file. UserError if it cannot be told."""
    with ElfFile(path) as file:
        symbol = file.symbol(name)
        size = int(symbol["size"])  # 0 if the file does not tell
        if size and plus >= size:
            raise UserError(f"+{plus:#x} is not in {one_line(name)}() of {path}, which has {size} bytes")
        return file.offset_of(file.entry(symbol, name) + plus, name)


def checked_offset(path: Path, offset: int) -> int:
    """The same offset in the file. UserError if there is no code."""
    with ElfFile(path) as file:
        if not any(begin <= offset < begin + size for _, begin, size in file.segments):
            raise UserError(f"{path} has no code at {offset:#x}")
        return offset


class ElfFile:
    """An ELF program or library. UserError, with one sentence, for a file that is none or cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            refuse_what_waits(path)
            if path.is_dir():
                raise UserError(f"{path} is a folder, so it has no functions to mark")
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as problem:
            raise UserError(f"cannot read {path}: {problem.strerror}") from None
        try:
            with self._telling_damage():
                self._read_headers()
        except UserError:
            os.close(self._fd)
            raise

    def __enter__(self) -> "ElfFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @contextmanager
    def _telling_damage(self) -> Iterator[None]:
        try:
            yield
        except (struct.error, ValueError, OSError):
            raise UserError(f"{self._path} is damaged: a part of it lies outside of the file") from None

    def _read(self, offset: int, size: int) -> bytes:
        """So many bytes of the file. ValueError if it has not so many there."""
        if offset + size > self._size:
            raise ValueError
        if size > MOST_SECTION:
            raise UserError(
                f"{self._path} has a table of {size >> 20:,} MiB, and no more than {MOST_SECTION >> 20} MiB are read: "
                "give +OFFSET, the place in the file, or strip its debug symbols"
            )
        found = os.pread(self._fd, size, offset)
        if len(found) != size:
            raise ValueError
        return found

    def _read_headers(self) -> None:
        self._size = os.fstat(self._fd).st_size
        ident = os.pread(self._fd, 16, 0)
        if ident[:4] != b"\x7fELF" or ident[4:5] not in (b"\1", b"\2") or ident[5:6] not in (b"\1", b"\2"):
            raise UserError(f"{self._path} is no ELF program, so it has no functions to mark")
        order = "<" if ident[5] == 1 else ">"
        *forms, segment_order, (address, offsets, size) = WIDE if ident[4] == 2 else NARROW
        header, segment, section = (Struct(order + form) for form in forms)
        formats = [f"{order}u4", *2 * (f"{order}u{address}",), "u1", "u1", f"{order}u2"]
        names = ["name", "value", "size", "info", "other", "section"]
        self._symbol = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
        kind, self._machine, *places = header.unpack(self._read(0, header.size))
        segments_at, sections_at, self._flags, segment_size, segment_count, section_size, section_count = places
        if kind not in EXECUTABLE_FILES:
            raise UserError(f"{self._path} is no program and no library: it must be linked first")
        segments = self._table(segments_at, segment_size, segment_count, segment)
        loaded = ([row[place] for place in segment_order] for row in segments)
        # Of each part of the file that is loaded and may run, in bytes.
        self.segments = tuple(
            (address, offset, size)
            for kind, flags, offset, address, size in loaded
            if kind == LOADED and flags & MAY_RUN
        )
        if sections_at and not section_count:  # too many for the header: the first section has their number
            section_count = section.unpack(self._read(sections_at, section.size))[2]
        self._sections = self._table(sections_at, section_size, section_count, section)

    def _table(self, at: int, size: int, count: int, row: Struct) -> list[tuple[int, ...]]:
        if not at or not count:
            return []
        if size != row.size or count > MOST_HEADERS:
            raise ValueError
        return list(row.iter_unpack(self._read(at, size * count)))

    def symbol(self, name: str) -> np.void:
        """The row of the symbol of a function. UserError if there is none, or more than one."""
        with self._telling_damage():
            rows = [_with_name(_of_code(some), names, os.fsencode(name)) for some, names in self._symbol_tables()]
        if not rows:
            raise UserError(f"{self._path} has no table of symbols: give +OFFSET, the place in the file")
        every = np.concatenate(rows)
        firsts = every[np.sort(np.unique(every["value"], return_index=True)[1])]
        if not firsts.size:
            stripped = all(kind != FULL_TABLE for kind, *_ in self._sections)
            more = "; it is stripped: give +OFFSET, the place in the file, or keep its symbols" if stripped else ""
            raise UserError(f"{self._path} has no function {one_line(name)!r}{more}")
        if firsts.size > 1:
            addresses = map(int, firsts["value"][:MOST_PLACES])
            places = ", ".join(f"+{self.offset_of(address, name):#x}" for address in addresses)
            raise UserError(
                f"{self._path} has {firsts.size} functions {one_line(name)!r}: give one by its place, {places}"
            )
        found: np.void = firsts[0]
        return found

    def function_at(self, offset: int) -> str | None:
        """The function whose code stands at a place of the file; None if none is told."""
        with self._telling_damage():
            return next(self._names_at(offset), None)

    def _names_at(self, offset: int) -> Iterator[str]:
        segment = next((one for one in self.segments if one[1] <= offset < one[1] + one[2]), None)
        for symbols, names in self._symbol_tables() if segment else ():
            code = _of_code(symbols)
            begins = code["value"].astype(np.uint64)
            if self._machine == ARM:
                begins &= ~np.uint64(1)  # it says whether the code is Thumb
            address = np.uint64(offset - segment[1] + segment[0]) if segment else np.uint64(0)
            for at in np.flatnonzero((begins <= address) & (address - begins < code["size"])):
                begin = int(code["name"][at])
                yield names[begin : names.index(b"\0", begin)].decode(errors="replace")

    def _symbol_tables(self) -> Iterator[tuple[NDArray[np.void], bytes]]:
        """Each table of symbols with its names. A file has at most one of each kind."""
        for kind, offset, size, link in {row[0]: row for row in self._sections if row[0] in SYMBOL_TABLES}.values():
            if link >= len(self._sections):
                raise ValueError(f"there is no section {link} for the names of the table of kind {kind}")
            rows = np.frombuffer(self._read(offset, size - size % self._symbol.itemsize), self._symbol)
            yield rows, self._read(self._sections[link][1], self._sections[link][2])

    def entry(self, symbol: np.void, name: str) -> int:
        """The address at which a function is entered, however it is called. UserError where uprobes cannot be."""
        address, which = int(symbol["value"]), f"{one_line(name)}() of {self._path}"
        if symbol["info"] & 15 == CHOOSES:
            raise UserError(f"{which} only chooses another function when it is loaded: name that one")
        if self._machine == ARM and address & 1:
            raise UserError(f"{which} is Thumb code, which has no uprobes: build it with -marm")
        if self._machine == PPC64:
            if self._flags & 3 != 2:
                raise UserError(f"the functions of {self._path} are found through descriptors: give +OFFSET")
            return address + ((1 << (int(symbol["other"]) >> 5 & 7)) >> 2 << 2)
        return address

    def offset_of(self, address: int, name: str) -> int:
        """The place in the file of what is loaded at an address. UserError if no code is."""
        for begin, offset, size in self.segments:
            if begin <= address < begin + size:
                return address - begin + offset
        raise UserError(f"{one_line(name)} of {self._path} is no function: no code is at its address {address:#x}")


def _with_name(code: NDArray[np.void], names: bytes, name: bytes) -> NDArray[np.void]:
    """The symbols that have this name, which may be the end of a longer one."""
    letters, begins = np.frombuffer(names, np.uint8), code["name"].astype(np.int64)
    places = np.flatnonzero(begins + len(name) < letters.size)
    for step, letter in enumerate(name + b"\0"):
        places = places[letters[begins[places] + step] == letter]
    return code[places]


def _of_code(symbols: NDArray[np.void]) -> NDArray[np.void]:
    """The symbols that stand for code of the file itself."""
    code: NDArray[np.bool_] = np.isin(symbols["info"] & 15, OF_CODE) & (symbols["section"] != 0)
    return np.extract(code, symbols)
