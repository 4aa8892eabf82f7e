# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tail_cases import counts_of, pareto

from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_values
from rtproof.tail.thresholds import FEWEST_EXCESSES, HOLDS, MOST_SHARE, MOST_THRESHOLDS, REACH, threshold_ladder

UNITS = 100_000
FAR = 1 / (10 * UNITS)


def test_rungs_are_the_largest_values() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    assert tuple(rung.k for rung in found.rungs) == MOST_THRESHOLDS
    thresholds = [rung.excesses.threshold for rung in found.rungs]
    assert thresholds == sorted(thresholds, reverse=True)
    assert all(rung.bins == rung.k and rung.bin_width == 1 for rung in found.rungs)


def test_the_limit_is_the_largest_of_those_that_hold() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    assert found.best is not None
    levels = [rung.region.level_upper(FAR) for rung in found.used]
    assert found.limit(FAR) == max(levels) > found.largest
    assert all(rung.p > HOLDS and found.best.k / REACH < rung.k <= found.best.k for rung in found.used)


def test_never_below_the_largest_value() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    assert found.limit(1 / 20) == found.largest


def test_a_level_that_is_exceeded_more_often_than_the_threshold_has_that_for_its_limit() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    rung = found.rungs[0]
    assert rung.limit(0.5) == rung.limit(1e9) == rung.excesses.threshold
    assert rung.limit(FAR) == rung.region.level_upper(FAR)


def test_the_limit_grows_with_the_horizon_and_is_the_levels_inverse() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    limits = [found.limit(1 / (times * UNITS)) or 0 for times in (1, 3, 10, 30)]
    assert limits == sorted(limits)
    assert found.probability(limits[2]) == pytest.approx(FAR, rel=1e-3)
    assert found.probability(-1.0) is None


def test_not_more_than_a_tenth_of_the_units() -> None:
    found = threshold_ladder(counts_of(0.0, 1e7, 9000), 9000)
    assert [rung.k for rung in found.rungs] == [200, 400, 800, 900]
    assert threshold_ladder(counts_of(0.0, 1e7, 1999), 1999).rungs == ()


def test_fits_behind_a_broken_one_are_not_used() -> None:
    """A second mechanism of 1,200 values: below them no rung holds, whatever comes further down."""
    rng = np.random.default_rng(2)
    values = np.concatenate((rng.exponential(1e5, UNITS), 5e6 + rng.exponential(1e5, 1200))).astype(np.int64)
    found = threshold_ladder(counts_of_values(values), values.size)
    assert [rung.k for rung in found.rungs if rung.p < 0.05] == [1600, 3200, 6400]
    assert found.best is not None
    assert found.best.k <= 800


@pytest.mark.parametrize("step", [100, 1000])
def test_coarse_clocks_have_fewer_rungs(step: int) -> None:
    found = threshold_ladder(counts_of(0.0, 800, UNITS, step=step), UNITS)
    assert all(FEWEST_EXCESSES <= rung.k <= MOST_SHARE * UNITS for rung in found.rungs)
    assert len({rung.excesses.threshold for rung in found.rungs}) == len(found.rungs)
    assert found.rungs[-1].bin_width == step


def test_bins_too_wide_for_the_tail_are_coarse() -> None:
    found = threshold_ladder(counts_of(0.0, 300, UNITS, step=1000), UNITS)
    assert found.rungs
    assert all(rung.coarse for rung in found.rungs)
    assert found.best is None
    assert found.limit(FAR) is None
    assert found.top is None


def test_negative_values_are_like_others() -> None:
    one, other = (
        threshold_ladder(counts_of_values(pareto(0.1, 1e7, UNITS, 1) + shift), UNITS) for shift in (0, -(10**12))
    )
    assert (other.limit(FAR) or 0) == pytest.approx((one.limit(FAR) or 0) - 10**12, abs=1e3)


def test_the_same_values_give_the_same_limit() -> None:
    counts = counts_of(0.1, 1e7, UNITS)
    assert threshold_ladder(counts, UNITS).limit(FAR) == threshold_ladder(counts, UNITS).limit(FAR)


@pytest.mark.parametrize(
    "counts",
    [
        NO_COUNTS,
        counts_of_values(np.array([5])),
        counts_of_values(np.full(UNITS, 7)),
        counts_of_values(np.repeat(np.array([1, 10**18]), UNITS // 2)),
    ],
    ids=["no data", "one unit", "all the same", "two values"],
)
def test_degenerate_data_have_no_limit(counts: Counts) -> None:
    found = threshold_ladder(counts, UNITS)
    assert found.best is None
    assert found.limit(FAR) is None
    assert found.probability(1e9) is None


@given(st.lists(st.integers(-(2**62), 2**62 - 1), max_size=40), st.integers(1, 10**6))
@settings(max_examples=40, deadline=None)
def test_any_values_of_any_magnitude(values: list[int], each: int) -> None:
    n = np.full(len(set(values)), each, np.int64)
    distinct = np.array(sorted(set(values)), np.int64)
    found = threshold_ladder(Counts(distinct, distinct, n), max(int(n.sum()), 1))
    limit = found.limit(1 / (10 * found.units))
    assert limit is None or limit >= found.largest
