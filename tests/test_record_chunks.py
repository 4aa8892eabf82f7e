# SPDX-License-Identifier: Apache-2.0
"""Payloads laid out by hand from the format page, and values that cannot be."""

import os
import struct
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases
from analysis_records import array
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import activations, chunks, decoding, encoding, reading
from rtproof.record.activations import AboveCounts, Activations, largest
from rtproof.record.chunks import ChunkType, FileWindow, Frame, Hole, frame_bytes, walk_chunks
from rtproof.record.contents import (
    NONE,
    Begin,
    ChunkRef,
    Counter,
    End,
    EndReason,
    Event,
    Fact,
    Int64Array,
    Level,
    Moment,
    Series,
    SeriesTotals,
    Slice,
    SystemFile,
    Top,
    View,
)
from rtproof.record.decoding import SeriesPayload, Tick, decode_payload
from rtproof.record.encoding import MalformedError
from rtproof.record.writing import RecordWriter

pytestmark = pytest.mark.usefixtures("_in_tmp")
EMPTY, NO = encoding.encode_array(()), NONE
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
    (
        ChunkType.SAMPLES,
        SAMPLES + encoding.encode_array([4, 5, 6]) + EMPTY + EMPTY,
        ChunkRef(0, 69, 3, 100, 3, -5, 103),
    ),
    (
        ChunkType.SAMPLES,
        SAMPLES + encoding.encode_array([4, 5, 6]) + encoding.encode_array([0, 2]) + encoding.encode_array([1, 10]),
        ChunkRef(0, 71, 3, 100, 3, -5, 114),
    ),
    (ChunkType.COUNTER, struct.pack("<HBB", 8, 1, 0) + text("t") + text("C"), Counter(8, False, "t", "C", NO, NO)),
    (ChunkType.TICK, struct.pack("<qHHq", 9, 1, 8, -40), Tick(9, struct.pack("<Hq", 8, -40))),
    (ChunkType.EVENT, struct.pack("<qH", 9, 0xFFFF) + text("k") + text("t"), Event(9, 0xFFFF, "k", "t")),
    (
        ChunkType.LEVEL,
        struct.pack("<HBBqqIQ", 3, 9, 1, -5, 60, 1000, 60_000),
        Level(9, -5, True, 60, 0.001, 60_000, series=3),
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
    assert isinstance(part, Slice)
    assert (part.series, part.view, part.first_due_ns, part.last_due_ns) == (3, View.CHARGED, -5, 7)
    assert (part.count, part.lost, part.min, part.max, part.sum) == (2, 1, -9, 9, 0)
    assert (part.sum_squares, part.pairs, part.sum_products) == (162 + (2 << 64), 1, -81)
    assert (part.catch_up_pairs, part.bins.tolist(), part.bin_counts.tolist()) == (6, [-9, 9], [1, 1])


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


def walked(path: Path, size: int | None = None) -> list[tuple[int, ...] | tuple[int, int, int, bytes]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found: list[tuple[int, ...] | tuple[int, int, int, bytes]] = []
        for part in walk_chunks(FileWindow(descriptor, path.stat().st_size if size is None else size)):
            if isinstance(part, Frame):
                found.append((part.offset, part.type, part.sequence, bytes(part.payload)))
            else:
                found.append(tuple(part))
        return found
    finally:
        os.close(descriptor)


def test_bytes_are_those_of_the_page() -> None:
    head = b"RTP\x1a" + struct.pack("<IHHI", 5, 0x1234, 0, 0x55667788)
    check = zlib.crc32(head + b"hello")
    assert frame_bytes(0x1234, 0x55667788, b"hello") == head + struct.pack("<I", check) + b"hello\0\0\0"


@given(st.lists(st.binary(max_size=80), max_size=20), st.integers(64, 300))
def test_walk_finds_all_whatever_the_window(payloads: list[bytes], window: int) -> None:
    path = Path("walk.rtrec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "WINDOW_BYTES", window)
        path.write_bytes(b"".join(frame_bytes(5, number, payload) for number, payload in enumerate(payloads)))
        found = walked(path)
    assert [part[1:] for part in found] == [(5, number, payload) for number, payload in enumerate(payloads)]


@pytest.fixture
def _in_tmp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("framing"))


@pytest.mark.parametrize("window", [64, 100, 1 << 20])
@pytest.mark.parametrize("garbage", [1, 3, 59, 200, 5000])
def test_a_hole_is_told_and_the_next_chunk_found(window: int, garbage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WINDOW_BYTES", window)
    path = Path("hole.rtrec")
    first, second = frame_bytes(5, 0, b"one"), frame_bytes(5, 1, b"second")
    path.write_bytes(first + b"RTP\x1a"[:garbage] * garbage + second)
    start, length = len(first), len(b"RTP\x1a"[:garbage] * garbage)
    assert walked(path) == [(0, 5, 0, b"one"), Hole(start, length), (start + length, 5, 1, b"second")]


def test_a_file_that_shrinks_while_it_is_read_ends_there() -> None:
    path = Path("shrunk.rtrec")
    path.write_bytes(frame_bytes(5, 0, b"abcd"))
    size = path.stat().st_size
    assert walked(path, size + 10**12) == [(0, 5, 0, b"abcd"), Hole(size, 10**12)]


# Payloads of many chunks together say what each of them says; one that is wrong makes all of them wrong.


COUNTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 300), st.integers(0, 3)), min_size=1)


@given(pieces=st.lists(COUNTS, min_size=1, max_size=4))
def test_counts_above_levels_add_up(pieces: list[list[tuple[int, int, int, int]]]) -> None:
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    some = []
    for piece in pieces:
        rows = {(second, level): (ran, missed) for second, level, ran, missed in piece if ran + missed}
        for key, (ran, missed) in rows.items():
            before = expected.get(key, (0, 0))
            expected[key] = before[0] + ran, before[1] + missed
        if rows:
            columns = zip(*((*key, *rows[key]) for key in sorted(rows)), strict=True)
            some.append(AboveCounts(*(array(*column) for column in columns)))
    if not some:
        return
    path = Path("above.rtrec")
    path.unlink(missing_ok=True)
    with RecordWriter(path) as writer:
        for one in some:
            writer.above(3, one)
    found = decoding.decode_above([payload for *_, payload in walked(path) if isinstance(payload, bytes)])
    rows_found = zip(
        found.second.tolist(), found.level.tolist(), found.ran.tolist(), found.missed.tolist(), strict=True
    )
    assert [((second, level), (ran, missed)) for second, level, ran, missed in rows_found] == sorted(expected.items())


ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-5, 5)), max_size=6)


def part(series: int, first: int, rows: list[tuple[int, int, int]]) -> SeriesPayload:
    columns = [encoding.encode_array([row[column] for row in rows]) for column in range(3)]
    return SeriesPayload(ChunkType.SECONDS, series, struct.pack("<HHI", series, 0, first) + b"".join(columns))


def top_part(series: int, some: Top) -> SeriesPayload:
    columns = [encoding.encode_array(column) for column in (some.index, some.due_ns, some.value)]
    return SeriesPayload(ChunkType.TOP, series, struct.pack("<HH", series, some.k) + b"".join(columns))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8), ROWS), max_size=5))
def test_seconds_add_up(pieces: list[tuple[int, int, list[tuple[int, int, int]]]]) -> None:
    expected: dict[int, dict[int, tuple[int, int, int]]] = {}
    for series, first, rows in pieces:
        seconds = expected.setdefault(series, {})
        for second, (obtained, missed, most) in enumerate(rows, first):
            before = seconds.get(second, (0, 0, 0))
            largest_of_both = max(most if obtained else -9, before[2] if before[0] else -9)
            total = before[0] + obtained
            seconds[second] = (total, before[1] + missed, largest_of_both if total else 0)
    merged = reading._decode_by_series(ChunkType.SECONDS, (part(*piece) for piece in pieces))
    assert merged.keys() == expected.keys()
    for series, found in merged.items():
        rows = list(zip(found.obtained.tolist(), found.missed.tolist(), found.max.tolist(), strict=True))
        assert dict(zip(found.second.tolist(), rows, strict=True)) == expected[series]
        assert found.second.tolist() == sorted(found.second.tolist())


@given(st.lists(st.integers(-3, 3), max_size=20), st.integers(1, 5), st.integers(1, 4))
def test_top_is_exact_and_the_earlier_of_equals_comes_first(values: list[int], k: int, length: int) -> None:
    rows = [(index, 10 * index, value) for index, value in enumerate(values)]
    expected = sorted(rows, key=lambda row: (-row[2], row[0]))[:k]
    parts = []
    for start in range(0, len(rows), length):
        # As an agent does: of each stretch only what can still be among the largest, here of the stretch itself.
        own = sorted(rows[start : start + length], key=lambda row: (-row[2], row[0]))[:k]
        parts.append(top_part(7, largest(k, *(array(*column) for column in zip(*own, strict=True)))))
    merged = reading._decode_by_series(ChunkType.TOP, parts)
    assert set(merged) == ({7} if rows else set())
    for top in merged.values():
        found = zip(top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)
        assert list(found) == expected


SERIES = cases.ON_GRID


def ran(values: Int64Array, first: int = 0, missed: dict[int, int] | None = None) -> Activations:
    gone = np.zeros_like(values)
    for at, n in (missed or {}).items():
        gone[at] = n
    return activations.number_activations(SERIES, first, SERIES.first_due_ns + first * SERIES.period_ns, values, gone)


def test_what_was_due_before_a_level_is_not_above_it() -> None:
    some = ran(np.array([50, 50, 60, 50]))
    late = Level(1, 40, True, int(some.due_ns[2]), 0.0001, 50_000, series=1)
    found = activations.count_above(SERIES, some, [Level(0, 55, False, 0, series=1), late])
    assert (found.second.tolist(), found.level.tolist(), found.ran.tolist()) == ([0, 0], [0, 1], [1, 2])


def test_a_list_tells_when_it_is_full() -> None:
    limits = [Level(0, 1_000, False, 0), Level(1, 10, False, 0)]
    listed = [0, activations.LONGEST_LIST - 2]
    found = activations.list_exceeding(ran(np.array([20, 5, 2_000, 30, 3_000])), limits, listed)
    assert found.index.tolist() == [0, 2, 4]
    assert (found.lists.tolist(), found.ended, listed) == ([2, 3, 1], 2, [2, activations.LONGEST_LIST])
    again = activations.list_exceeding(ran(np.array([20, 5, 2_000])), limits, listed)
    assert (again.lists.tolist(), again.ended) == ([1], 0)


# What an agent says about a stretch, against counting one by one as the format page has it.


MS = cases.MS
VALUES = st.integers(-(10**5), 3 * MS) | st.integers(0, 2000)
ROWS_SLICING = st.lists(st.tuples(VALUES, st.integers(0, 3)), min_size=1, max_size=40)
ANY_SERIES = st.sampled_from([cases.ON_GRID, cases.OFF_GRID, cases.EXTERNAL])


def stretch(series: Series, rows: list[tuple[int, int]]) -> activations.Activations:
    values, missed = np.array(rows, dtype=np.int64).T
    return activations.number_activations(series, 10, series.first_due_ns + 10 * MS, values, missed)


@given(ANY_SERIES, ROWS_SLICING)
def test_neighbours(series: Series, rows: list[tuple[int, int]]) -> None:
    some = stretch(series, rows)
    woke = [due_ns + value for due_ns, value in zip(some.due_ns.tolist(), some.value.tolist(), strict=True)]
    cycles = [b - a for a, b in pairwise(woke)]
    observed = activations.slices_of_views(series, some)[0]
    assert observed.pairs == len(rows) - 1
    assert observed.sum_products == sum(a * b for a, b in pairwise(some.value.tolist()))
    assert observed.catch_up_pairs == sum(10 * a > 12 * MS and 10 * b < 8 * MS for a, b in pairwise(cycles))


@given(ROWS_SLICING)
def test_seconds_slicing(rows: list[tuple[int, int]]) -> None:
    # A period of 0.3 s, so that there are few activations in each second.
    series = Series(0, 0, 0, True, True, 300 * MS, 0, "", "", "", "ns")
    values, missed = np.array(rows, dtype=np.int64).T
    some = activations.number_activations(series, 0, 0, values, missed)
    found = activations.seconds_of(series, some)
    ran = [due_ns // 10**9 for due_ns in some.due_ns.tolist()]
    gone = [due_ns // 10**9 for due_ns in activations.missed_activations(series, some)[0].tolist()]
    assert found.second.tolist() == list(range(min(ran + gone), max(ran + gone) + 1))
    for place, second in enumerate(found.second.tolist()):
        here = [value for value, when in zip(values.tolist(), ran, strict=True) if when == second]
        counts = (len(here), gone.count(second), max(here, default=0))
        assert (found.obtained[place], found.missed[place], found.max[place]) == counts


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_exact_dot(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert activations.exact_dot(a, b) == sum(x * y for x, y in pairs)
