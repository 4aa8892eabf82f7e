# SPDX-License-Identifier: Apache-2.0
"""The fit of a tail, the limit that follows from it, and when there is none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.tail import fit_test_table
from rtproof.tail.pareto_fit import (
    ONE_SIDED_95,
    SHAPES,
    TWO_SIDED_95,
    UNBOUNDED,
    Excesses,
    TailFit,
    anderson_darling_p_value,
    anderson_darling_statistic,
    coarsened_excesses,
    fit_region,
    fit_tail,
    highest_excesses,
    likelihood_score,
    pareto_growth,
    pareto_survival,
    tail_of,
)
from rtproof.tail.thresholds import HOLDS, REACH, tail_limit, threshold_ladder, top_test


def pareto(xi: float, sigma: float, size: int, seed: int) -> Int64Array:
    """Generalised Pareto values, rounded down."""
    uniform = np.random.default_rng(seed).random(size)
    values = -np.log(uniform) if xi == 0 else (uniform**-xi - 1) / xi
    return (sigma * values).astype(np.int64)


def counts_of(xi: float, sigma: float, size: int, seed: int = 1, step: int = 1) -> Counts:
    """Of a clock that counts in steps."""
    return counts_of_values(pareto(xi, sigma, size, seed) // step * step)


def excesses_of(xi: float, sigma: float, size: int, k: int = 1000, **how: int) -> Excesses:
    """how: seed and step of ``counts_of``."""
    found = highest_excesses(tail_of(counts_of(xi, sigma, size, **how), size, how.get("step", 1)), k)
    assert found is not None
    return found


FAR = 1e-7


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.2, 0.7])
def test_fine_bins_give_scipys_estimate(xi: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    excesses = excesses_of(xi, 1e6, 50_000)
    values = np.repeat(excesses.lo + excesses.width / 2, excesses.n.astype(int))
    shape, _, scale = stats.genpareto.fit(values, floc=0)
    found = fit_tail(excesses)
    assert found.xi == pytest.approx(shape, abs=3e-4)
    assert found.sigma == pytest.approx(scale, rel=3e-4)


@pytest.mark.parametrize("xi", [-0.4, -1e-12, 0.0, 1e-7, 0.3, 1.2])
def test_the_likelihood_of_bins_is_that_of_scipys_distribution(xi: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    lo, n = np.arange(6.0), np.array([9.0, 4, 3, 0, 1, 1])
    of = Excesses(0.0, lo, np.ones(6), n, 100)
    distribution = stats.genpareto(xi, scale=3.0)
    expected = (n * np.log(distribution.cdf(lo + 1) - distribution.cdf(lo))).sum()
    assert likelihood_score(of, np.array([xi]), np.log([3.0])).value[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shapes", [SHAPES, UNBOUNDED])
@pytest.mark.parametrize("drop", [ONE_SIDED_95, TWO_SIDED_95])
def test_limits_are_those_of_a_search_over_all_parameters(shapes: tuple[float, float], drop: float) -> None:
    excesses = coarsened_excesses(excesses_of(0.1, 1e5, 100_000))
    found = fit_region(excesses, drop, shapes)
    xi, t = np.meshgrid(
        np.linspace(max(found.xi[0] - 0.02, shapes[0]), found.xi[-1] + 0.02, 121),
        np.linspace(np.log(found.low.min()) - 0.05, np.log(found.high.max()) + 0.05, 161),
    )
    near = likelihood_score(excesses, xi.ravel(), t.ravel()).value >= found.fit.log_likelihood - drop / 2
    sigma = np.exp(t.ravel()[near])
    levels = found.threshold + sigma * pareto_growth(1000 / 1e5 / FAR, xi.ravel()[near])
    # The mesh misses the edge by part of a step, so its extremes lie a little inside.
    assert found.level_upper(FAR) == pytest.approx(levels.max(), rel=0.01)
    assert found.level_lower(FAR) == pytest.approx(levels.min(), rel=0.01)
    assert levels.max() <= found.level_upper(FAR) * 1.0005
    far = (found.level_lower(FAR) + found.level_upper(FAR)) / 2
    chances = 0.01 * pareto_survival(far - found.threshold, xi.ravel()[near], sigma)
    assert found.probability_upper(far) == pytest.approx(chances.max(), rel=0.03)


def test_the_limits_of_level_and_probability_are_inverse() -> None:
    found = fit_region(coarsened_excesses(excesses_of(0.1, 1e5, 100_000)))
    assert found.probability_upper(found.level_upper(FAR)) == pytest.approx(FAR, rel=1e-3)
    assert found.level_lower(FAR) < found.level_upper(FAR)


def test_a_bounded_tail_is_never_claimed() -> None:
    found = fit_region(coarsened_excesses(excesses_of(-0.3, 1e5, 100_000)))
    assert found.xi[0] == 0
    assert found.fit.xi == pytest.approx(0, abs=1e-6)
    free = fit_region(coarsened_excesses(excesses_of(-0.3, 1e5, 100_000)), shapes=SHAPES)
    assert free.xi[0] < free.fit.xi < 0
    assert free.level_upper(FAR) < found.level_upper(FAR)


def a_squared(shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """As the textbook has it, of values that would be uniform."""
    sorted_ones, n = np.sort(shares), shares.size
    weights = 2 * np.arange(1, n + 1) - 1
    return float(-n - (weights * (np.log(sorted_ones) + np.log1p(-sorted_ones[::-1]))).mean())


@pytest.mark.parametrize("step", [1, 250, 1000, 2000])
def test_the_mean_over_all_places_in_the_bins(step: int) -> None:
    """The statistic is what drawing the places at random gives on average."""
    of, guess = excesses_of(0.1, 1000, 20_000, step=step, k=500), TailFit(0.15, 1100.0, 0.0)
    high, low = (pareto_survival(edge, guess.xi, guess.sigma) for edge in (of.lo, of.lo + of.width))
    n, generator = of.n.astype(int), np.random.default_rng(1)
    drawn = [
        a_squared(1 - np.repeat(low, n) - generator.random(of.count) * np.repeat(high - low, n)) for _ in range(2000)
    ]
    assert anderson_darling_statistic(of, guess) == pytest.approx(
        np.mean(drawn), abs=5 * np.std(drawn) / 2000**0.5 + 1e-3
    )


@pytest.mark.parametrize("xi", fit_test_table.TABLE_SHAPES)
@pytest.mark.parametrize("width", fit_test_table.TABLE_WIDTHS)
def test_the_tables_own_nodes(xi: float, width: float) -> None:
    """Where quantiles are the same to the digits that the table has, any of their probabilities will do."""
    quantiles = fit_test_table.TABLE_QUANTILES[fit_test_table.TABLE_SHAPES.index(xi)][
        fit_test_table.TABLE_WIDTHS.index(width)
    ]
    for a2, p in zip(quantiles, fit_test_table.TABLE_PROBABILITIES, strict=True):
        alike = [q for other, q in zip(quantiles, fit_test_table.TABLE_PROBABILITIES, strict=True) if other == a2]
        found = anderson_darling_p_value(a2, xi, width)
        assert found == pytest.approx(p) or min(alike) * 0.999 <= found <= max(alike) * 1.001


@pytest.mark.parametrize("step", [1, 500, 1000])
def test_right_fits_are_rejected_as_often_as_p_says(step: int) -> None:
    ps = [_p(excesses_of(0.05, 1000, 8000, seed=seed, step=step, k=400)) for seed in range(150)]
    assert 0.04 <= np.mean(np.array(ps) < 0.1) <= 0.18
    assert 0.38 <= np.mean(np.array(ps) < 0.5) <= 0.62


def test_two_mechanisms_are_rejected() -> None:
    values = np.concatenate((np.random.default_rng(1).exponential(1.0, 770), 60 + np.arange(30.0)))
    bins, n = np.unique(np.floor(values * 1000), return_counts=True)
    assert _p(Excesses(0.0, bins, np.ones(bins.size), n.astype(float), 8000)) < 0.01


def _p(of: Excesses) -> float:
    found = fit_tail(of)
    return anderson_darling_p_value(anderson_darling_statistic(of, found), found.xi, of.bin_width / found.sigma)


def array(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("counts", "step", "hi"),
    [
        (counts_of_values(array(5, 7, 7, 8)), None, [6, 8, 9]),  # exact values are bins of a nanosecond
        (Counts(array(0, 16), array(15, 31), array(3, 2)), None, [16, 32]),
        (counts_of_values(array(3000, 5000, 8000, 8000)), None, [4000, 6000, 9000]),
        (counts_of_values(array(1007, 2007, 4007)), None, [2007, 3007, 5007]),
        (counts_of_values(array(3000, 6000, 9000)), 1000, [4000, 7000, 10000]),
        (counts_of_values(array(0, 600, 5000)), 1000, [600, 1600, 6000]),  # nearer than the step: no overlap
    ],
)
def test_ends_of_bins(counts: Counts, step: int | None, hi: list[int]) -> None:
    tail = tail_of(counts, 10, step) if step else tail_of(counts, 10)
    assert (tail.lo + tail.width).tolist() == hi
    assert tail.count == counts.total


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


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=60), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_any_values(values: list[int], k: int) -> None:
    tail = tail_of(counts_of_values(np.array(values, np.int64)), 1000)
    assert (tail.width > 0).all()
    found = highest_excesses(tail, k)
    if found is not None:
        assert found.count == (np.array(values) >= found.threshold).sum()
        assert coarsened_excesses(found).count == found.count


UNITS = 100_000
ONCE_IN_TEN = 1 / (10 * UNITS)


def test_the_limit_is_the_largest_of_those_that_hold() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    assert found.best is not None
    levels = [rung.region.level_upper(ONCE_IN_TEN) for rung in found.used]
    assert found.limit(ONCE_IN_TEN) == max(levels) > found.largest
    assert all(rung.p > HOLDS and found.best.k / REACH < rung.k <= found.best.k for rung in found.used)


def test_a_level_that_is_exceeded_more_often_than_the_threshold_has_that_for_its_limit() -> None:
    rung = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS).rungs[0]
    above = rung.k / UNITS
    assert rung.limit(1.001 * above) == rung.limit(0.5) == rung.excesses.threshold
    assert rung.limit(0.5 * above) > rung.excesses.threshold


def test_the_limit_grows_with_the_horizon_and_is_the_levels_inverse() -> None:
    found = threshold_ladder(counts_of(0.1, 1e7, UNITS), UNITS)
    limits = [found.limit(1 / (times * UNITS)) or 0 for times in (1, 3, 10, 30)]
    assert limits == sorted(limits)
    assert found.probability(limits[2]) == pytest.approx(ONCE_IN_TEN, rel=1e-3)
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
    true = 1e7 / 0.05 * ((10 * UNITS) ** 0.05 - 1)
    assert true <= (found.envelope or 0) <= 2 * true


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
    assert "FIT" in found.codes
    assert found.envelope is None


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


def test_the_fit_has_not_seen_what_it_judges() -> None:
    """Moving the largest outwards leaves the fit of the others alone, so that p falls and falls."""
    of = excesses_of(0.1, 1e5, 100_000)
    ps = [top_test(with_strange(of, factor * of.lo[-1])).p for factor in (1.5, 3.0, 10.0)]
    assert ps[0] > ps[1] > ps[2]
