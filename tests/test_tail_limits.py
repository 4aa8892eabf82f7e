# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tail_cases import counts_of, excesses_of, pareto

from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_values
from rtproof.tail.pareto_fit import Excesses
from rtproof.tail.thresholds import (
    FARTHEST,
    FEWEST_EXCESSES,
    HOLDS,
    MOST_SHARE,
    REACH,
    tail_limit,
    threshold_ladder,
    top_test,
)

UNITS = 100_000
FAR = 1 / (10 * UNITS)


def test_the_limit_is_the_largest_of_those_that_hold() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    assert found.best is not None
    levels = [rung.region.level_upper(FAR) for rung in found.used]
    assert found.limit(FAR) == max(levels) > found.largest
    assert all(rung.p > HOLDS and found.best.k / REACH < rung.k <= found.best.k for rung in found.used)


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


def test_negative_values_are_like_others() -> None:
    one, other = (
        threshold_ladder(counts_of_values(pareto(0.1, 1e7, UNITS, 1) + shift), UNITS) for shift in (0, -(10**12))
    )
    assert (other.limit(FAR) or 0) == pytest.approx((one.limit(FAR) or 0) - 10**12, abs=1e3)


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


def test_a_smooth_tail_has_a_limit() -> None:
    found = tail_limit(counts_of(0.05, 1e7, UNITS), UNITS, 10 * UNITS)
    assert found.codes == ()
    assert found.level == found.envelope
    true = 1e7 / 0.05 * ((10 * UNITS) ** 0.05 - 1)
    assert true <= (found.level or 0) <= 2 * true


def test_too_few_units() -> None:
    found = tail_limit(counts_of(0.05, 1e7, 1999), 1999, 1999)
    assert found.codes == ("FEW",)
    assert found.level is None
    assert tail_limit(NO_COUNTS, 0, 1).codes == ("FEW", "FAR")


def test_too_far_ahead() -> None:
    counts = counts_of(0.0, 1e7, UNITS)
    assert tail_limit(counts, UNITS, FARTHEST * UNITS).codes == ()
    assert "FAR" in tail_limit(counts, UNITS, FARTHEST * UNITS + 1).codes


@pytest.mark.parametrize("values", [np.full(UNITS, 7), pareto(0.0, 200, UNITS, 1) // 1000 * 1000])
def test_too_coarse(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    assert tail_limit(counts_of_values(values), UNITS, UNITS, 1000).codes == ("COARSE",)


def test_no_fit_holds() -> None:
    """Every threshold has a column of equal values above it, which no smooth tail has."""
    values = pareto(0.0, 1e7, UNITS, 1)
    order = np.argsort(values)
    for first, count in ((-190, 60), (-380, 60)):
        values[order[first : first + count]] = values[order[first]]
    found = tail_limit(counts_of_values(values), UNITS, UNITS)
    assert found.codes == ("FIT",)
    assert found.envelope is None
    assert found.top is None


def test_a_single_strange_value() -> None:
    values = pareto(0.0, 1e6, UNITS, 3)
    values[0] = 10**9
    codes = tail_limit(counts_of_values(values), UNITS, UNITS).codes
    assert {"FIT", "TOP"} & set(codes)


def test_a_limit_far_beyond_the_largest_value_is_wide() -> None:
    found = [tail_limit(counts_of(0.3, 1e5, 4000, seed), 4000, 40_000) for seed in range(12)]
    wide = [(one.envelope or 0) > 3 * one.ladder.largest for one in found]
    assert [("WIDE" in one.codes) for one in found] == wide
    assert 0 < sum(wide) < len(found)


def with_strange(of: Excesses, *excess: float) -> Excesses:
    """Some more values beyond all others."""
    lo = np.append(of.lo, excess)
    return replace(of, lo=lo, width=np.append(of.width, np.ones(len(excess))), n=np.append(of.n, np.ones(len(excess))))


@pytest.mark.parametrize(("xi", "step"), [(-0.2, 1), (0.0, 1), (0.2, 1), (0.0, 1000)])
def test_values_that_belong_to_the_rest_seldom_look_strange(xi: float, step: int) -> None:
    ps = np.array([top_test(excesses_of(xi, 1200, 20_000, 400, seed=seed, step=step)).p for seed in range(40)])
    assert (ps < 0.01).sum() <= 2
    assert (ps > 0.1).sum() >= 30


def test_a_value_far_beyond_is_strange() -> None:
    of = excesses_of(0.0, 1e5, 100_000, k=1600)
    assert top_test(of).p > 0.05
    assert top_test(with_strange(of, 60e5)).p < 1e-5


def test_several_values_far_beyond_are_strange() -> None:
    of = excesses_of(0.0, 1e5, 100_000, k=1600)
    assert top_test(with_strange(of, *(15e5 + 1e5 * np.arange(4.0)))).p < 0.005


def test_the_fit_has_not_seen_what_it_judges() -> None:
    """Moving the largest outwards leaves the fit of the others alone, so that p falls and falls."""
    of = excesses_of(0.1, 1e5, 100_000)
    ps = [top_test(with_strange(of, factor * of.lo[-1])).p for factor in (1.5, 3.0, 10.0)]
    assert ps[0] > ps[1] > ps[2]
