# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from tail_cases import excesses_of

from rtproof.tail.pareto_fit import (
    ONE_SIDED_95,
    SHAPES,
    TWO_SIDED_95,
    UNBOUNDED,
    Excesses,
    best_scale,
    coarsened_excesses,
    fit_region,
    fit_tail,
    likelihood_score,
    pareto_growth,
    pareto_survival,
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


@pytest.mark.parametrize("xi", [-0.3, 0.0, 0.5])
def test_the_derivatives_are_those_of_the_likelihood(xi: float) -> None:
    of, shape, h = excesses_of(0.1, 3000, 20_000, step=1000), np.array([xi]), 1e-4
    t = best_scale(of, shape)[0] + 0.1
    left, at, right = (likelihood_score(of, shape, t + d) for d in (-h, 0, h))
    assert at.slope[0] == pytest.approx((right.value[0] - left.value[0]) / (2 * h), rel=1e-5)
    assert at.bend[0] == pytest.approx((right.slope[0] - left.slope[0]) / (2 * h), rel=1e-5)


def test_no_likelihood_where_a_value_lies_beyond_the_end() -> None:
    of = Excesses(0.0, np.array([0.0, 90.0]), np.array([1.0, 1.0]), np.array([5.0, 1.0]), 10)
    assert likelihood_score(of, np.array([-0.5]), np.log([40.0])).value[0] == -np.inf


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


def test_more_values_give_a_nearer_limit() -> None:
    few, many = (coarsened_excesses(excesses_of(0.1, 1e5, 200_000, k=k)) for k in (200, 3200))
    ratios = [fit_region(of).level_upper(FAR) / fit_region(of).level(FAR) for of in (few, many)]
    assert ratios[1] < ratios[0]


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


def test_one_bin_has_no_scale() -> None:
    with pytest.raises(ValueError, match="one bin"):
        fit_region(Excesses(7.0, np.zeros(1), np.ones(1), np.array([200.0]), 10_000))
