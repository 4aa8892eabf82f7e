# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tail_cases import counts_of, excesses_of

from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_values
from rtproof.tail.pareto_fit import coarsened_excesses, highest_excesses, tail_of


def array(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_exact_values_are_bins_of_a_nanosecond() -> None:
    tail = tail_of(counts_of_values(array(5, 7, 7, 8)), 10)
    assert tail.lo.tolist() == [5, 7, 8]
    assert tail.hi.tolist() == [6, 8, 9]
    assert tail.cumulated.tolist() == [4, 3, 1]
    assert tail.largest == 9


def test_bins_reach_to_behind_their_last_value() -> None:
    tail = tail_of(Counts(array(0, 16), array(15, 31), array(3, 2)), 5)
    assert tail.hi.tolist() == [16, 32]


def test_values_on_a_coarser_grid_have_its_step() -> None:
    tail = tail_of(counts_of_values(array(3000, 5000, 8000, 8000)), 4)
    assert (tail.hi - tail.lo).tolist() == [1000, 1000, 1000]
    assert tail_of(counts_of_values(array(1007, 2007, 4007)), 4).hi.tolist() == [2007, 3007, 5007]


def test_a_known_step_holds() -> None:
    assert tail_of(counts_of_values(array(3000, 6000, 9000)), 3, 1000).hi.tolist() == [4000, 7000, 10000]


def test_values_nearer_than_the_step_do_not_overlap() -> None:
    assert tail_of(counts_of_values(array(0, 600, 5000)), 3, 1000).hi.tolist() == [600, 1600, 6000]


def test_values_beyond_the_digits_of_a_double_have_a_width() -> None:
    tail = tail_of(counts_of_values(array(2**40, 2**60)), 2)
    assert (tail.hi > tail.lo).all()


def test_more_values_than_units_are_refused() -> None:
    with pytest.raises(ValueError, match="1 units have 2 values"):
        tail_of(counts_of_values(array(1, 2)), 1)


def test_exactly_k_exceed_if_all_values_differ() -> None:
    found = highest_excesses(tail_of(counts_of_values(np.arange(0, 70_000, 7)), 10_000), 200)
    assert found is not None
    assert found.count == 200
    assert found.threshold == 9799 * 7 + 7


def test_the_threshold_lies_on_an_edge_with_ties() -> None:
    found = highest_excesses(tail_of(Counts(array(0, 10, 20), array(9, 19, 29), array(100, 30, 4)), 134), 20)
    assert found is not None
    assert (found.threshold, found.count) == (10, 34)
    assert found.lo.tolist() == [0, 10]
    assert found.width.tolist() == [10, 10]


@pytest.mark.parametrize("counts", [NO_COUNTS, counts_of_values(array(5, 5, 5))])
def test_no_threshold_without_a_bin_below(counts: Counts) -> None:
    assert highest_excesses(tail_of(counts, 10), 1) is None


def test_no_threshold_outside_the_bounds() -> None:
    tail = tail_of(counts_of_values(np.arange(50)), 50)
    assert highest_excesses(tail, 10, fewest=60) is None
    assert highest_excesses(tail, 10, most=0.5) is None


def test_a_coarser_form_keeps_the_ends_and_the_number() -> None:
    fine = excesses_of(0.1, 1e6, 50_000, k=5000)
    few = coarsened_excesses(fine)
    assert few.n.size < 220 < fine.n.size
    assert few.count == fine.count
    assert few.lo[0] == fine.lo[0]
    assert few.lo[-1] + few.width[-1] == fine.lo[-1] + fine.width[-1]
    assert (few.lo[1:] >= few.lo[:-1] + few.width[:-1]).all()


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=60), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_any_values(values: list[int], k: int) -> None:
    tail = tail_of(counts_of_values(np.array(values, np.int64)), 1000)
    assert (tail.hi > tail.lo).all()
    found = highest_excesses(tail, k)
    if found is not None:
        assert found.count == (np.array(values) >= found.threshold).sum()
        assert coarsened_excesses(found).count == found.count


def test_a_clock_of_a_microsecond_is_seen() -> None:
    assert excesses_of(0.0, 5e4, 100_000, step=1000).bin_width == 1000
    assert counts_of(0.0, 5e4, 1000, step=1000).exact
