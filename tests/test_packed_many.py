# SPDX-License-Identifier: Apache-2.0
"""Many packed arrays at once are what each of them is alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import encoding
from rtproof.record.contents import Int64Array
from rtproof.record.encoding import MalformedError

ARRAYS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-50, 50), max_size=30), max_size=12)


def layouts(stored: list[bytes]) -> tuple[encoding.ByteArray, encoding.ArrayLayouts]:
    data = np.frombuffer(b"".join(stored), np.uint8)
    sizes = np.array([len(one) for one in stored], np.int64)
    return data, encoding.array_layouts(data, np.cumsum(sizes) - sizes, np.cumsum(sizes))


@given(ARRAYS)
def test_together_as_one_by_one(arrays: list[list[int]]) -> None:
    stored = [encoding.encode_array(array) for array in arrays]
    data, heads = layouts(stored)
    for number, one in enumerate(stored):
        alone = encoding.array_layout(one)
        assert (encoding.layout_of_one(heads, number).n, encoding.layout_of_one(heads, number).width) == (
            alone.n,
            alone.width,
        )
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


def test_a_short_one_is_malformed() -> None:
    fine = encoding.encode_array(list(range(40)))
    for length in range(len(fine)):
        with pytest.raises(MalformedError):
            layouts([fine, fine[:length]])


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
