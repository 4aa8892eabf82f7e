# SPDX-License-Identifier: Apache-2.0
import math

import pytest

from rtproof.analysis import bounds
from rtproof.analysis.model import Requirement

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("events", "mean"), [(0, 2.996), (1, 4.744), (2, 6.296), (3, 7.754), (4, 9.154), (5, 10.513), (8, 14.435)]
)
def test_upper_bounds_of_garwoods_table(events: int, mean: float) -> None:
    assert bounds.mean_upper(events, 0.95) == pytest.approx(mean, abs=6e-4)


@pytest.mark.parametrize(("events", "low", "high"), [(1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390)])
def test_two_sided_bounds_of_the_poisson_tables(events: int, low: float, high: float) -> None:
    assert bounds.mean_lower(events, 0.975) == pytest.approx(low, abs=6e-4)
    assert bounds.mean_upper(events, 0.975) == pytest.approx(high, abs=6e-4)


@pytest.mark.parametrize(
    ("events", "n", "low", "high"), [(1, 10, 0.0025, 0.4450), (5, 20, 0.0866, 0.4910), (0, 10, 0, 0.3085)]
)
def test_two_sided_bounds_of_clopper_and_pearson(events: int, n: int, low: float, high: float) -> None:
    assert bounds.share_lower(events, n, 0.975) == pytest.approx(low, abs=6e-5)
    assert bounds.share_upper(events, n, 0.975) == pytest.approx(high, abs=6e-5)


def test_no_event_in_a_million_million() -> None:
    """Where scipy's binomtest is 15 % off."""
    assert bounds.share_upper(0, 10**12, 0.95) == pytest.approx(2.99573227e-12, rel=1e-8)


def test_every_trial_an_event() -> None:
    assert bounds.share_upper(7, 7, 0.95) == 1
    assert bounds.share_lower(7, 7, 0.95) == pytest.approx(0.05 ** (1 / 7))
    assert bounds.mean_lower(0, 0.95) == 0


def test_the_rate_of_a_run() -> None:
    rate = bounds.rate_of(0, 3 * HOUR, Requirement(1000, HOUR, 0.95))
    assert rate is not None
    assert rate.low == 0
    assert rate.high * HOUR == pytest.approx(-math.log(0.05) / 3)
    assert rate.needed_ns == math.ceil(-math.log(0.05) * HOUR)
    assert rate.needed_with_one_more_ns == pytest.approx(4.744 * HOUR, rel=1e-4)


def test_nothing_measured_bounds_nothing() -> None:
    assert bounds.rate_of(0, 0, Requirement(1000)) is None


def test_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for events in (1, 3, 50, 4000):
        assert bounds.mean_upper(events, 0.99) == pytest.approx(stats.chi2.ppf(0.99, 2 * events + 2) / 2, rel=1e-9)
        assert bounds.mean_lower(events, 0.99) == pytest.approx(stats.chi2.ppf(0.01, 2 * events) / 2, rel=1e-9)
        for n in (events + 1, 10_000, 200_000_000):
            assert bounds.share_upper(events, n, 0.95) == pytest.approx(
                stats.beta.ppf(0.95, events + 1, n - events), rel=1e-6
            )
