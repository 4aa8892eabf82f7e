# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tail_table
from tail_cases import excesses_of

from rtproof.tail import fit_test_table
from rtproof.tail.pareto_fit import (
    Excesses,
    TailFit,
    anderson_darling_p_value,
    anderson_darling_statistic,
    fit_tail,
    fitted_survivals,
    pareto_survival,
)


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


def test_survivals_are_spread_evenly_and_fall() -> None:
    of = Excesses(0.0, np.array([0.0, 2.0]), np.array([1.0, 1.0]), np.array([2.0, 1.0]), 9)
    ends = np.exp(-np.array([0.0, 1.0, 2.0, 3.0]))
    expected = [1 - 0.25 * (1 - ends[1]), 1 - 0.75 * (1 - ends[1]), (ends[2] + ends[3]) / 2]
    assert fitted_survivals(of, TailFit(0.0, 1.0, 0.0)) == pytest.approx(expected)


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


def test_outside_the_table_its_nearest_cell_holds() -> None:
    assert anderson_darling_p_value(0.8, 5.0, 9.0) == anderson_darling_p_value(
        0.8, fit_test_table.TABLE_SHAPES[-1], fit_test_table.TABLE_WIDTHS[-1]
    )
    assert anderson_darling_p_value(0.8, -5.0, -1.0) == anderson_darling_p_value(
        0.8, fit_test_table.TABLE_SHAPES[0], 0.0
    )


@pytest.mark.parametrize(("xi", "width"), [(0.0, 0.0), (0.2, 1.0)])
def test_the_table_can_be_simulated_again(xi: float, width: float) -> None:
    """With 300 repetitions for 4,000, quantiles from 25 to 90 % come out to within a few of their standard errors."""
    again = tail_table.cell(xi, width, 300, seed=77)
    there = np.array(
        fit_test_table.TABLE_QUANTILES[fit_test_table.TABLE_SHAPES.index(xi)][fit_test_table.TABLE_WIDTHS.index(width)]
    )
    inner = np.array(fit_test_table.TABLE_PROBABILITIES) >= 0.1
    inner &= np.array(fit_test_table.TABLE_PROBABILITIES) <= 0.75
    assert again[inner] == pytest.approx(there[inner], rel=0.12)


def test_the_table_is_that_of_its_generator() -> None:
    assert (fit_test_table.TABLE_SHAPES, fit_test_table.TABLE_WIDTHS) == (tail_table.SHAPES, tail_table.WIDTHS)
    assert fit_test_table.TABLE_PROBABILITIES == tail_table.PROBABILITIES
    assert np.array(fit_test_table.TABLE_QUANTILES).shape == (7, 8, 15)


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
