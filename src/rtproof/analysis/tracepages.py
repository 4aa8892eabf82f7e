# SPDX-License-Identifier: Apache-2.0
"""Pages of the kernel's ring buffer, taken apart into events: the target's own bytes, before anybody made text of them.

Layout: the files ``header_page`` and ``header_event`` of tracefs; Linux, kernel/trace/ring_buffer.c.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from rtproof.analysis import tracefile
from rtproof.errors import UserError
from rtproof.record import Record

LARGEST_PAGE = 1 << 26
"""Bytes; those of kernels have 4 KiB to 64 KiB, or what somebody set."""
FIELD = re.compile(r"field: *[\w ]*?(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);")
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
class Layout:
    """Bytes. ``order``: that of the target, as struct has it. ``page``: of one; ``data``: where its events begin."""

    order: str
    page: int
    commit: int
    commit_size: int
    data: int

    @property
    def big(self) -> bool:
        return self.order == ">"


def fields(text: str) -> dict[str, tuple[int, int]]:
    """Offset and size of each field, by its name, of a page or of an event."""
    found = FIELD.finditer(text)
    return {name: (int(offset), int(size)) for name, offset, size in (match.groups() for match in found)}


def layout(record: Record) -> Layout:
    """How the pages of a record's trace are laid out; UserError where it does not tell."""
    known = fields(tracefile.text(record, "header_page"))
    data, commit = known.get("data", (0, 0)), known.get("commit", (0, 0))
    page = sum(data)
    if not 0 < page <= LARGEST_PAGE or commit[1] not in (4, 8):
        raise UserError("the record does not tell how the pages of its trace are laid out")
    order = ">" if tracefile.about(record).get("endian") == "big" else "<"
    return Layout(order, page, commit[0], commit[1], data[0])


def events(pages: bytes, of: Layout) -> Iterator[memoryview]:
    """The content of each event, in their order; it begins with two bytes of the event's id."""
    whole = memoryview(pages)
    commit = Struct(of.order + ("I" if of.commit_size == 4 else "Q"))
    for at in range(0, len(pages), of.page):
        (length,) = commit.unpack_from(whole, at + of.commit)
        first = at + of.data
        yield from _events_of(whole[first : min(first + (length & COMMIT_MASK), at + of.page)], of)


def _events_of(page: memoryview, of: Layout) -> Iterator[memoryview]:
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
    text = tracefile.text(record, PRINT)
    number, (offset, size) = _ID.search(text), fields(text).get("ip", (0, 0))
    lines = tracefile.lines(record)
    if not number or size not in (4, 8) or not any(line.event == tracefile.MARK for line in lines):
        return {}
    of = layout(record)
    wanted = int(number[1]).to_bytes(2, "big" if of.big else "little")
    found: dict[int, str] = {}
    for cpu in tracefile.cpus(record):
        named = [line.event for line in lines if line.cpu == cpu]
        raw = list(events(tracefile.content(record, f"cpu{cpu}/raw"), of))
        if len(raw) == len(named):
            found |= {
                int.from_bytes(event[offset : offset + size], "big" if of.big else "little"): name
                for event, name in zip(raw, named, strict=True)
                if event[:2] == wanted
            }
    return {address: tracefile.MARKER if name == tracefile.MARK else name for address, name in found.items()}
