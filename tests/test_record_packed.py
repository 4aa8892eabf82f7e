# SPDX-License-Identifier: Apache-2.0
"""Packed arrays: round trips, against a slow decoder that follows the format page word by word; impossible bytes."""

import struct
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rtproof.record import encoding, histogram_bins
from rtproof.record.chunks import places_in_order
from rtproof.record.contents import Int64Array
from rtproof.record.encoding import Cursor, MalformedError, leb128_decode, leb128_encode, text_bytes

INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))
ARRAYS = hnp.arrays(np.int64, st.integers(0, 200), elements=INT64 | NEAR)


def slow_decode(data: bytes) -> list[int]:
    """One element, one bit at a time."""
    n, base, width, size, exceptions = struct.unpack_from("<IqBBH", data)
    elements, at, shift = [0] * n, 16, 0
    for p in [1 << k for k in range(5, -1, -1) if width & 1 << k]:
        length = (n * p + 7) // 8
        for j in range(n):
            per_byte = max(8 // p, 1)
            where = j % length if p < 8 else j * p // 8
            raw = int.from_bytes(data[at + where : at + where + max(p // 8, 1)], "little")
            part = raw >> p * (j // length) if per_byte > 1 else raw
            elements[j] |= (part & (1 << p) - 1) << shift
        at, shift = at + length, shift + p
    positions = struct.unpack_from(f"<{exceptions}H", data, at)
    values = struct.unpack_from(f"<{exceptions}{'i' if size == 4 else 'q'}", data, at + 2 * exceptions)
    for place, value in zip(positions, values, strict=True):
        assert elements[place] == 0
        elements[place] = value
    return [(base + element + 2**63) % 2**64 - 2**63 for element in elements]


@given(ARRAYS)
@settings(max_examples=400)
def test_round_trip_of_any_integers(values: Int64Array) -> None:
    data = encoding.encode_array(values)
    decoded, end = encoding.decode_array(b"before" + data + b"behind", 6)
    assert decoded.tolist() == values.tolist() == slow_decode(data)
    assert end == 6 + len(data)
    assert encoding.array_layout(data).end == len(data)


def test_a_reader_takes_any_width() -> None:
    """Also one that is far wider than needed, with the base anywhere."""
    n, base = 13, 2**63 - 1
    for width in range(1, 64):
        planes = bytes(encoding.plane_bytes(n, width))
        data = struct.pack("<IqBBHxx", n, base, width, 8, 1)[:16] + planes + struct.pack("<Hq", 3, 1)
        assert encoding.decode_array(data)[0].tolist() == [base] * 3 + [-(2**63)] + [base] * 9 == slow_decode(data)


@given(ARRAYS)
def test_no_width_is_smaller_with_the_base_chosen(values: Int64Array) -> None:
    """The size that any width would have with the same base, counted one by one."""
    data = encoding.encode_array(values)
    head = encoding.array_layout(data)
    delta = [(value - head.base) % 2**64 for value in values.tolist()]
    for width in range(64):
        odd = [d - 2**64 if d >= 2**63 else d for d in delta if d >> width]
        size = 4 if all(-(2**31) <= d < 2**31 for d in odd) else 8
        assert len(data) <= 16 + encoding.plane_bytes(len(delta), width) + len(odd) * (2 + size)


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ((65_537, 0, 0, 4, 0), b""),
        ((1, 0, 64, 4, 0), bytes(8)),
        ((1, 0, 8, 5, 0), bytes(1)),
        ((1, 0, 0, 4, 2), struct.pack("<HHii", 0, 0, 1, 2)),
        ((2, 0, 0, 4, 1), struct.pack("<Hi", 2, 1)),
        ((3, 0, 0, 4, 2), struct.pack("<HHii", 1, 1, 1, 2)),
        ((3, 0, 0, 4, 2), struct.pack("<HHii", 2, 1, 1, 2)),
    ],
    ids=["too many", "too wide", "odd value size", "more exceptions than elements", "outside", "twice", "backwards"],
)
def test_impossible_arrays(head: tuple[int, ...], rest: bytes) -> None:
    with pytest.raises(MalformedError):
        encoding.decode_array(encoding.ARRAY_HEAD.pack(*head) + rest)


@given(ARRAYS, st.data())
def test_cut_short(values: Int64Array, data: st.DataObject) -> None:
    whole = encoding.encode_array(values)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(MalformedError):
        encoding.decode_array(whole[:length])


@given(st.binary(max_size=120), st.integers(0, 70), st.integers(0, 63))
def test_random_bytes_decode_or_are_refused(rest: bytes, n: int, width: int) -> None:
    data = struct.pack("<IqB", n, 0, width) + rest
    try:
        values, end = encoding.decode_array(data)
    except MalformedError:
        return
    assert values.size == n
    assert end <= len(data)


ARRAYS_MANY = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-50, 50), max_size=30), max_size=12)


def layouts(stored: list[bytes]) -> tuple[encoding.ByteArray, encoding.ArrayLayout[Int64Array]]:
    data = np.frombuffer(b"".join(stored), np.uint8)
    sizes = np.array([len(one) for one in stored], np.int64)
    return data, encoding.array_layouts(data, np.cumsum(sizes) - sizes, np.cumsum(sizes))


@given(ARRAYS_MANY)
def test_together_as_one_by_one(arrays: list[list[int]]) -> None:
    stored = [encoding.encode_array(array) for array in arrays]
    data, heads = layouts(stored)
    for number, one in enumerate(stored):
        alone = encoding.array_layout(one)
        found = encoding.layout_of_one(heads, number)
        assert (found.n, found.width) == (alone.n, alone.width)
    values: Int64Array = encoding.decode_array_batch(data, heads)
    assert values.tolist() == [value for array in arrays for value in array]


@pytest.mark.parametrize("at", [0, 12, 13, 14])
def test_a_wrong_head_is_malformed(at: int) -> None:
    """Number of elements, width, size of the exceptions and their number."""
    fine = encoding.encode_array([5, 9, 5])
    wrong = bytearray(fine)
    wrong[at + (2 if at == 0 else 0)] = 0xFF
    layouts([fine, fine])
    with pytest.raises(MalformedError):
        layouts([fine, bytes(wrong)])


def test_exceptions_out_of_order_are_malformed() -> None:
    values = [0] * 40
    values[3] = values[30] = 10**6
    fine = encoding.encode_array(values)
    head = encoding.array_layout(fine)
    assert head.exceptions == 2
    swapped = fine[: head.positions] + fine[head.positions + 2 : head.positions + 4]
    swapped += fine[head.positions : head.positions + 2] + fine[head.positions + 4 :]
    with pytest.raises(MalformedError):
        layouts([fine, swapped])


# The log-linear scale: against the formula of the format page in unlimited integers, and its promises.


ANY = st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))


def by_the_page(v: int) -> int:
    if v < 0:
        return -1 - by_the_page(-1 - v)
    if v < 1024:
        return v
    e = v.bit_length() - 1
    return 1024 + (e - 10) * 512 + (v >> (e - 9)) - 512


@given(st.lists(ANY))
def test_index_of_any_value(values: list[int]) -> None:
    assert histogram_bins.bin_of(values).tolist() == [by_the_page(v) for v in values]


def test_edges_are_the_inverse_of_index() -> None:
    everything = np.arange(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN + 1)
    low, high = histogram_bins.bin_edges(everything)
    assert (histogram_bins.bin_of(low) == everything).all()
    assert (histogram_bins.bin_of(high) == everything).all()


@given(ANY)
def test_half_a_bin_is_at_most_a_1024th_of_its_values(value: int) -> None:
    low, high = (int(edge[0]) for edge in histogram_bins.bin_edges(histogram_bins.bin_of([value])))
    assert low <= value <= high
    assert (high - low) * 1024 <= 2 * min(abs(low), abs(high)) or low == high


def longest_by_trying(sequences: list[int]) -> int:
    lengths = range(len(sequences), 0, -1)
    chosen = (some for n in lengths for some in combinations(sequences, n) if list(some) == sorted(set(some)))
    return len(next(chosen, ()))


@given(st.lists(st.integers(0, 9), max_size=9))
def test_as_many_as_possible_and_increasing(sequences: list[int]) -> None:
    places = places_in_order(sequences)
    assert places == sorted(set(places))
    kept = [sequences[place] for place in places]
    assert kept == sorted(set(kept))
    assert len(kept) == longest_by_trying(sequences)


UINT64 = st.integers(0, 64).flatmap(lambda bits: st.integers(0, max(2**bits - 1, 0)))


def by_the_book(number: int) -> bytes:
    out = []
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@given(st.lists(UINT64, max_size=50))
def test_leb128(numbers: list[int]) -> None:
    stored = leb128_encode(np.array(numbers, dtype=np.uint64))
    assert stored == b"".join(map(by_the_book, numbers))
    assert leb128_decode(stored, len(numbers)).tolist() == numbers


@pytest.mark.parametrize(
    ("stored", "count"),
    [(b"\x80", 0), (b"\x80", 1), (b"\x01", 2), (b"\x01\x02", 1), (b"\xff" * 9 + b"\x02", 1), (b"\x80" * 10 + b"\0", 1)],
    ids=["only begun", "no end", "too few", "too many", "65 bits", "eleven bytes"],
)
def test_no_leb128(stored: bytes, count: int) -> None:
    with pytest.raises(MalformedError):
        leb128_decode(stored, count)


@given(st.text())
def test_text(text: str) -> None:
    cursor = Cursor(text_bytes(text) + b"x")
    assert cursor.text() == text.encode("utf-8", "replace").decode()
    assert cursor.at == len(cursor.data) - 1
