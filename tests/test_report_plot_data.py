# SPDX-License-Identifier: Apache-2.0

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.report import number_format, plot_data
from rtproof.report.blocks import HeatMap
from rtproof.report.number_format import MS, NS, US, S
from rtproof.summary.counts import counts_of_values, merge_counts

LATENCIES = st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=60)


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


@given(st.integers(-10, 10), st.integers(0, 10**6), st.integers(1, 700))
def test_columns_are_equal_few_and_cover_the_time(first: int, length: int, most: int) -> None:
    edges = plot_data.time_columns(first, first + length, most)
    assert len(set(np.diff(edges).tolist())) == 1
    assert edges[0] == first
    assert edges[-1] > first + length >= edges[-2]
    assert edges.size - 1 <= most


def test_shades_are_even_steps_of_the_logarithm() -> None:
    assert plot_data.heat_shades((0, 1, 10, 100, 1_000), 1_000) == ".0Kfz"
    assert plot_data.heat_shades((0, 1), 1) == ".z"
    assert plot_data.heat_shades((0, 0), 0) == ".."


def test_a_large_map_is_embedded_in_little_space() -> None:
    row = tuple(range(10**9, 10**9 + 300))
    edges = tuple(float(at) for at in range(301))
    large = HeatMap("Map", "says", "t", "y", edges, edges[1:122], (row,) * 120)
    assert len(json.dumps(plot_data.plot_script_data(large))) < 100_000


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([], NS),
        ([None, 0], NS),
        ([-999], NS),
        ([1_000], US),
        ([3_000, 5_000, 400_000_000], US),
        ([2_000_000], MS),
        ([-2_000_000, 5_000_000], MS),
        ([3_000_000_000], S),
    ],
)
def test_the_unit_is_that_of_the_middle_value(values: list[float | None], unit: number_format.PrintedUnit) -> None:
    assert number_format.unit_for(values) == unit


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "unknown"),
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33.33 %"),
        (10**9 - 1, 10**9, "above 99.99 %"),
        (1, 10**9, "1e-07 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(part: int, whole: int, text: str) -> None:
    assert number_format.share_text(part, whole) == text


def test_the_time_of_a_run_is_in_seconds_minutes_or_hours() -> None:
    spans = (600, 601, 18_000, 18_001)
    assert [number_format.axis_unit(span * number_format.NS_PER_S).name for span in spans] == ["s", "min", "min", "h"]
