# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tail_cases import excesses_of

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
    far = found.level(FAR)
    chances = 0.01 * pareto_survival(far - found.threshold, xi.ravel()[near], sigma)
    assert found.probability_upper(far) == pytest.approx(chances.max(), rel=0.03)
    assert found.probability_lower(far) == pytest.approx(chances.min(), rel=0.03)


def test_level_and_probability_are_inverse() -> None:
    found = fit_region(coarsened_excesses(excesses_of(0.1, 1e5, 100_000)))
    assert found.probability(found.level(FAR)) == pytest.approx(FAR)
    assert found.probability_upper(found.level_upper(FAR)) == pytest.approx(FAR, rel=1e-3)
    assert found.level_lower(FAR) < found.level(FAR) < found.level_upper(FAR)


def test_the_threshold_is_the_nearest_level() -> None:
    found = fit_region(coarsened_excesses(excesses_of(0.1, 1e5, 100_000)))
    assert found.level_upper(0.01) == pytest.approx(found.threshold)
    with pytest.raises(ValueError, match="not beyond it"):
        found.level_upper(0.02)
    with pytest.raises(ValueError, match="below the threshold"):
        found.probability_upper(found.threshold - 1)


def test_a_bounded_tail_is_never_claimed() -> None:
    found = fit_region(coarsened_excesses(excesses_of(-0.3, 1e5, 100_000)))
    assert found.xi[0] == 0
    assert found.fit.xi == pytest.approx(0, abs=1e-6)
    free = fit_region(coarsened_excesses(excesses_of(-0.3, 1e5, 100_000)), shapes=SHAPES)
    assert free.xi[0] < free.fit.xi < 0
    assert free.level_upper(FAR) < found.level_upper(FAR)


@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_units_do_not_matter(factor: float) -> None:
    of = coarsened_excesses(excesses_of(0.1, 1e5, 100_000))
    other = replace(of, threshold=of.threshold * factor, lo=of.lo * factor, width=of.width * factor)
    one, two = fit_region(of), fit_region(other)
    assert two.fit.xi == pytest.approx(one.fit.xi, abs=1e-6)
    assert two.level_upper(FAR) == pytest.approx(one.level_upper(FAR) * factor, rel=1e-5)


@pytest.mark.parametrize("step", [10, 1000, 10_000])
def test_the_width_of_bins_moves_little(step: int) -> None:
    """Up to a tenth of sigma."""
    fine, coarse = (fit_region(coarsened_excesses(excesses_of(0.1, 1e5, 100_000, step=each))) for each in (1, step))
    assert coarse.fit.xi == pytest.approx(fine.fit.xi, abs=0.02)
    assert coarse.level_upper(FAR) == pytest.approx(fine.level_upper(FAR), rel=0.05)


@pytest.mark.parametrize(
    ("lo", "n"),
    [([0.0, 1.0], [199.0, 1.0]), ([0.0, 1e9], [199.0, 1.0]), ([0.0, 1e15], [1.0, 1.0]), ([5.0, 6.0], [1.0, 1.0])],
)
def test_degenerate_tails_have_a_region(lo: list[float], n: list[float]) -> None:
    of = Excesses(7.0, np.array(lo), np.ones(len(lo)), np.array(n), 10_000)
    found = fit_region(of)
    assert np.isfinite(found.fit.sigma)
    assert found.fit.sigma > 0
    assert (found.low <= found.high * (1 + 1e-9)).all()
    assert found.level_upper(1e-6) > 7.0


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


def test_a_value_that_cannot_be_is_infinitely_bad() -> None:
    of = Excesses(0.0, np.array([0.0, 9.0]), np.array([1.0, 1.0]), np.array([20.0, 1.0]), 99)
    assert anderson_darling_statistic(of, TailFit(-0.5, 2.0, 0.0)) == np.inf
    assert anderson_darling_p_value(np.inf, 0.0, 0.0) == 0


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


def test_p_falls_with_the_statistic_and_never_ends() -> None:
    found = [anderson_darling_p_value(a2, 0.07, 0.3) for a2 in np.linspace(0.05, 30, 400)]
    assert (np.diff(found) <= 0).all()
    assert found[0] <= 1
    assert found[-1] > 0
    assert anderson_darling_p_value(3.0, 0.07, 0.3) < 1e-3


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
    assert tail.hi.tolist() == hi
    assert tail.cumulated[0] == counts.total


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
