# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.report import plot_data
from rtproof.summary.counts import NO_COUNTS, counts_of_values, merge_counts

LATENCIES = st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("width", "nice"), [(0.2, 1), (1, 1), (1.1, 2), (2, 2), (4, 5), (51, 100), (200, 200), (201, 500)]
)
def test_nice_widths(width: float, nice: int) -> None:
    assert plot_data.nice_width(width) == nice


@given(LATENCIES)
def test_the_scale_begins_at_the_smallest_and_has_at_most_300_bins(values: list[int]) -> None:
    start, width, amount = plot_data.bin_scale(counts_of_values(np.array(values)))
    assert start <= min(values) < start + width
    assert 1 <= amount <= plot_data.BINS + 1
    assert start + width * (amount - 1) <= max(values)


def test_a_far_tail_does_not_widen_the_scale() -> None:
    body, tail = counts_of_values(np.arange(1_000, 2_000)), counts_of_values(np.array([10**9]))
    start, width, amount = plot_data.bin_scale(merge_counts([body, tail]))
    assert 2_000 < start + width * amount < 5_000


def test_a_clock_with_few_values_is_shown_whole() -> None:
    start, width, amount = plot_data.bin_scale(counts_of_values(np.array([0] * 995 + [10**7] * 5)))
    assert start + width * amount > 10**7


@given(LATENCIES, LATENCIES)
def test_the_grid_has_every_largest_value_and_only_positive_ones(one: list[int], other: list[int]) -> None:
    counts = [counts_of_values(np.array(one)), counts_of_values(np.array(other))]
    grid = plot_data.survival_grid(counts).tolist()
    assert grid == sorted({value for value in one + other if value > 0})


def test_a_grid_of_many_values_is_thinned_and_keeps_the_ends() -> None:
    values = np.random.default_rng(5).gamma(2, 10_000, 50_000).astype(np.int64) + 1
    grid = plot_data.survival_grid([counts_of_values(values)])
    assert 300 < grid.size <= plot_data.POINTS + 1
    assert (grid[0], grid[-1]) == (values.min(), values.max())
    assert np.isin(np.sort(values)[-20:], grid).sum() > 15


@given(LATENCIES)
def test_shares_exceeded_are_counted_as_one_would_by_hand(values: list[int]) -> None:
    at = np.unique(np.array([*values, min(values) - 1]))
    shares = plot_data.exceeding_counts(counts_of_values(np.array(values)), at)
    assert shares.tolist() == [sum(value > x for value in values) / len(values) for x in at.tolist()]


def test_nothing_exceeds_in_nothing() -> None:
    assert plot_data.exceeding_counts(NO_COUNTS, np.array([5])).tolist() == [0.0]


@given(st.integers(-10, 10), st.integers(0, 10**6), st.integers(1, 700))
def test_columns_are_equal_few_and_cover_the_time(first: int, length: int, most: int) -> None:
    edges = plot_data.time_columns(first, first + length, most)
    assert len(set(np.diff(edges).tolist())) == 1
    assert edges[0] == first
    assert edges[-1] > first + length >= edges[-2]
    assert edges.size - 1 <= most
