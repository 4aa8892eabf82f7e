# SPDX-License-Identifier: Apache-2.0
"""Plans, the two e-processes, and what a maximum is worth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof import statistics
from rtproof.judge import planning
from rtproof.judge.analysis_model import State
from rtproof.record.requirement import Requirement
from rtproof.statistics import log_e_proven, log_e_refuted, tau_needed, tau_refuted

HOUR = 3600 * 10**9
DAILY = Requirement(500_000, 24 * HOUR)


def test_bunches_multiply_the_quiet_time_that_is_needed() -> None:
    """But refutations are of episodes, however many a bunch may bring."""
    one, three = (planning.plan_lengths([Requirement(1, HOUR, bunches=m)])[0] for m in (1.0, 3.0))
    assert three.needs[0].proven_after_ns == pytest.approx(3 * one.needs[0].proven_after_ns, abs=3)
    assert three.needs[2].refuted_until_ns == one.needs[2].refuted_until_ns


@pytest.mark.parametrize(
    ("so_far", "already"),
    [
        ((0, 0), State.UNDECIDED),
        ((0, 84 * HOUR), State.PROVEN),
        ((3, 2 * HOUR), State.REFUTED),
        ((3, 24 * HOUR), State.UNDECIDED),
    ],
)
def test_what_is_decided_already(so_far: tuple[int, int], already: State) -> None:
    assert planning.plan_lengths([DAILY], so_far)[0].already is already


# The e-processes: against their integrals, against published figures.


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


def test_what_a_run_shows_at_least_once() -> None:
    assert 30 / planning.rarest_ns(30) == pytest.approx(2.9957, abs=1e-4)
    assert 30 / planning.rarest_ns(30, anytime=True) == pytest.approx(3.4819, abs=1e-4)
