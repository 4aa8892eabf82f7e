# SPDX-License-Identifier: Apache-2.0
"""The e-processes: against their integrals, against published figures, and the rule of the first crossing."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.analysis import sequential
from rtproof.analysis.model import State
from rtproof.analysis.sequential import Decision, Known, decide, log_e_proven, log_e_refuted, tau_needed, tau_refuted

HOUR = 3600 * 10**9
SECOND = 10**9
ALPHA = 0.05
A = sequential.MIXING
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
    assert sequential.rate_upper(1, 10 * HOUR, ALPHA) * 10 * HOUR == pytest.approx(tau_needed(1, ALPHA))
    assert sequential.rate_lower(2, HOUR, ALPHA) * HOUR == pytest.approx(tau_refuted(2, ALPHA))
    assert (sequential.rate_upper(0, 0, ALPHA), sequential.rate_lower(3, 0, ALPHA)) == (math.inf, 0)


def test_undecided_until_the_needed_time_is_over() -> None:
    needed = sequential.needed_ns(0, HOUR, ALPHA)
    assert decide([], needed - 1, HOUR, ALPHA) == Decision(State.UNDECIDED, None, 0)
    assert decide([], needed + HOUR, HOUR, ALPHA) == Decision(State.PROVEN, needed, 0)


def test_a_crossing_stands_whatever_comes_later() -> None:
    starts = [4 * HOUR + n * 60 * SECOND for n in range(50)]
    proven = Decision(State.PROVEN, sequential.needed_ns(0, HOUR, ALPHA), 0)
    assert decide(starts, 10 * HOUR, HOUR, ALPHA) == proven
    early = [n * 60 * SECOND for n in range(1, 4)]
    assert decide(early, 1000 * HOUR, HOUR, ALPHA) == Decision(State.REFUTED, 121 * SECOND, 2)


def test_rounding_to_seconds_never_helps() -> None:
    """The episode may have come at any time of its second."""
    needed = sequential.needed_ns(0, HOUR, ALPHA)
    before = needed // SECOND * SECOND
    assert decide([before], needed + 1, HOUR, ALPHA).state is State.UNDECIDED
    assert decide([before + SECOND], needed + SECOND, HOUR, ALPHA).state is State.PROVEN
    last = sequential.refuted_until_ns(1, HOUR, ALPHA)
    assert decide([last - SECOND + 1], HOUR, HOUR, ALPHA).state is State.UNDECIDED
    assert decide([last - SECOND], HOUR, HOUR, ALPHA).state is State.REFUTED


@given(st.lists(st.integers(0, 30 * 3600), unique=True, max_size=30).map(sorted), st.integers(1, 30 * 3600))
def test_whoever_watched_from_the_start_decides_alike(seconds: list[int], later: int) -> None:
    """What is decided at a time depends on nothing after it."""
    starts = [second * SECOND for second in seconds]
    whole = decide(starts, 31 * HOUR, HOUR, ALPHA)
    seen = decide([start for start in starts if start < later * SECOND], later * SECOND, HOUR, ALPHA)
    if seen.at_ns is not None:
        assert seen == whole
    elif whole.at_ns is not None:
        assert whole.at_ns > later * SECOND


def test_without_all_values_nothing_but_a_refutation_counts() -> None:
    assert decide([], 10 * HOUR, HOUR, ALPHA, Known(whole=False)) == Decision(State.UNDECIDED, None, 0)
    starts = [4 * HOUR + n * 60 * SECOND for n in range(50)]
    late = decide(starts, 10 * HOUR, HOUR, ALPHA, Known(whole=False))
    assert (late.state, late.episodes > 10) == (State.REFUTED, True)


def test_chances_are_those_of_a_mixed_poisson_count() -> None:
    rng = np.random.default_rng(5)
    rate = rng.gamma(3.5, 1 / 10, 400_000)
    assert sequential.chance_of_none(3, 10 * HOUR, 4 * HOUR) == pytest.approx(np.exp(-4 * rate).mean(), abs=3e-3)
    one = (2 * rate * np.exp(-4 * rate)).mean()
    assert sequential.chance_of_one(3, 10 * HOUR, 2 * HOUR, 4 * HOUR) == pytest.approx(one, abs=3e-3)


def test_time_within_an_episode_speaks_for_no_proof() -> None:
    needed = sequential.needed_ns(1, HOUR, ALPHA)
    assert decide([HOUR], needed + HOUR - 1, HOUR, ALPHA, Known([HOUR])).state is State.UNDECIDED
    assert decide([HOUR], needed + HOUR, HOUR, ALPHA, Known([HOUR])) == Decision(State.PROVEN, needed + HOUR, 1)
    assert decide([HOUR], 999 * HOUR, HOUR, ALPHA, Known([998 * HOUR])).state is State.UNDECIDED
    before = sequential.needed_ns(0, HOUR, ALPHA)
    assert decide([4 * HOUR], 9 * HOUR, HOUR, ALPHA, Known([5 * HOUR])) == Decision(State.PROVEN, before, 0)


def test_many_episodes_at_the_rate_of_the_claim_take_no_bisection_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch decides anew every second, beside what is measured."""
    taken: list[Callable[[float], float]] = []

    def crossing(rising: Callable[[float], float]) -> float:
        taken.append(rising)
        return 1e9

    monkeypatch.setattr(sequential, "_crossing", crossing)
    starts = [number * HOUR + HOUR // 2 for number in range(9000)]
    assert decide(starts, 9000 * HOUR, HOUR, 0.0401).state is State.UNDECIDED
    assert len(taken) < 10
