# SPDX-License-Identifier: Apache-2.0
"""Pieces of pages laid out in columns become pages with the same events. agent/tests/test_pieces.c writes them."""

import random
import struct
from itertools import groupby

import pytest

from rtproof.summary.trace_pages import (
    PIECES_MOST,
    TIME_EXTEND,
    PageLayout,
    Piece,
    page_of,
    pieces,
    timed_events,
    trace_pages,
)

LAYOUTS = [PageLayout("<", 4096, 8, 8, 16), PageLayout(">", 4096, 8, 4, 12)]
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=["little, 64 bits", "big, 32 bits"])
Entry = tuple[int, int, bytes]
"""Type, delta and what stands behind the head."""


def some_entries(chance: random.Random, count: int) -> list[Entry]:
    """Events of a few kinds, one of them longer than a type can tell, with steps of time between them."""
    found: list[Entry] = []
    for _ in range(count):
        words = chance.choice([2, 3, 5, 0, TIME_EXTEND])
        length = {0: 4 * 30, TIME_EXTEND: 4}.get(words, 4 * words)
        body = chance.randbytes(length)
        if words == TIME_EXTEND:
            body = bytes(4)
        found.append((words, chance.randrange(1 << 20), body))
    return found


def with_length(entry: Entry, order: str) -> Entry:
    """An event of type 0 tells its length in its first word."""
    kind, delta, body = entry
    return (kind, delta, struct.pack(f"{order}I", len(body)) + body[4:]) if kind == 0 else entry


def raw(entries: list[Entry], layout: PageLayout) -> bytes:
    def head(kind: int, delta: int) -> int:
        return kind << 27 | delta if layout.big else kind | delta << 5

    return b"".join(struct.pack(f"{layout.order}I", head(kind, delta)) + body for kind, delta, body in entries)


def columns(of: list[tuple[int, bool, int, list[Entry]]]) -> bytes:
    """As docs/record-format.md has them. A kind is a type and a length here; the agent has more, by event."""
    every = [entry for *_, entries in of for entry in entries]
    kinds = sorted({(kind, len(body) // 4) for kind, _, body in every})
    kind_of = bytes(kinds.index((kind, len(body) // 4)) for kind, _, body in every)
    out = struct.pack("<H", len(of))
    out += b"".join(struct.pack("<HBBHQ", cpu, lost, 0, len(entries), stamp) for cpu, lost, stamp, entries in of)
    out += struct.pack("<H", len(kinds)) + b"".join(struct.pack("<BH", *kind) for kind in kinds) + kind_of
    out += b"".join(bytes(delta >> 8 * plane & 255 for _, delta, _ in every) for plane in range(4))
    for number, (_, words) in enumerate(kinds):
        bodies = [body for (*_, body), kind in zip(every, kind_of, strict=True) if kind == number]
        out += b"".join(body[at : at + 8] for at in range(0, 4 * words, 8) for body in bodies)
    return out


def made(layout: PageLayout) -> list[tuple[int, bool, int, list[Entry]]]:
    chance = random.Random(7)
    return [
        (cpu, lost, 10**9 * (cpu + 1) + lost, [with_length(one, layout.order) for one in some_entries(chance, 30)])
        for cpu, lost in ((0, False), (1, True), (1, False), (300, False))
    ]


@each_layout
def test_pieces_come_back_as_they_were(layout: PageLayout) -> None:
    of = made(layout)
    assert pieces(columns(of), layout.big) == [
        Piece(cpu, lost, stamp, raw(entries, layout)) for cpu, lost, stamp, entries in of
    ]


@each_layout
def test_a_piece_becomes_a_page_with_its_events_at_their_times(layout: PageLayout) -> None:
    for (cpu, lost, stamp, entries), piece in zip(made(layout), pieces(columns(made(layout)), layout.big), strict=True):
        page = page_of(piece, layout, padded=True)
        (read,) = trace_pages(page, layout)
        assert len(page) == layout.page
        assert page.startswith(page_of(piece, layout))
        assert (read.time_ns, read.lost, piece.cpu) == (stamp, None if lost else 0, cpu)
        times = [time_ns for time_ns, _ in timed_events(read, layout)]
        steps = [(is_event, [one[1] for one in group]) for is_event, group in groupby(entries, lambda one: one[0] < 29)]
        at_ns, wanted = stamp, []
        for is_event, deltas in steps:
            for delta in deltas:
                at_ns += delta
                wanted += [at_ns] if is_event else []
        assert times == wanted


@each_layout
def test_what_is_damaged_raises_nothing(layout: PageLayout) -> None:
    whole = columns(made(layout))
    for end in range(len(whole)):
        assert pieces(whole[:end], layout.big) == [], end
    chance = random.Random(3)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(min(len(whole), 400))] = chance.randrange(256)
        for piece in pieces(bytes(damaged), layout.big):
            assert len(page_of(piece, layout)) <= layout.page
            assert len(page_of(piece, layout, padded=True)) == layout.page


@each_layout
def test_more_pieces_or_types_than_there_can_be_are_damage(layout: PageLayout) -> None:
    def empty(count: int, kind: int = 0) -> bytes:
        heads = b"".join(struct.pack("<HBBHQ", 0, 0, 0, 0, stamp) for stamp in range(count))
        return struct.pack("<H", count) + heads + struct.pack("<HBH", 1, kind, 2)

    assert len(pieces(empty(PIECES_MOST), layout.big)) == PIECES_MOST
    assert pieces(empty(PIECES_MOST + 1), layout.big) == []
    assert len(pieces(empty(1, 31), layout.big)) == 1
    assert pieces(empty(1, 32), layout.big) == []


@each_layout
def test_columns_of_unequal_length_are_damage(layout: PageLayout) -> None:
    whole = columns(made(layout))
    assert pieces(whole, layout.big)
    for at in range(2, len(whole) - 1, 3):
        assert pieces(whole[:at] + whole[at + 1 :], layout.big) == [], "a byte less"
        assert pieces(whole[:at] + whole[at : at + 1] + whole[at:], layout.big) == [], "a byte more"
