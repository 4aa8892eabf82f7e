# SPDX-License-Identifier: Apache-2.0
"""Decode the pages of the kernel's ring buffer: each event with its absolute time, and where events were lost.

Source: the structures ``buffer_data_page`` and ``ring_buffer_event`` of Linux (include/linux/ring_buffer.h). A reader
never looks beyond a page, whatever stands on it. A flight recorder lays pieces of pages out in columns
(docs/record-format.md, "The columns of events"); pages are made of them again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import Literal

from rtproof.record.encoding import MalformedError

TYPE_BITS, TYPE_MASK, TYPE_SHIFT_BIG = 5, 31, 27
DELTA_BITS = 27
DATA_MOST, PADDING, TIME_EXTEND, TIME_STAMP = 28, 29, 30, 31
"""Values of ``type_len``: up to DATA_MOST the length in words of four bytes; 0 marks a longer event, which states it.

TIME_EXTEND adds to the time; TIME_STAMP replaces it. Both have one more word.
"""
COMMIT_MASK = (1 << 27) - 1
"""The bits of ``commit`` that are a number of bytes. The bits above say whether events were lost."""
MISSED_EVENTS, MISSED_STORED = 1 << 31, 1 << 30
"""Bits of ``commit``: events before this page were lost; behind the events stands how many."""
STAMP_BITS = 59
"""A TIME_STAMP holds this many bits. The bits above come from the time before it."""


@dataclass(frozen=True)
class PageLayout:
    """How a page of the trace is laid out, in bytes.

    order: the byte order of the target, as ``struct`` writes it.
    page: the size of a page. data: where its events begin.
    """

    order: str
    page: int
    commit: int
    commit_size: int
    data: int

    @property
    def big(self) -> bool:
        return self.order == ">"


@dataclass(frozen=True)
class TracePage:
    """One page. time_ns: of the page, from which its events count. lost: how many events before it are missing.

    lost is 0 if none is missing, and None if some are and the page does not say how many.
    """

    time_ns: int
    lost: int | None
    content: memoryview


Pages = bytes | list[bytes]
"""Whole pages one behind the other, or a list of such. The last page of each may be cut off."""


def trace_pages(pages: Pages, layout: PageLayout) -> Iterator[TracePage]:
    """Yield each page, in order. A page that was cut off at the end yields the events that are left."""
    for part in pages if isinstance(pages, list) else (pages,):
        yield from _pages_of(part, layout)


def _pages_of(pages: bytes, layout: PageLayout) -> Iterator[TracePage]:
    whole = memoryview(pages)
    stamp = Struct(layout.order + "Q")
    commit = Struct(layout.order + ("I" if layout.commit_size == 4 else "Q"))
    for at in range(0, len(pages), layout.page):
        if at + layout.data > len(pages):
            return
        (time_ns,) = stamp.unpack_from(whole, at)
        (length,) = commit.unpack_from(whole, at + layout.commit)
        first = at + layout.data
        end = min(first + (length & COMMIT_MASK), at + layout.page, len(pages))
        yield TracePage(time_ns, _lost(whole[end : at + layout.page], length, layout), whole[first:end])


def _lost(behind: memoryview, commit: int, layout: PageLayout) -> int | None:
    if not commit & MISSED_EVENTS:
        return 0
    if not commit & MISSED_STORED or len(behind) < layout.commit_size:
        return None
    return int.from_bytes(behind[: layout.commit_size], "big" if layout.big else "little") or None


def page_events(pages: Pages, layout: PageLayout) -> Iterator[memoryview]:
    """Yield the content of each event, in order. The content begins with two bytes of the event's id."""
    for page in trace_pages(pages, layout):
        for _, content in timed_events(page, layout):
            yield content


def timed_events(page: TracePage, layout: PageLayout) -> Iterator[tuple[int, memoryview]]:
    """Yield the time in ns and the content of each event of a page, in order."""
    content, time_ns = page.content, page.time_ns
    word = Struct(f"{layout.order}I")
    big, end, at = layout.big, len(page.content), 0
    while at + 4 <= end:
        (head,) = word.unpack_from(content, at)
        kind, delta = (head >> TYPE_SHIFT_BIG, head & ((1 << DELTA_BITS) - 1)) if big else (head & 31, head >> 5)
        at += 4
        if 0 < kind <= DATA_MOST:
            time_ns += delta
            yield time_ns, content[at : at + 4 * kind]
            at += 4 * kind
            continue
        if (kind == PADDING and not delta) or at + 4 > end:  # the rest of the page
            return
        (told,) = word.unpack_from(content, at)
        at += 4
        time_ns = _moved(time_ns, kind, delta, told)
        size = max(0, told - 4) if kind in (0, PADDING) else 0
        if kind == 0:
            yield time_ns, content[at : at + size]
        at += -(-size // 4) * 4


def _moved(time_ns: int, kind: int, delta: int, told: int) -> int:
    """The time of an event that has one more word."""
    if kind == TIME_EXTEND:
        return time_ns + (told << DELTA_BITS) + delta
    if kind != TIME_STAMP:
        return time_ns + delta
    stamp = (time_ns >> STAMP_BITS << STAMP_BITS) | (((told << DELTA_BITS) | delta) & ((1 << STAMP_BITS) - 1))
    return stamp if stamp >= time_ns else stamp + (1 << STAMP_BITS)


COUNT = Struct("<H")
PIECE = Struct("<HBBHQ")
"""CPU, 1 if events before it are lost, reserved, number of entries, time stamp."""
KIND = Struct("<BH")
"""The type of its entries, and how many words of four bytes each has behind its head."""
COLUMN, DELTA_BYTES, STAMP_SIZE, KINDS_MOST, PIECES_MOST = 8, 4, 8, 256, 256


@dataclass(frozen=True)
class Piece:
    """A part of a page. entries: as on the page, with their heads, in the byte order of the target."""

    cpu: int
    lost: bool
    stamp: int
    entries: bytes


def pieces(content: bytes, big: bool) -> list[Piece]:
    """The pieces in one part of the file; none if it is damaged. big: the byte order of the target."""
    try:
        return list(_pieces(content, big))
    except (error, MalformedError):
        return []


def _pieces(content: bytes, big: bool) -> Iterator[Piece]:
    heads, kinds, at = _heads(content)
    n = sum(length for *_, length, _ in heads)
    kind_of = content[at : at + n]
    lengths = [4 * words for _, words in kinds]
    bodies_at = at + n * (1 + DELTA_BYTES)
    if len(lengths) > KINDS_MOST or (kind_of and max(kind_of) >= len(lengths)):
        raise MalformedError("an entry is of no kind")
    if bodies_at + sum(kind_of.count(kind) * length for kind, length in enumerate(lengths)) != len(content):
        raise MalformedError("the columns end in the wrong place")
    words = _head_words([kinds[kind][0] for kind in kind_of], content[at + n : bodies_at], big)
    bodies = _bodies(content, bodies_at, kind_of, lengths)
    entries = [word + next(bodies[kind]) for word, kind in zip(words, kind_of, strict=True)]
    first = 0
    for cpu, lost, _, length, stamp in heads:
        yield Piece(cpu, lost != 0, stamp, b"".join(entries[first : first + length]))
        first += length


def _heads(content: bytes) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], int]:
    """The fields of each piece and of each kind, and where the columns begin."""
    (count,) = COUNT.unpack_from(content)
    if count > PIECES_MOST:
        raise MalformedError("there are more pieces than a part has")
    at = COUNT.size
    heads = [PIECE.unpack_from(content, at + PIECE.size * i) for i in range(count)]
    at += PIECE.size * count
    (n_kinds,) = COUNT.unpack_from(content, at)
    at += COUNT.size
    kinds = [KIND.unpack_from(content, at + KIND.size * i) for i in range(n_kinds)]
    if any(kind > TYPE_MASK for kind, _ in kinds):
        raise MalformedError("a kind has no type that there is")
    return heads, kinds, at + KIND.size * n_kinds


def _head_words(types: list[int], planes: bytes, big: bool) -> Iterator[bytes]:
    """The first four bytes of each entry. planes: the lowest bytes of all deltas, then the second ones ..."""
    n = len(types)
    word = Struct(">I" if big else "<I")
    type_shift, delta_shift = (TYPE_SHIFT_BIG, 0) if big else (0, TYPE_BITS)
    bytes_of = (planes[n * i : n * (i + 1)] for i in range(DELTA_BYTES))
    for kind, a, b, c, d in zip(types, *bytes_of, strict=True):
        delta = a | b << 8 | c << 16 | d << 24
        yield word.pack((kind << type_shift | delta << delta_shift) & 0xFFFFFFFF)


def _bodies(content: bytes, at: int, kind_of: bytes, lengths: list[int]) -> list[Iterator[bytes]]:
    """For each kind, what its entries have behind their heads, in order."""
    found = []
    for kind, length in enumerate(lengths):
        n = kind_of.count(kind)
        columns = []
        for first in range(0, length, COLUMN):
            width = min(COLUMN, length - first)
            columns.append([content[at + width * i : at + width * (i + 1)] for i in range(n)])
            at += width * n
        found.append(map(b"".join, zip(*columns, strict=True)) if columns else iter([b""] * n))
    return found


def page_of(piece: Piece, layout: PageLayout, padded: bool = False) -> bytes:
    """A page that has the entries of a piece and no others. padded: up to its full size; else it ends behind them."""
    order: Literal["big", "little"] = "big" if layout.big else "little"
    length = len(piece.entries) | (MISSED_EVENTS if piece.lost else 0)
    head = bytearray(layout.data)
    head[:STAMP_SIZE] = piece.stamp.to_bytes(STAMP_SIZE, order)
    head[layout.commit : layout.commit + layout.commit_size] = length.to_bytes(layout.commit_size, order)
    return (bytes(head) + piece.entries).ljust(layout.page if padded else 0, b"\0")[: layout.page]
