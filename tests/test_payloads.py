# SPDX-License-Identifier: Apache-2.0
"""Payloads laid out by hand from the format page, and values that cannot be."""

import struct

import pytest

from rtproof.record import decoding, encoding
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import Begin, End, EndReason, Event, Fact, Moment, Series, SeriesTotals, SystemFile, View
from rtproof.record.decoding import (
    CounterName,
    SamplesHead,
    SeriesLevel,
    SeriesSeconds,
    SeriesTop,
    Tick,
    decode_payload,
)
from rtproof.record.encoding import MalformedError
from rtproof.record.histogram_bins import StoredSlice

EMPTY = encoding.encode_array(())
SAMPLES = struct.pack("<HHQq", 3, 0, 100, -5)
SUMMARY = struct.pack("<HBBqqQQqqqQQQQQQ", 3, 1, 0, -5, 7, 2, 1, -9, 9, 0, 162, 2, 1, 2**64 - 81, 2**64 - 1, 6)


def text(content: str) -> bytes:
    return struct.pack("<H", len(content)) + content.encode()


HAND_MADE = [
    (
        ChunkType.BEGIN,
        struct.pack("<HH16sqq", 1, 3, b"0123456789abcdef", -1, 2) + text("a") + text("b") + text("c") + text("d"),
        Begin(1, 3, b"0123456789abcdef", -1, 2, "a", "b", "c", "d"),
    ),
    (ChunkType.FACT, struct.pack("<qHB", -3, 2, 3) + text("cpu") + text("1"), Fact(-3, 2, Moment.END, "cpu", "1")),
    (
        ChunkType.FILE,
        struct.pack("<qBBH", 4, 1, 1, 13) + text("/x") + struct.pack("<I", 3) + b"abc",
        SystemFile(4, Moment.START, "/x", 13, True, b"abc"),
    ),
    (
        ChunkType.SERIES,
        struct.pack("<HHiBqq", 3, 1, -1, 2, 1000, -7) + text("p") + text("m") + text("f") + text("ns"),
        Series(3, 1, -1, False, True, 1000, -7, "p", "m", "f", "ns"),
    ),
    (ChunkType.SAMPLES, SAMPLES + encoding.encode_array([4, 5, 6]) + EMPTY + EMPTY, SamplesHead(3, 100, -5, 3, 103)),
    (
        ChunkType.SAMPLES,
        SAMPLES + encoding.encode_array([4, 5, 6]) + encoding.encode_array([0, 2]) + encoding.encode_array([1, 10]),
        SamplesHead(3, 100, -5, 3, 114),
    ),
    (ChunkType.COUNTER, struct.pack("<HBB", 8, 1, 0) + text("t") + text("C"), CounterName(8, False, "t", "C")),
    (ChunkType.TICK, struct.pack("<qHHq", 9, 1, 8, -40), Tick(9, struct.pack("<Hq", 8, -40))),
    (ChunkType.EVENT, struct.pack("<qH", 9, 0xFFFF) + text("k") + text("t"), Event(9, 0xFFFF, "k", "t")),
    (
        ChunkType.LEVEL,
        struct.pack("<HBBqqIQ", 3, 9, 1, -5, 60, 1000, 60_000),
        SeriesLevel(3, 9, True, -5, 60, 1000, 60_000),
    ),
    (
        ChunkType.END,
        struct.pack("<qB", 9, 3) + text("gone") + struct.pack("<HHQQQ", 1, 3, 10, 2, 1),
        End(9, EndReason.HOST_GONE, "gone", (SeriesTotals(3, 10, 2, 1),)),
    ),
]


@pytest.mark.parametrize(("kind", "payload", "item"), HAND_MADE, ids=lambda part: getattr(part, "name", None))
def test_hand_made(kind: ChunkType, payload: bytes, item: object) -> None:
    assert decode_payload(kind, memoryview(payload)) == item


def test_summary() -> None:
    part = decode_payload(ChunkType.SUMMARY, memoryview(SUMMARY + struct.pack("<I", 2) + bytes([17, 1, 18, 1])))
    assert isinstance(part, StoredSlice)
    assert (part.series, part.view, part.first_due_ns, part.last_due_ns) == (3, View.CHARGED, -5, 7)
    assert (part.count, part.lost, part.min, part.max, part.sum) == (2, 1, -9, 9, 0)
    assert (part.sum_squares, part.pairs, part.sum_products) == (162 + (2 << 64), 1, -81)
    assert (part.catch_up_pairs, part.bins.tolist(), part.bin_counts.tolist()) == (6, [-9, 9], [1, 1])


def test_seconds() -> None:
    columns = [encoding.encode_array(column) for column in ([1, 2], [0, 3], [-7, 8])]
    part = decode_payload(ChunkType.SECONDS, memoryview(struct.pack("<HHI", 3, 0, 2**32 - 1) + b"".join(columns)))
    assert isinstance(part, SeriesSeconds)
    assert part.series == 3
    found = decoding.decode_seconds([part.payload])
    assert found.second.tolist() == [2**32 - 1, 2**32]
    assert [found.obtained.tolist(), found.missed.tolist(), found.max.tolist()] == [[1, 2], [0, 3], [-7, 8]]


def test_top() -> None:
    columns = b"".join(encoding.encode_array(column) for column in ([5], [500], [-1]))
    part = decode_payload(ChunkType.TOP, memoryview(struct.pack("<HH", 3, 64) + columns))
    assert isinstance(part, SeriesTop)
    found = decoding.decode_top([part.payload])
    assert (part.series, found.k) == (3, 64)
    assert [column.tolist() for column in (found.number, found.due_ns, found.value)] == [[5], [500], [-1]]


def test_unknown_type() -> None:
    assert decode_payload(99, memoryview(b"anything")) is None


@pytest.mark.parametrize(("kind", "payload", "item"), HAND_MADE, ids=lambda part: getattr(part, "name", None))
def test_too_long_or_too_short(kind: ChunkType, payload: bytes, item: object) -> None:
    with pytest.raises(MalformedError):
        decode_payload(kind, memoryview(payload + b"\0"))
    for length in range(len(payload)):
        with pytest.raises(MalformedError):
            assert decode_payload(kind, memoryview(payload[:length])) != item


def samples_with(positions: list[int], sizes: list[int]) -> bytes:
    return SAMPLES + encoding.encode_array([4, 5, 6]) + encoding.encode_array(positions) + encoding.encode_array(sizes)


def seconds_with(*columns: list[int]) -> bytes:
    return struct.pack("<HHI", 3, 0, 0) + b"".join(map(encoding.encode_array, columns))


ABOVE_TWICE = struct.pack("<HHII", 3, 0, 7, 2)
IMPOSSIBLE = {
    "moment": (ChunkType.FACT, struct.pack("<qHB", 0, 0, 4) + text("k") + text("v")),
    "view": (ChunkType.SUMMARY, SUMMARY[:2] + b"\2" + SUMMARY[3:] + bytes(4)),
    "bins": (ChunkType.SUMMARY, SUMMARY + struct.pack("<I", 2) + bytes([17, 1, 18])),
    "kind of counter": (ChunkType.COUNTER, struct.pack("<HBB", 8, 2, 0) + text("t") + text("C")),
    "reason": (ChunkType.END, struct.pack("<qB", 9, 7) + text("") + bytes(2)),
    "on the grid and from outside": (ChunkType.SERIES, struct.pack("<HHiBqq", 3, 1, -1, 5, 1, 0) + 4 * text("")),
    "negative period": (ChunkType.SERIES, struct.pack("<HHiBqq", 3, 1, -1, 2, -1, 0) + 4 * text("")),
    "no samples": (ChunkType.SAMPLES, SAMPLES + 3 * EMPTY),
    "index at the end of numbers": (
        ChunkType.SAMPLES,
        struct.pack("<HHQq", 3, 0, 2**63 - 1, 0) + encoding.encode_array([1]) + EMPTY + EMPTY,
    ),
    "gaps of unequal length": (ChunkType.SAMPLES, samples_with([0, 1], [1])),
    "gap behind no sample": (ChunkType.SAMPLES, samples_with([3], [1])),
    "gap before all": (ChunkType.SAMPLES, samples_with([-1], [1])),
    "gaps backwards": (ChunkType.SAMPLES, samples_with([1, 0], [1, 1])),
    "gap of nothing": (ChunkType.SAMPLES, samples_with([1], [0])),
    "endless gaps": (ChunkType.SAMPLES, samples_with([0, 1], [2**63 - 1, 2**63 - 1])),
    "seconds of unequal length": (ChunkType.SECONDS, seconds_with([1, 2], [0, 0], [5])),
    "negative count": (ChunkType.SECONDS, seconds_with([1, 2], [0, -1], [5, 5])),
    "negative exception": (ChunkType.SECONDS, seconds_with([7] * 40 + [-9], [0] * 41, [5] * 41)),
    "16 levels and one more": (ChunkType.LEVEL, struct.pack("<HBBqqIQ", 3, 16, 0, 5, 0, 0, 0)),
    "kind of level": (ChunkType.LEVEL, struct.pack("<HBBqqIQ", 3, 0, 2, 5, 0, 0, 0)),
    "more than all above": (ChunkType.LEVEL, struct.pack("<HBBqqIQ", 3, 0, 1, 5, 0, 1_000_001, 9)),
    "nothing above": (ChunkType.ABOVE, struct.pack("<HHII", 3, 0, 7, 0)),
    "not what it says": (ChunkType.ABOVE, ABOVE_TWICE + bytes([1, 5, 0])),
    "first second is another": (ChunkType.ABOVE, ABOVE_TWICE + bytes([17, 5, 0, 2, 1, 0])),
    "levels backwards": (ChunkType.ABOVE, ABOVE_TWICE + bytes([2, 5, 0, 1, 1, 0])),
    "nobody above": (ChunkType.ABOVE, ABOVE_TWICE + bytes([1, 0, 0, 2, 1, 0])),
    "too many above": (ChunkType.ABOVE, ABOVE_TWICE + bytes([1, *[0xFF] * 6, 1, 0, 2, 1, 0])),
    "half a number": (ChunkType.ABOVE, ABOVE_TWICE + bytes([1, 5, 0, 2, 1, 0x80])),
    "nothing exceeded": (ChunkType.EXCEEDED, struct.pack("<HHI", 3, 0, 0)),
    "in no list": (ChunkType.EXCEEDED, struct.pack("<HHI", 3, 0, 1) + bytes([1, 1, 1, 0])),
    "the same again": (ChunkType.EXCEEDED, struct.pack("<HHI", 3, 0, 2) + bytes([1, 1, 1, 1, 0, 1, 1, 1])),
    "in the 17th list": (ChunkType.EXCEEDED, struct.pack("<HHI", 3, 0, 1) + bytes([1, 1, 1, 0x80, 0x80, 4])),
    "top of unequal length": (ChunkType.TOP, struct.pack("<HH", 3, 64) + encoding.encode_array([1]) + EMPTY + EMPTY),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    kind, payload = IMPOSSIBLE[name]
    with pytest.raises(MalformedError):
        decode_payload(kind, memoryview(payload))
