# SPDX-License-Identifier: Apache-2.0
"""Functions in program files: of both classes and byte orders, loaded anywhere or not, and files made to do harm."""

import struct
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtproof.core.elf_symbols import ElfFile, checked_offset, function_offset
from rtproof.core.errors import UserError

X86, ARM, PPC64 = 62, 40, 21
FUNC, OBJECT, TLS, CHOOSES = 2, 1, 6, 10
Symbol = tuple[str, int, int]
"""Name, address and type."""
Symbols = tuple[Symbol, ...]
BASE, CODE_AT = 0x400000, 0x1000


@dataclass(frozen=True)
class Elf:
    """A program whose code is at CODE_AT in the file, and at BASE + CODE_AT in memory. table: the type of its table."""

    wide: bool = True
    order: str = "<"
    machine: int = X86
    kind: int = 2
    flags: int = 0
    table: int = 2
    other: int = 0

    def of(self, symbols: Symbols, names: bytes | None = None) -> bytes:
        """The file. names: of all symbols, where these are not one behind the other."""
        strings = names or b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in symbols)
        rows = b"".join(self._symbol(strings, each) for each in symbols)
        head, section_size = (64, 64) if self.wide else (52, 40)
        sections_at = head + (56 if self.wide else 32)
        rows_at = sections_at + 3 * section_size
        tables = ((self.table, rows_at, len(rows)), (3, rows_at + len(rows), len(strings)))
        whole = self._header(head, sections_at, section_size) + self._segment() + bytes(section_size)
        whole += b"".join(self._section(*each) for each in tables) + rows + strings
        return whole.ljust(CODE_AT + 0x800, b"\x90")

    def _header(self, head: int, sections_at: int, section_size: int) -> bytes:
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if self.order == "<" else 2, 1]) + bytes(9)
        form = f"{self.order}HHI{'QQQ' if self.wide else 'III'}IHHHHHH"
        sizes = (head, sections_at - head, 1, section_size, 3, 0)
        return ident + struct.pack(form, self.kind, self.machine, 1, 0, head, sections_at, self.flags, *sizes)

    def _segment(self) -> bytes:
        places = (CODE_AT, BASE + CODE_AT, BASE + CODE_AT, 0x800, 0x800)
        if self.wide:
            return struct.pack(f"{self.order}IIQQQQQQ", 1, 5, *places, 0x1000)
        return struct.pack(f"{self.order}IIIIIIII", 1, *places, 5, 0x1000)

    def _section(self, kind: int, at: int, size: int) -> bytes:
        form = "IIQQQQIIQQ" if self.wide else "IIIIIIIIII"
        return struct.pack(self.order + form, 0, kind, 0, 0, at, size, 2, 0, 1, 24 if self.wide else 16)

    def _symbol(self, strings: bytes, symbol: Symbol) -> bytes:
        name, address, kind = symbol
        at, section = strings.index(name.encode() + b"\0"), 1 if address else 0
        if self.wide:
            return struct.pack(f"{self.order}IBBHQQ", at, kind, self.other, section, address, 0x20)
        return struct.pack(f"{self.order}IIIBBH", at, address, 0x20, kind, self.other, section)


CYCLE: Symbols = (("cycle", BASE + CODE_AT + 0x40, FUNC),)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "program"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("table", [2, 11])
def test_a_function_is_found_whatever_the_file(tmp_path: Path, wide: bool, order: str, kind: int, table: int) -> None:
    path = written(tmp_path, Elf(wide=wide, order=order, kind=kind, table=table).of(CYCLE))
    assert function_offset(path, "cycle") == CODE_AT + 0x40
    assert function_offset(path, "cycle", 0x1F) == CODE_AT + 0x5F
    assert checked_offset(path, CODE_AT + 1) == CODE_AT + 1


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("wide", [True, False])
def test_the_function_at_a_place_is_told(tmp_path: Path, machine: int, wide: bool) -> None:
    thumb = 1 if machine == ARM else 0
    symbols = (("before", BASE + CODE_AT + 0x20, FUNC), ("cycle", BASE + CODE_AT + 0x40 + thumb, FUNC))
    with ElfFile(written(tmp_path, Elf(wide=wide, machine=machine).of(symbols))) as file:
        found = [file.function_at(CODE_AT + at) for at in (0x1F, 0x3F, 0x40, 0x5F, 0x60, 0x900)]
    assert found == [None, "before", "cycle", "cycle", None, None]


def test_a_place_in_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, Elf().of(CYCLE))
    with ElfFile(path) as file:
        path.write_bytes(path.read_bytes()[:0x148])
        with pytest.raises(UserError, match="is damaged"):
            file.function_at(CODE_AT + 0x40)


def test_a_name_may_be_the_end_of_another(tmp_path: Path) -> None:
    symbols = (("motorcycle", BASE + CODE_AT, FUNC), ("cycle", BASE + CODE_AT + 0x80, FUNC))
    path = written(tmp_path, Elf().of(symbols, names=b"\0motorcycle\0"))
    assert function_offset(path, "cycle") == CODE_AT + 0x80
    assert function_offset(path, "motorcycle") == CODE_AT


def test_a_function_of_powerpc_is_entered_behind_its_first_instructions(tmp_path: Path) -> None:
    path = written(tmp_path, Elf(machine=PPC64, flags=2, other=3 << 5).of(CYCLE))
    assert function_offset(path, "cycle") == CODE_AT + 0x48


def both(first: int, second: int) -> Symbols:
    return (("twice", BASE + CODE_AT + first, FUNC), ("twice", BASE + CODE_AT + second, FUNC))


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"#!/bin/sh\n", "x", "is no ELF program"),
        (b"\x7fELF\2\1\1", "x", "is damaged: a part of it lies outside of the file"),
        (Elf(kind=1).of(CYCLE), "cycle", "is no program and no library: it must be linked first"),
        (Elf(table=11).of(CYCLE), "circle", "has no function 'circle'; it is stripped: give .OFFSET"),
        (Elf(table=1).of(CYCLE), "cycle", "has no table of symbols: give "),
        (Elf().of(both(0, 0x10)), "twice", r"has 2 functions 'twice': give one by its place, \+0x1000, \+0x1010"),
        (Elf().of((("cycle", BASE + CODE_AT, OBJECT),)), "cycle", "has no function 'cycle'"),
        (Elf().of((("cycle", BASE + 0x9000, FUNC),)), "cycle", "cycle of .* is no function: no code is at its address"),
        (Elf().of((("cycle", BASE + CODE_AT, CHOOSES),)), "cycle", r"cycle\(\) of .* only chooses another function"),
        (Elf(wide=False, machine=ARM).of((("cycle", BASE + CODE_AT + 1, FUNC),)), "cycle", "is Thumb code"),
        (Elf(machine=PPC64, flags=1).of(CYCLE), "cycle", "are found through descriptors: give"),
    ],
)
def test_what_has_no_such_function_is_refused(tmp_path: Path, content: bytes, name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        function_offset(written(tmp_path, content), name)


def test_what_is_no_file_or_no_code_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, Elf().of(CYCLE))
    for place, said in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "is a folder"),
        (Path("/dev/null"), "a device"),
    ):
        with pytest.raises(UserError, match=said):
            function_offset(place, "cycle")
    with pytest.raises(UserError, match=r"\+0x20 is not in cycle\(\) of .*, which has 32 bytes"):
        function_offset(path, "cycle", 0x20)
    with pytest.raises(UserError, match="has no code at 0x10"):
        checked_offset(path, 0x10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 0x1A0), st.integers(0, 255)), min_size=1, max_size=8), st.booleans())
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], wide: bool) -> None:
    content = bytearray(Elf(wide=wide).of(CYCLE))
    for at, value in changes:
        content[at] = value
    path = written(tmp_path, bytes(content))
    try:
        found = str(function_offset(path, "cycle"))
    except UserError as problem:
        found = str(problem)
    assert found.isdecimal() or "\n" not in found


def test_a_file_that_is_made_to_be_slow_is_refused_at_once(tmp_path: Path) -> None:
    """Names that are one long run of letters, and many symbols of one name: no loop goes over all pairs of them."""
    names = b"\0cycle\0" + b"c" * 4_000_000 + b"\0"
    content = Elf().of(tuple(("cycle", BASE + CODE_AT + at % 0x7F0, FUNC) for at in range(20_000)), names)
    begin = time.process_time()
    with pytest.raises(UserError, match="has 2032 functions 'cycle': give one by its place"):
        function_offset(written(tmp_path, content), "cycle")
    with pytest.raises(UserError, match=r"has no function 'c'$"):
        function_offset(written(tmp_path, content), "c")
    with pytest.raises(UserError, match=r"has no function 'ccc'$"):
        function_offset(written(tmp_path, content), "ccc")
    assert time.process_time() - begin < 20
