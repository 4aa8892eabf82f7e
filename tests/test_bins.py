# SPDX-License-Identifier: Apache-2.0
"""The log-linear scale: against the formula of the format page in unlimited integers, and its promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import histogram_bins

EDGES = [2**k + d for k in range(64) for d in (-2, -1, 0, 1, 2)]
VALUES = sorted({v for edge in EDGES for v in (edge, -edge) if -(2**63) <= v < 2**63})
ANY = st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))


def by_the_page(v: int) -> int:
    if v < 0:
        return -1 - by_the_page(-1 - v)
    if v < 1024:
        return v
    e = v.bit_length() - 1
    return 1024 + (e - 10) * 512 + (v >> (e - 9)) - 512


def test_index_at_every_power_of_two() -> None:
    assert histogram_bins.bin_of(VALUES).tolist() == [by_the_page(v) for v in VALUES]


@given(st.lists(ANY))
def test_index_of_any_value(values: list[int]) -> None:
    assert histogram_bins.bin_of(values).tolist() == [by_the_page(v) for v in values]


def test_edges_meet_without_gap_over_the_whole_scale() -> None:
    low, high = histogram_bins.bin_edges(np.arange(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN + 1))
    assert (low[0], high[-1]) == (-(2**63), 2**63 - 1)
    assert (low[1:] == high[:-1] + 1).all()


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


@pytest.mark.parametrize("outside", [histogram_bins.LAST_BIN + 1, -2 - histogram_bins.LAST_BIN])
def test_outside_the_scale(outside: int) -> None:
    with pytest.raises(ValueError, match="outside the scale"):
        histogram_bins.bin_edges([outside])


def test_nothing() -> None:
    assert histogram_bins.bin_of([]).size == 0
    assert [edge.size for edge in histogram_bins.bin_edges([])] == [0, 0]
