# SPDX-License-Identifier: Apache-2.0
"""The distributions that the benchmarks of tails draw from."""

import numpy as np
import pytest
from acceptance import tail_bursts
from tail_truths import SEVEN, Normal, Pareto, largest, smallest_shares, with_mode


@pytest.mark.parametrize("name", SEVEN)
def test_the_levels_are_scipys(name: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    scipys = {
        "gpd -.3": stats.genpareto(-0.3, scale=1e5),
        "gpd 0": stats.expon(scale=1e5),
        "gpd +.2": stats.genpareto(0.2, scale=1e5),
        "lognormal .3": stats.lognorm(0.3, scale=1e5),
        "gamma 4": stats.gamma(4, scale=1e5),
        "Weibull .6": stats.weibull_min(0.6, scale=1e5),
        "normal": stats.norm(4e5, 1e5),
    }
    shares = np.array([1e-9, 1e-6, 0.001, 0.1])
    assert SEVEN[name](shares) == pytest.approx(scipys[name].isf(shares), rel=1e-4)


def test_the_smallest_shares_are_those_of_all() -> None:
    """The j-th smallest of n uniform numbers has the mean j / (n + 1)."""
    rng = np.random.default_rng(1)
    drawn = np.array([smallest_shares(1000, 20, rng) for _ in range(4000)])
    assert (np.diff(drawn, axis=1) > 0).all()
    assert drawn.mean(axis=0) == pytest.approx(np.arange(1, 21) / 1001, rel=0.08)


def test_the_largest_are_rounded_down_to_the_clocks_step() -> None:
    counts = largest(Pareto(0.0, 800.0), 10**6, np.random.default_rng(1), 1000, 500)
    assert counts.total == 500
    assert (counts.lo % 1000 == 0).all()


def test_a_second_mechanism_has_its_share() -> None:
    counts = with_mode(Pareto(0.0), Normal(1e9, 1e6), 1e-6, 10**8, np.random.default_rng(1))
    assert 60 <= counts.n[counts.lo > 5e8].sum() <= 140


def test_bursts_have_the_margin_and_the_largest_of_a_second_that_they_say() -> None:
    values = tail_bursts.bursts(Pareto(0.0), 1_000_000, np.random.default_rng(1))
    assert np.mean(values > Pareto(0.0)(np.array([0.01]))[0]) == pytest.approx(0.01, rel=0.1)
    per_second = values.reshape(-1, 100).max(axis=1)
    frechet = 100.0
    level = Pareto(0.0)(np.array([-np.expm1(-1 / frechet)]))[0]
    expected = np.exp(-(1 + tail_bursts.THETA * 99) / frechet)
    assert np.mean(per_second <= level) == pytest.approx(expected, abs=0.02)
