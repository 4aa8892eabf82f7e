# SPDX-License-Identifier: Apache-2.0
"""The e-processes: against their integrals, against published figures."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof import statistics
from rtproof.statistics import log_e_proven, log_e_refuted, tau_needed, tau_refuted

HOUR = 3600 * 10**9
ALPHA = 0.05
A = statistics.MIXING
COUNTS = (0, 1, 2, 5, 20, 300)


def log_integral(episodes: int, tau: float, side: int) -> float:
    """ln of both mixtures as integrals over the rate b = exp(side e^s), by the trapezium rule: both ends vanish."""
    s = np.linspace(-60, 8, 200_001)
    x = side * np.minimum(np.exp(s), 700.0)
    exponent = math.log(A) + (episodes - side * A) * x - tau * np.expm1(x) + s
    top = exponent.max()
    return float(top + np.log(np.trapezoid(np.exp(exponent - top), s)))


@pytest.mark.parametrize("episodes", COUNTS)
@pytest.mark.parametrize("tau", [0.01, 0.5, 0.999, 1.0, 3.0, 20.0, 21.0, 21.5, 301.0, 302.0, 900.0])
def test_both_are_their_integrals(episodes: int, tau: float) -> None:
    assert log_e_proven(episodes, tau) == pytest.approx(log_integral(episodes, tau, -1), abs=1e-9)
    assert log_e_refuted(episodes, tau) == pytest.approx(log_integral(episodes, tau, 1), abs=1e-9)


def test_at_no_time_at_all() -> None:
    assert log_e_proven(0, 0) == pytest.approx(0)
    assert log_e_proven(3, 0) == pytest.approx(math.log(A / (3 + A)))
    assert (log_e_refuted(0, 0), log_e_refuted(1, 0)) == (0, math.inf)


def test_large_numbers_neither_underflow_nor_overflow() -> None:
    assert log_e_proven(100_000, 1000) == pytest.approx(-12.707, abs=5e-4)
    assert log_e_proven(10, 2000) == pytest.approx(1933.99, abs=5e-3)
    assert log_e_refuted(100_000, 1000) > 300_000
    assert log_e_refuted(10, 1e6) < 0


def test_needed_and_refuting_times() -> None:
    needed = [tau_needed(n, ALPHA) for n in range(9)]
    assert needed == pytest.approx([3.48, 6.80, 9.14, 11.18, 13.07, 14.87, 16.6, 18.3, 19.9], abs=0.05)
    refuted = [tau_refuted(n, ALPHA) for n in range(1, 11)]
    assert refuted == pytest.approx([0.004, 0.083, 0.274, 0.55, 0.88, 1.27, 1.69, 2.14, 2.62, 3.13], abs=6e-3)
    assert tau_refuted(0, ALPHA) == 0


@given(st.integers(0, 2000), st.floats(1e-6, 0.5))
def test_thresholds_are_reached_where_they_are_said_to_be(episodes: int, alpha: float) -> None:
    assert log_e_proven(episodes, tau_needed(episodes, alpha)) == pytest.approx(-math.log(alpha), abs=1e-7)
    assert log_e_refuted(episodes + 1, tau_refuted(episodes + 1, alpha)) == pytest.approx(-math.log(alpha), abs=1e-7)


@given(st.integers(0, 500), st.floats(0.01, 900), st.floats(1.001, 2))
def test_more_time_speaks_for_and_more_episodes_against(episodes: int, tau: float, factor: float) -> None:
    assert log_e_proven(episodes, tau * factor) > log_e_proven(episodes, tau) > log_e_proven(episodes + 1, tau)
    assert log_e_refuted(episodes, tau * factor) < log_e_refuted(episodes, tau) < log_e_refuted(episodes + 1, tau)


def test_limits_of_the_rate_are_the_inverse() -> None:
    assert statistics.rate_upper(1, 10 * HOUR, ALPHA) * 10 * HOUR == pytest.approx(tau_needed(1, ALPHA))
    assert statistics.rate_lower(2, HOUR, ALPHA) * HOUR == pytest.approx(tau_refuted(2, ALPHA))
    assert (statistics.rate_upper(0, 0, ALPHA), statistics.rate_lower(3, 0, ALPHA)) == (math.inf, 0)


def test_chances_are_those_of_a_mixed_poisson_count() -> None:
    rng = np.random.default_rng(5)
    rate = rng.gamma(3.5, 1 / 10, 400_000)
    assert statistics.chance_of_none(3, 10 * HOUR, 4 * HOUR) == pytest.approx(np.exp(-4 * rate).mean(), abs=3e-3)
    one = (2 * rate * np.exp(-4 * rate)).mean()
    assert statistics.chance_of_one(3, 10 * HOUR, 2 * HOUR, 4 * HOUR) == pytest.approx(one, abs=3e-3)
