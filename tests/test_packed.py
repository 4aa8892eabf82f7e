# SPDX-License-Identifier: Apache-2.0
"""Packed arrays: round trips, against a slow decoder that follows the format page word by word; impossible bytes."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rtproof.record import encoding
from rtproof.record.contents import Int64Array
from rtproof.record.encoding import MalformedError

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


@pytest.mark.parametrize("width", range(64))
def test_every_width_at_odd_lengths(width: int) -> None:
    for n in (1, 2, 7, 8, 9, 63, 1001):
        values = np.random.default_rng(n).integers(0, 2**width, n, endpoint=False, dtype=np.int64)
        values[0] = (1 << width) - 1
        assert encoding.decode_array(encoding.encode_array(values))[0].tolist() == values.tolist()


@pytest.mark.parametrize("width", range(1, 64))
def test_a_reader_takes_any_width(width: int) -> None:
    """Also one that is far wider than needed, with the base anywhere."""
    n = 13
    planes = bytes(encoding.plane_bytes(n, width))
    base = 2**63 - 1
    data = struct.pack("<IqBBHxx", n, base, width, 8, 1)[:16] + planes + struct.pack("<Hq", 3, 1)
    assert encoding.decode_array(data)[0].tolist() == [base] * 3 + [-(2**63)] + [base] * 9 == slow_decode(data)


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63)], [-(2**63)] * 3, [0] * 65_536, list(range(65_536))])
def test_extremes(values: list[int]) -> None:
    assert encoding.decode_array(encoding.encode_array(values))[0].tolist() == values


def test_constants_need_no_planes() -> None:
    assert len(encoding.encode_array([123_456_789] * 4096)) == encoding.ARRAY_HEAD.size


def test_few_outliers_on_either_side_do_not_widen_the_rest() -> None:
    values = np.random.default_rng(5).integers(5000, 7048, 4096)
    plain = len(encoding.encode_array(values))
    values[[10, 4000]] = -3
    values[[20, 30]] = 400_000_000
    with_outliers = len(encoding.encode_array(values))
    assert encoding.array_layout(encoding.encode_array(values)).exceptions == 4
    assert with_outliers <= plain + 4 * 6 + 8


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


# Making them is slow on a busy machine, which is no fault of theirs.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ARRAYS, max_size=12))
def test_many_at_once_are_the_same_as_one_by_one(arrays: list[Int64Array]) -> None:
    stored = [encoding.encode_array(array) for array in arrays]
    joined = encoding.decode_arrays([(data, encoding.array_layout(data)) for data in stored])
    assert joined.tolist() == [value for array in arrays for value in array.tolist()]


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


@pytest.mark.parametrize("values", [np.zeros(65_537), np.zeros((2, 2))])
def test_what_does_not_fit_is_refused(values: Int64Array) -> None:
    with pytest.raises(ValueError, match="65536"):
        encoding.encode_array(values)
