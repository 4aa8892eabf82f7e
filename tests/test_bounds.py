# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof import statistics


@pytest.mark.parametrize(
    ("events", "mean"), [(0, 2.996), (1, 4.744), (2, 6.296), (3, 7.754), (4, 9.154), (5, 10.513), (8, 14.435)]
)
def test_upper_bounds_of_garwoods_table(events: int, mean: float) -> None:
    assert statistics.mean_upper(events, 0.95) == pytest.approx(mean, abs=6e-4)


@pytest.mark.parametrize(("events", "high"), [(1, 5.572), (5, 11.668), (10, 18.390)])
def test_two_sided_bounds_of_the_poisson_tables(events: int, high: float) -> None:
    assert statistics.mean_upper(events, 0.975) == pytest.approx(high, abs=6e-4)


@pytest.mark.parametrize(
    ("events", "n", "low", "high"), [(1, 10, 0.0025, 0.4450), (5, 20, 0.0866, 0.4910), (0, 10, 0, 0.3085)]
)
def test_two_sided_bounds_of_clopper_and_pearson(events: int, n: int, low: float, high: float) -> None:
    assert statistics.share_lower(events, n, 0.975) == pytest.approx(low, abs=6e-5)
    assert statistics.share_upper(events, n, 0.975) == pytest.approx(high, abs=6e-5)


def test_no_event_in_a_million_million() -> None:
    """Where scipy's binomtest is 15 % off."""
    assert statistics.share_upper(0, 10**12, 0.95) == pytest.approx(2.99573227e-12, rel=1e-8)


def test_every_trial_an_event() -> None:
    assert statistics.share_upper(7, 7, 0.95) == 1
    assert statistics.share_lower(7, 7, 0.95) == pytest.approx(0.05 ** (1 / 7))


def test_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for events in (1, 3, 50, 4000):
        assert statistics.mean_upper(events, 0.99) == pytest.approx(stats.chi2.ppf(0.99, 2 * events + 2) / 2, rel=1e-9)
        for n in (events + 1, 10_000, 200_000_000):
            assert statistics.share_upper(events, n, 0.95) == pytest.approx(
                stats.beta.ppf(0.95, events + 1, n - events), rel=1e-6
            )
