# SPDX-License-Identifier: Apache-2.0

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import histogram_bins
from rtproof.summary import density

VALUES = st.one_of(st.integers(-40, 40), st.integers(-(10**7), 10**7), st.integers(-(2**63), 2**63 - 2))


@given(st.lists(VALUES, min_size=1))
def test_every_value_lies_between_the_edges_of_its_row(values: list[int]) -> None:
    for value, row in zip(values, density.rows_of_values(np.array(values)).tolist(), strict=True):
        low, end = density.row_edges(row, row).tolist()
        assert low <= value < end


def test_no_bin_of_the_record_is_cut() -> None:
    every = np.arange(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN + 1)
    low, high = histogram_bins.bin_edges(every)
    rows = density.rows_of_bins(every)
    assert np.array_equal(rows, density.rows_of_values(low))
    assert np.array_equal(rows, density.rows_of_values(high))


def test_a_power_of_two_has_eight_rows_and_small_values_one_each() -> None:
    assert density.row_edges(0, 15).tolist() == list(range(17))
    first = int(density.rows_of_values(np.array([4_096]))[0])
    assert density.row_edges(first, first + 7).tolist() == list(range(4_096, 8_193, 512))


def test_zero_and_negative_values_have_rows_of_their_own() -> None:
    assert density.rows_of_values(np.array([-2, -1, 0, 1])).tolist() == [-2, -1, 0, 1]
    assert density.row_edges(-3, 0).tolist() == [-3, -2, -1, 0, 1]


def test_rows_reach_to_the_ends_of_64_bits() -> None:
    last = density.LAST_ROW
    ends = np.array([-(2**63), 2**63 - 1])
    assert density.rows_of_values(ends).tolist() == [-1 - last, last]
    assert (density.row_edges(-1 - last, last)[[0, -1]] == ends).all()
    assert density.row_edges(-1 - last, last).size == density.ROW_COUNT + 1
