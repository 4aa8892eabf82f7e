# SPDX-License-Identifier: Apache-2.0
"""Parts of a record put together."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import encoding
from rtproof.record.activations import largest
from rtproof.record.chunks import TICK_ENTRY_FIELDS
from rtproof.record.contents import Int64Array, Top
from rtproof.record.decoding import CounterName, SeriesSeconds, SeriesTop, Tick
from rtproof.record.reading import merge_counters, merge_seconds, merge_top

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-5, 5)), max_size=6)


def array(*values: int) -> Int64Array:
    return np.array(values, dtype=np.int64)


def part(series: int, first: int, rows: list[tuple[int, int, int]]) -> SeriesSeconds:
    columns = [encoding.encode_array([row[column] for row in rows]) for column in range(3)]
    return SeriesSeconds(series, struct.pack("<HHI", series, 0, first) + b"".join(columns))


def top_part(series: int, some: Top) -> SeriesTop:
    columns = [encoding.encode_array(column) for column in (some.index, some.due_ns, some.value)]
    return SeriesTop(series, struct.pack("<HH", series, some.k) + b"".join(columns))


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
    merged = merge_seconds(part(*piece) for piece in pieces)
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
    merged = merge_top(parts)
    assert set(merged) == ({7} if rows else set())
    for top in merged.values():
        found = zip(top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)
        assert list(found) == expected


def test_top_of_different_sizes_is_only_exact_up_to_the_smaller() -> None:
    big = top_part(0, largest(3, array(1, 2, 3), array(1, 2, 3), array(5, 6, 7)))
    small = top_part(0, largest(2, array(8, 9), array(8, 9), array(4, 3)))
    merged = merge_top([big, small])[0]
    assert (merged.k, merged.value.tolist()) == (2, [7, 6])


def test_an_activation_named_twice_counts_once() -> None:
    assert largest(3, array(4, 4), array(40, 40), array(9, 9)).index.tolist() == [4]


def test_the_smallest_of_all_values_can_be_sorted() -> None:
    assert largest(2, array(0, 1), array(0, 1), array(-(2**63), 2**63 - 1)).index.tolist() == [1, 0]


def test_counters() -> None:
    def tick(time_ns: int, *entries: tuple[int, int]) -> Tick:
        return Tick(time_ns, b"".join(TICK_ENTRY_FIELDS.pack(*entry) for entry in entries))

    names = [CounterName(1, True, "load.cpu", "loops"), CounterName(2, False, "temperature.0", "m°C")]
    ticks = [tick(10, (1, 100), (2, -5)), tick(20), tick(30, (2, -6), (9, 1), (1, 2**62))]
    load, heat = merge_counters(names, ticks)
    assert (load.id, load.grows, load.name, load.unit) == (1, True, "load.cpu", "loops")
    assert (load.time_ns.tolist(), load.value.tolist()) == ([10, 30], [100, 2**62])
    assert (heat.grows, heat.time_ns.tolist(), heat.value.tolist()) == (False, [10, 30], [-5, -6])


def test_no_ticks() -> None:
    (counter,) = merge_counters([CounterName(1, True, "load.cpu", "loops")], [])
    assert counter.value.size == counter.time_ns.size == 0
    assert TICK_ENTRY_FIELDS.size == struct.calcsize("<Hq")
