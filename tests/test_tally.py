# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.record import histogram_bins
from rtproof.summary import moments
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.tally import ALWAYS_EXACT, WINDOW, Tallied, Tally, add_tallies

VALUES = st.lists(st.integers(-5000, 40_000) | st.integers(-(2**60), 2**60) | st.integers(2**20, 2**25), max_size=80)


def flat(pieces: list[list[int]]) -> list[int]:
    return [value for piece in pieces for value in piece]


def tallied(pieces: list[list[int]], most: int) -> Tallied:
    tally = Tally(most)
    for piece in pieces:
        tally.add(np.array(piece, np.int64))
    return tally.result()


def as_lists(counts: Counts) -> tuple[list[int], list[int], list[int]]:
    return counts.lo.tolist(), counts.hi.tolist(), counts.n.tolist()


@settings(deadline=None)
@given(st.lists(VALUES, max_size=5))
def test_values_are_counted_one_by_one_while_they_are_few(pieces: list[list[int]]) -> None:
    exact = counts_of_values(np.array(flat(pieces), np.int64))
    got = tallied(pieces, most=1000)
    assert as_lists(got.counts) == as_lists(exact)
    assert got.moments == moments.moments_of_counts(exact)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=5), st.integers(0, 6))
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


def test_below_a_million_every_value_stays_exact() -> None:
    values = [5, ALWAYS_EXACT - 1, ALWAYS_EXACT, ALWAYS_EXACT + 1, -3]
    got = tallied([values], most=2)
    near = (got.counts.lo >= 0) & (got.counts.lo < ALWAYS_EXACT)
    assert got.counts.lo[near].tolist() == got.counts.hi[near].tolist() == [5, ALWAYS_EXACT - 1]
    assert not got.counts.exact


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


def test_the_stall_of_a_day_is_counted_at_once() -> None:
    tally, terms = Tally(), 86_400 * 1000
    tally.add_progression(terms * 1_000_000, 1_000_000, terms)
    got = tally.result()
    assert got.counts.total == got.moments.count == terms
    assert got.moments.sum == 1_000_000 * terms * (terms + 1) // 2
    lo, hi = histogram_bins.bin_edges(histogram_bins.bin_of(got.counts.lo[got.counts.lo >= ALWAYS_EXACT]))
    assert (lo == got.counts.lo[got.counts.lo >= ALWAYS_EXACT]).all()
    assert (hi == got.counts.hi[got.counts.lo >= ALWAYS_EXACT]).all()
