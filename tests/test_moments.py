# SPDX-License-Identifier: Apache-2.0

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.summary import moments
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.summary_model import Moments

WHOLE = st.integers(-(2**63), 2**63 - 1)
SOME = st.lists(WHOLE | st.integers(-3000, 3_000_000), max_size=40)


def plain(values: list[int]) -> Moments:
    if not values:
        return Moments()
    return Moments(len(values), min(values), max(values), sum(values), sum(v * v for v in values))


@given(st.lists(WHOLE | st.integers(-5, 5), max_size=40))
def test_products_of_neighbours(values: list[int]) -> None:
    expected = sum(a * b for a, b in pairwise(values))
    assert moments.neighbour_products(np.array(values, np.int64)) == expected


@given(st.lists(st.tuples(WHOLE, WHOLE), max_size=40))
def test_products_of_any_64_bit_numbers_do_not_overflow(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    assert moments.exact_dot(x, y) == sum(a * b for a, b in pairs)


def test_a_long_array_of_large_numbers_does_not_overflow() -> None:
    x = np.full(moments.BLOCK + 3, 2**62 - 1, np.int64)
    assert moments.exact_dot(x, x) == (moments.BLOCK + 3) * (2**62 - 1) ** 2
    assert moments.neighbour_products(x) == (moments.BLOCK + 2) * (2**62 - 1) ** 2


@given(SOME)
def test_moments_of_counts_are_those_of_the_values(values: list[int]) -> None:
    assert moments.moments_of_counts(counts_of_values(np.array(values, np.int64))) == plain(values)


def test_wide_bins_have_no_exact_moments() -> None:
    with pytest.raises(ValueError, match="no exact moments"):
        moments.moments_of_counts(Counts(np.array([1]), np.array([2]), np.array([1])))


@given(SOME, st.integers(0, 40))
def test_parts_merge_to_the_whole(values: list[int], cut: int) -> None:
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
