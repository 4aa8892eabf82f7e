# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SERIES, array, block

from rtproof.record.contents import Block
from rtproof.summary import moments
from rtproof.summary.counts import counts_of_values
from rtproof.summary.moments import moments_of_counts
from rtproof.summary.per_second import PreviousDueTime, SampleStretch
from rtproof.summary.summary_model import NO_LAG, NO_MOMENTS, Lag

LATE = 500_000


def of(block_: Block, *cuts: int, tail: SampleStretch | None = None) -> Lag:
    return moments.lag_of_stretch(SERIES, SampleStretch(block_, array(*cuts), tail))


def test_a_late_activation_is_followed_by_a_short_cycle() -> None:
    assert of(block([0, LATE, 0])) == Lag(2, 0, 1)
    assert of(block([0, 0, LATE])) == Lag(2, 0, 0)


@pytest.mark.parametrize(("late", "pairs"), [(200_000, 0), (200_001, 1)])
def test_the_bounds_are_1_2_and_0_8_periods_exclusive(late: int, pairs: int) -> None:
    assert of(block([0, late, 0])).catch_up_pairs == pairs


def test_an_activation_beyond_its_period_makes_the_cycle_behind_it_short() -> None:
    """Due at 0, 1 and 5 ms, running at 0, 4.5 and 5 ms: cycles of 4.5 and 0.5 ms."""
    assert of(block([0, 3_500_000, 0], {1: 3})).catch_up_pairs == 1


def test_no_pair_reaches_into_another_slice() -> None:
    for cut in (1, 2):
        assert of(block([0, LATE, 0]), cut) == Lag(1, 0, 0)
    assert of(block([3, LATE, 0]), 0) == Lag(2, 3 * LATE, 1)


def test_the_tail_leads_into_the_first_pairs() -> None:
    tail = SampleStretch(block([3, LATE]), array())
    assert of(block([5, 7]), tail=tail) == Lag(2, 5 * LATE + 35, 1)


def test_off_the_grid_a_cycle_is_the_period_and_the_latency() -> None:
    free = replace(SERIES, on_grid=False)
    values = SampleStretch(block([0, 300_000, -300_000, 0]), array())
    assert moments.lag_of_stretch(free, values).catch_up_pairs == 1


def test_from_outside_a_cycle_is_what_the_due_times_say() -> None:
    """Due at 0, 1.5 (told anew) and 2 ms: a long cycle and a short one, though all latencies are the same."""
    outside = replace(SERIES, on_grid=False, external=True)
    whole = SampleStretch(
        block([10, 10, 10], series=outside), array(), None, PreviousDueTime(array(0, 1, 2), array(0, 1_500_000, 2 * MS))
    )
    assert moments.lag_of_stretch(outside, whole).catch_up_pairs == 1
    tail = SampleStretch(
        block([10, 10], series=outside), array(), None, PreviousDueTime(array(0, 1), array(0, 1_500_000))
    )
    rest = replace(block([10], series=outside), first_due_ns=2 * MS)
    behind = SampleStretch(rest, array(), tail, PreviousDueTime(array(0), array(2 * MS)))
    assert moments.lag_of_stretch(outside, behind) == Lag(1, 100, 1)


def test_merging_adds() -> None:
    assert moments.merge_lags([Lag(1, 2, 3), Lag(10, -20, 30)]) == Lag(11, -18, 33)
    assert moments.merge_lags([]) == NO_LAG


def test_correlation_is_that_of_neighbours() -> None:
    values = np.tile(np.array([100, 300], np.int64), 5000)
    found = moments.lag_correlation(of(block(values)), moments_of_counts(counts_of_values(values)))
    assert found == pytest.approx(-1, abs=1e-3)
    assert moments.lag_correlation(NO_LAG, NO_MOMENTS) is None
    assert moments.lag_correlation(of(block([MS, MS])), moments_of_counts(counts_of_values(array(MS, MS)))) is None
