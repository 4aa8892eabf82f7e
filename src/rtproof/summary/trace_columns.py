# SPDX-License-Identifier: Apache-2.0
"""Make pages of the kernel's trace from pieces of pages that a flight recorder laid out in columns.

docs/record-format.md, "The columns of events", describes the bytes. What is damaged yields no page.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct, error
from typing import Literal

from rtproof.record.encoding import MalformedError
from rtproof.summary.trace_pages import MISSED_EVENTS, TYPE_BITS, TYPE_MASK, TYPE_SHIFT_BIG, PageLayout

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
    _check(content, bodies_at, kind_of, lengths)
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


def _check(content: bytes, bodies_at: int, kind_of: bytes, lengths: list[int]) -> None:
    """MalformedError if there are other columns than the kinds of the entries say."""
    if len(lengths) > KINDS_MOST or (kind_of and max(kind_of) >= len(lengths)):
        raise MalformedError("an entry is of no kind")
    if bodies_at + sum(kind_of.count(kind) * length for kind, length in enumerate(lengths)) != len(content):
        raise MalformedError("the columns end in the wrong place")


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
