# SPDX-License-Identifier: Apache-2.0
"""Counts: merging in any order, ranks, exceedances and fixed bins, against counting one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_dense_bins, counts_of_values, merge_counts

VALUES = st.lists(st.integers(-(2**62), 2**62) | st.integers(-50, 5000), max_size=60)
GRID = 64
"""Width of the wide bins in these tests."""


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def exact(values: list[int]) -> Counts:
    return counts_of_values(np.array(values, np.int64))


def wide(values: list[int]) -> Counts:
    cells, n = np.unique(np.array(values, np.int64) // GRID, return_counts=True)
    return Counts(cells * GRID, cells * GRID + GRID - 1, n.astype(np.int64))


def as_lists(counts: Counts) -> tuple[list[int], list[int], list[int]]:
    return counts.lo.tolist(), counts.hi.tolist(), counts.n.tolist()


@given(VALUES, st.integers(0, 60))
def test_parts_merge_to_the_whole(values: list[int], cut: int) -> None:
    assert as_lists(merge_counts([exact(values[:cut]), exact(values[cut:])])) == as_lists(exact(values))


@given(VALUES, VALUES, VALUES)
def test_merging_mixed_exactness_does_not_depend_on_order_or_grouping(a: list[int], b: list[int], c: list[int]) -> None:
    one, two, three = exact(a), wide(b), exact(c)
    together = as_lists(merge_counts([one, two, three]))
    assert as_lists(merge_counts([three, merge_counts([two, one])])) == together
    assert as_lists(merge_counts([merge_counts([one, three]), two])) == together
    lo, hi, n = together
    assert all(left < right for left, right in zip(hi, lo[1:], strict=False))
    assert sum(n) == len(a) + len(b) + len(c)


def test_an_exact_value_falls_into_the_wide_bin_that_holds_it() -> None:
    parts = [Counts(array(10), array(19), array(5)), exact([9, 10, 15, 20])]
    assert as_lists(merge_counts(parts)) == ([9, 10, 20], [9, 19, 20], [1, 7, 1])


def test_nothing_merges_to_nothing() -> None:
    assert merge_counts([]).total == 0
    assert merge_counts([NO_COUNTS, NO_COUNTS]) == NO_COUNTS


def test_dense_counts_start_where_they_are_told() -> None:
    assert as_lists(counts_of_dense_bins(array(0, 2, 0, 1), 100)) == ([101, 103], [101, 103], [2, 1])


@given(VALUES.filter(bool))
def test_rank_is_the_place_in_the_sorted_values(values: list[int]) -> None:
    counts = exact(values)
    assert [counts.value_at_rank(rank + 1) for rank in range(len(values))] == [(v, v) for v in sorted(values)]


@pytest.mark.parametrize("rank", [0, 4])
def test_a_rank_outside_is_refused(rank: int) -> None:
    with pytest.raises(IndexError):
        exact([1, 2, 3]).value_at_rank(rank)


@given(VALUES, st.integers(-100, 5000))
def test_exceedances_of_exact_counts_are_certain(values: list[int], limit: int) -> None:
    larger = sum(v > limit for v in values)
    assert exact(values).exceedances(limit) == (larger, larger)


@given(VALUES, st.integers(-100, 5000))
def test_exceedances_of_wide_bins_enclose_the_truth(values: list[int], limit: int) -> None:
    certain, possible = wide(values).exceedances(limit)
    assert certain <= sum(v > limit for v in values) <= possible


@pytest.mark.parametrize(("width", "count"), [(2000, 2500), (500, 2000), (1000, 10000), (1000, 400), (7, 3)])
@given(values=VALUES, start=st.integers(-100, 1000))
def test_fixed_bins_hold_every_value(values: list[int], start: int, width: int, count: int) -> None:
    bins = exact(values).fixed_bins(start, width, count)
    expected = [0] * count
    for value in values:
        if start <= value < start + width * count:
            expected[(value - start) // width] += 1
    assert bins.counts.tolist() == expected
    assert bins.below == sum(v < start for v in values)
    assert bins.above == sum(v >= start + width * count for v in values)
    assert bins.straddling == 0


def test_fixed_bins_tell_how_many_counts_an_edge_cuts() -> None:
    bins = Counts(array(10, 20), array(14, 29), array(3, 4)).fixed_bins(0, 12, 2)
    assert (bins.counts.tolist(), bins.above, bins.straddling) == ([0, 3], 4, 7)


@pytest.mark.parametrize(("width", "count"), [(0, 1), (1, 0)])
def test_a_histogram_without_bins_is_refused(width: int, count: int) -> None:
    with pytest.raises(ValueError, match="at least one bin"):
        NO_COUNTS.fixed_bins(0, width, count)


def test_ccdf_is_the_share_above_each_value() -> None:
    value, share = exact([1, 1, 2, 5]).ccdf()
    assert value.tolist() == [1, 2, 5]
    assert share.tolist() == [0.5, 0.25, 0.0]
