# SPDX-License-Identifier: Apache-2.0
"""Counts: merging in any order, ranks, exceedances and fixed bins, against counting one by one."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SERIES, array, block
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.record.contents import Block, Series
from rtproof.summary import moments, per_second
from rtproof.summary.counts import Counts, counts_of_values, merge_counts
from rtproof.summary.moments import moments_of_counts
from rtproof.summary.summary_model import NO_LAG, NO_MOMENTS, Lag, Moments
from rtproof.summary.tally import WINDOW, Tallied, Tally, add_tallies, array_pieces

VALUES = st.lists(st.integers(-(2**62), 2**62) | st.integers(-50, 5000), max_size=60)
GRID = 64
"""Width of the wide bins in these tests."""


def array_counts(*values: int) -> np.ndarray:
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
    parts = [Counts(array_counts(10), array_counts(19), array_counts(5)), exact([9, 10, 15, 20])]
    assert as_lists(merge_counts(parts)) == ([9, 10, 20], [9, 19, 20], [1, 7, 1])


@given(VALUES.filter(bool))
def test_rank_is_the_place_in_the_sorted_values(values: list[int]) -> None:
    counts = exact(values)
    assert [counts.value_at_rank(rank + 1) for rank in range(len(values))] == [(v, v) for v in sorted(values)]


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
    bins = Counts(array_counts(10, 20), array_counts(14, 29), array_counts(3, 4)).fixed_bins(0, 12, 2)
    assert (bins.counts.tolist(), bins.above, bins.straddling) == ([0, 3], 4, 7)


VALUES_TALLY = st.lists(
    st.integers(-5000, 40_000) | st.integers(-(2**60), 2**60) | st.integers(2**20, 2**25), max_size=80
)


def flat(pieces: list[list[int]]) -> list[int]:
    return [value for piece in pieces for value in piece]


def tallied(pieces: list[list[int]], most: int) -> Tallied:
    tally = Tally(most)
    for piece in pieces:
        tally.add(np.array(piece, np.int64))
    return tally.result()


@settings(deadline=None)
@given(st.lists(VALUES_TALLY, max_size=5))
def test_values_are_counted_one_by_one_while_they_are_few(pieces: list[list[int]]) -> None:
    exact = counts_of_values(np.array(flat(pieces), np.int64))
    got = tallied(pieces, most=1000)
    assert as_lists(got.counts) == as_lists(exact)
    assert got.moments == moments.moments_of_counts(exact)


@settings(deadline=None)
@given(st.lists(VALUES_TALLY, max_size=5), st.integers(0, 6))
def test_too_many_go_to_the_scale_in_any_order_and_grouping(pieces: list[list[int]], most: int) -> None:
    together = tallied([flat(pieces)], most)
    assert as_lists(tallied(pieces[::-1], most).counts) == as_lists(together.counts)
    parts = add_tallies((tallied([piece], most) for piece in pieces), most)
    assert as_lists(parts.counts) == as_lists(together.counts)
    assert (
        parts.moments
        == together.moments
        == moments.moments_of_counts(counts_of_values(np.array(flat(pieces), np.int64)))
    )


@pytest.mark.parametrize("low", [0, 3000, 2_000_000, WINDOW - 50, WINDOW, -100])
def test_an_array_whose_top_is_far_away(low: int) -> None:
    values = np.arange(low, low + 200, dtype=np.int64)
    values[::50] = 10**9
    got = Tally()
    got.add(values)
    assert as_lists(got.result().counts) == as_lists(counts_of_values(values))


@pytest.mark.parametrize(("first", "step", "terms"), [(10**7, 1000, 60), (5 * 10**12, 10**6, 1_100_000), (900, 7, 200)])
def test_a_progression_counts_as_its_terms(first: int, step: int, terms: int) -> None:
    most = 10
    values = first - step * np.arange(terms, dtype=np.int64)
    tally = Tally(most)
    tally.add_progression(first, step, terms)
    got, expected = tally.result(), tallied([values.tolist()], most)
    assert as_lists(got.counts) == as_lists(expected.counts)
    assert got.moments == expected.moments


@given(st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=9), max_size=6), st.integers(1, 7))
def test_the_largest_of_all_blocks_the_earlier_first(pieces: list[list[int]], k: int) -> None:
    top, index = per_second.empty_top(k), 0
    for values in pieces:
        some, _ = per_second.join_blocks(SERIES, [block(values, first_index=index)])
        top = per_second.add_to_top(some, top)
        index += len(values)
    flat = [value for values in pieces for value in values]
    expected = sorted((-value, at) for at, value in enumerate(flat))[:k]
    assert list(zip((-top.value).tolist(), top.index.tolist(), strict=True)) == expected


LATE = 500_000


def of(*blocks: Block, cuts: tuple[int, ...] = (), series: Series = SERIES) -> Lag:
    """cuts: the due times in periods at which slices begin. Each block is a stretch of its own."""
    lags, before = [], moments.NO_NEIGHBOURS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", 1)
        for stretch in per_second.stretches(series, blocks, array(*(cut * series.period_ns for cut in cuts))):
            lag, before = moments.lag_of_stretch(series, stretch, before)
            lags.append(lag)
    return moments.merge_lags(lags)


def test_a_late_activation_is_followed_by_a_short_cycle() -> None:
    assert of(block([0, LATE, 0])) == Lag(2, 0, 1)
    assert of(block([0, 0, LATE])) == Lag(2, 0, 0)


@pytest.mark.parametrize(("late", "pairs"), [(200_000, 0), (200_001, 1)])
def test_the_bounds_are_1_2_and_0_8_periods_exclusive(late: int, pairs: int) -> None:
    assert of(block([0, late, 0])).catch_up_pairs == pairs


def test_no_pair_reaches_into_another_slice() -> None:
    for cut in (1, 2):
        late = [0, LATE, 0]
        parts = block(late[:cut]), block(late[cut:], first_index=cut)
        assert of(*parts, cuts=(cut,)) == Lag(1, 0, 0)
        assert of(*parts) == Lag(2, 0, 1)
    assert of(block([3, LATE, 0]), cuts=(0,)) == Lag(2, 3 * LATE, 1)


def test_a_stretch_leads_into_the_next_one() -> None:
    assert of(block([3, LATE]), block([5, 7], first_index=2)) == Lag(3, 3 * LATE + 5 * LATE + 35, 1)
    assert of(block([3, LATE]), block([5, 7], first_index=3)) == Lag(2, 3 * LATE + 35, 0)


def test_off_the_grid_a_cycle_is_the_period_and_the_latency() -> None:
    free = replace(SERIES, on_grid=False)
    assert of(block([0, 300_000, -300_000, 0], series=free), series=free).catch_up_pairs == 1


def test_from_outside_a_cycle_is_what_the_due_times_say() -> None:
    """Due at 0, 1.5 (told anew) and 2 ms: a long cycle and a short one, though all latencies are the same."""
    outside = replace(SERIES, on_grid=False, external=True)
    blocks = [
        replace(block([10], first_index=index, series=outside), first_due_ns=due_ns)
        for index, due_ns in enumerate((0, 1_500_000, 2 * MS))
    ]
    assert of(*blocks, series=outside) == Lag(2, 200, 1)
    joined, _ = per_second.join_blocks(outside, blocks)
    parted = np.array([True, False, False])
    assert moments.lag_of_stretch(outside, (joined, parted))[0] == Lag(2, 200, 1)


def test_correlation_is_that_of_neighbours() -> None:
    values = np.tile(np.array([100, 300], np.int64), 5000)
    found = moments.lag_correlation(of(block(values)), moments_of_counts(counts_of_values(values)))
    assert found == pytest.approx(-1, abs=1e-3)
    assert moments.lag_correlation(NO_LAG, NO_MOMENTS) is None
    assert moments.lag_correlation(of(block([MS, MS])), moments_of_counts(counts_of_values(array(MS, MS)))) is None


WHOLE = st.integers(-(2**63), 2**63 - 1)
SOME = st.lists(WHOLE | st.integers(-3000, 3_000_000), max_size=40)


def plain(values: list[int]) -> Moments:
    if not values:
        return Moments()
    return Moments(len(values), min(values), max(values), sum(values), sum(v * v for v in values))


@given(SOME)
def test_moments_of_counts_are_those_of_the_values(values: list[int]) -> None:
    assert moments.moments_of_counts(counts_of_values(np.array(values, np.int64))) == plain(values)


@given(SOME, st.integers(0, 40))
def test_parts_merge_to_the_whole_moments(values: list[int], cut: int) -> None:
    assert moments.merge_moments((plain(values[:cut]), plain(values[cut:]))) == plain(values)


@given(WHOLE, st.integers(1, 10**9), st.integers(0, 50))
def test_a_progression_in_closed_form_is_its_terms(first: int, step: int, terms: int) -> None:
    assert moments.moments_of_progression(first, step, terms) == plain([first - j * step for j in range(terms)])


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=50))
def test_deviation_is_that_of_numpy(values: list[int]) -> None:
    assert plain(values).deviation == pytest.approx(np.std(values, ddof=1))


@given(SOME)
def test_moments_of_values_are_those_counted_one_by_one(values: list[int]) -> None:
    assert moments.moments_of_values(np.array(values, np.int64)) == plain(values)


def test_a_stretch_ends_at_a_hole_or_when_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_second, "LONGEST", 3)
    blocks = [block([1, 2, 3], {2: 1}), block([4], first_index=4), block([5, 6], first_index=5), block([7], {}, 9)]
    found = list(per_second.stretches(SERIES, blocks, array(4 * MS)))
    assert [some.value.tolist() for some, _ in found] == [[1, 2, 3], [4, 5, 6], [7]]
    assert [some.index.tolist() for some, _ in found] == [[0, 1, 2], [4, 5, 6], [9]]
    assert [parted.tolist() for _, parted in found] == [[True, False, False], [True, False, False], [True]]


@given(st.lists(st.integers(1, 100)), st.integers(1, 200))
def test_pieces_cover_everything_in_order(sizes: list[int], most: int) -> None:
    found = array_pieces(np.array(sizes, np.int64), most)
    assert [size for piece in found for size in sizes[piece]] == sizes
    assert all(sizes[piece] for piece in found)
    assert all(sum(sizes[piece]) < most + max(sizes) for piece in found)
