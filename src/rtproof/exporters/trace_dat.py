# SPDX-License-Identifier: Apache-2.0
"""The kernel's events during a run for ``trace-cmd report`` and KernelShark: a trace.dat of version 6.

Layout: trace-cmd.dat.v6(5). The pages of the buffers are those of the target's kernel, byte for byte.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from struct import Struct

from rtproof import files
from rtproof.analysis import tracefile
from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import quantity
from rtproof.errors import UserError
from rtproof.exporters import _common
from rtproof.record import Record

SUFFIX = ".trace.dat"
OPTIONS: dict[str, str] = {}
NEEDS = "a trace (rtproof run --trace)"
MAGIC = b"\x17\x08\x44tracing6\0"
CLOCK_OPTION = 7
LARGEST_PAGE = 1 << 26
"""Bytes; those of kernels have 4 KiB to 64 KiB, or what somebody set."""
FORMAT = re.compile(r"events/([^/]+)/[^/]+/format")
FIELD = re.compile(r"field: *[\w ]*?(\w+);\s*offset:(\d+);\s*size:(\d+);")


class Words:
    """Numbers in the byte order of the target, and what goes with a size in front of it."""

    def __init__(self, order: str) -> None:
        self._structs = {size: Struct(order + code) for size, code in ((2, "H"), (4, "I"), (8, "Q"))}

    def number(self, value: int, size: int) -> bytes:
        return self._structs[size].pack(value)

    def sized(self, content: bytes, size: int = 8) -> bytes:
        return self.number(len(content), size) + content


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the pages of each CPU's buffer behind a header that says how to read them."""
    record = analysis.record
    _common.require_trace(record)
    page = page_size(record)
    pages = [tracefile.content(record, f"cpu{cpu}/raw") for cpu in tracefile.cpus(record)]
    if any(len(content) % page for content in pages):
        raise UserError("the record lost a part of its trace, so there is no trace.dat to be made of it")
    with files.new_path(path), path.open("xb") as file:
        file.write(header(record, [len(content) for content in pages], page))
        file.writelines(pages)
    count = quantity(sum(map(len, pages)) // page, "page")
    return f"{path}: {count} of {page} bytes from {quantity(len(pages), 'CPU')}"


def page_size(record: Record) -> int:
    """Bytes of a page of the buffer: up to the end of its last field."""
    fields = _fields(record)
    page = sum(fields.get("data", ()))
    if not 0 < page <= LARGEST_PAGE or fields.get("commit", (0, 0))[1] not in (4, 8):
        raise UserError("the record does not tell how the pages of its trace are laid out")
    return page


def _fields(record: Record) -> dict[str, tuple[int, int]]:
    """Offset and size of each field of a page."""
    found = FIELD.finditer(tracefile.text(record, "header_page"))
    return {name: (int(offset), int(size)) for name, offset, size in (match.groups() for match in found)}


def header(record: Record, sizes: list[int], page: int) -> bytes:
    """Everything in front of the pages, and zeros up to the beginning of one."""
    big = tracefile.about(record).get("endian") == "big"
    words = Words(">" if big else "<")
    start = MAGIC + bytes([big, _fields(record)["commit"][1]]) + words.number(page, 4)
    start += b"".join(_descriptions(record, words))
    start += words.number(len(sizes), 4) + _options(record, words) + b"flyrecord\0"
    first = -(-(len(start) + 16 * len(sizes)) // page) * page
    for size in sizes:
        start += words.number(first, 8) + words.number(size, 8)
        first += size
    return start + bytes(-len(start) % page)


def _descriptions(record: Record, words: Words) -> Iterator[bytes]:
    """Formats of pages, of events and of the kernel's own prints, and names of tasks; no addresses of functions."""
    for name in ("header_page", "header_event"):
        yield name.encode() + b"\0" + words.sized(tracefile.content(record, name))
    formats = {name: match[1] for name in tracefile.names(record) if (match := FORMAT.fullmatch(name))}
    own = [name for name, system in formats.items() if system == "ftrace"]
    yield words.number(len(own), 4) + b"".join(words.sized(tracefile.content(record, name)) for name in own)
    yield from _systems(record, words, {name: system for name, system in formats.items() if name not in own})
    yield words.number(0, 4)
    yield words.sized(tracefile.content(record, "printk_formats"), 4)
    yield words.sized(tracefile.content(record, "saved_cmdlines"))


def _systems(record: Record, words: Words, formats: dict[str, str]) -> Iterator[bytes]:
    names = sorted(formats, key=lambda name: formats[name])
    systems = [(system, list(group)) for system, group in groupby(names, key=lambda name: formats[name])]
    yield words.number(len(systems), 4)
    for system, group in systems:
        yield system.encode() + b"\0" + words.number(len(group), 4)
        yield from (words.sized(tracefile.content(record, name)) for name in group)


def _options(record: Record, words: Words) -> bytes:
    clock = tracefile.content(record, "trace_clock").strip() + b"\0"
    return b"options  \0" + words.number(CLOCK_OPTION, 2) + words.sized(clock, 4) + words.number(0, 2)
