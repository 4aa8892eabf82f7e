# SPDX-License-Identifier: Apache-2.0
"""Plans: the chances against simulated runs that are judged as records are."""

import math

import numpy as np
import pytest

from rtproof import statistics
from rtproof.judge import planning
from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.claim import LateStretches, decide

HOUR = 3600 * 10**9
DAILY = Requirement(500_000, 24 * HOUR)
HOURLY = Requirement(500_000, HOUR)
RUNS = 1500


def simulated(rate: float, seed: int) -> tuple[float, float, float]:
    """Shares of PROVEN and REFUTED, and the mean tau of the decided, over the horizon."""
    rng = np.random.default_rng(seed)
    length = round(planning.HORIZON * DAILY.at_most_ns)
    found = []
    for _ in range(RUNS):
        count = rng.poisson(rate * planning.HORIZON)
        starts = (rng.random(count) * length).astype(np.int64)
        found.append(decide(DAILY, LateStretches.exact(starts, starts), length, 0.05))
    shares = [sum(one.first is state for one in found) / RUNS for state in (State.PROVEN, State.REFUTED)]
    at_ns = (one.at_ns if one.proven_at_ns is None else one.proven_at_ns for one in found)
    times = [at / DAILY.at_most_ns for at in at_ns if at is not None]
    return shares[0], shares[1], float(np.mean(times))


@pytest.mark.parametrize("rate", [0.3, 0.5, 1.0, 2.0, 4.0])
def test_the_chances_are_those_of_simulated_runs(rate: float) -> None:
    told = planning.decision_chance(rate, DAILY, 0.05)
    proven, refuted, mean = simulated(rate, 7)
    error = 4 * math.sqrt(0.25 / RUNS)
    assert [told.proven, told.refuted] == pytest.approx([proven, refuted], abs=error)
    assert told.proven + told.refuted + told.undecided == pytest.approx(1)
    assert (told.mean_ns or 0) / DAILY.at_most_ns == pytest.approx(mean, rel=0.15)


def test_at_the_limit_both_errors_stay_below_alpha() -> None:
    told = planning.decision_chance(1.0, HOURLY, 0.05)
    assert told.proven == pytest.approx(0.043, abs=0.002)
    assert told.refuted == pytest.approx(0.0153, abs=0.001)


def test_without_episodes_the_time_is_certain() -> None:
    told = planning.decision_chance(0.0, HOURLY, 0.05)
    assert [told.proven, told.refuted, told.undecided] == pytest.approx([1, 0, 0])
    assert told.mean_ns == pytest.approx(statistics.tau_needed(0, 0.05) * HOUR)
    assert told.late_ns == told.mean_ns


def test_what_so_many_episodes_need() -> None:
    found = planning.plan_length(DAILY, 1, (1, 20 * HOUR))
    assert [need.episodes for need in found.needs] == [1, 2, 3, 4, 5, 6]
    assert [need.proven_after_ns / HOUR for need in found.needs[:2]] == pytest.approx(
        [163.27 + 1 / 60, 219.25 + 2 / 60], abs=0.01
    )
    assert found.needs[0].more_ns == found.needs[0].proven_after_ns - 20 * HOUR
    assert found.needs[1].refuted_until_ns == statistics.refuted_until_ns(2, 24 * HOUR, found.alpha)
    assert found.horizon_ns == 20 * HOUR - DAILY.gap_ns + 40 * 24 * HOUR


def test_bunches_multiply_the_quiet_time_that_is_needed() -> None:
    """But refutations are of episodes, however many a bunch may bring."""
    one, three = (planning.plan_length(Requirement(1, HOUR, bunches=m), rates=(0.0,)) for m in (1.0, 3.0))
    assert three.needs[0].proven_after_ns == pytest.approx(3 * one.needs[0].proven_after_ns, abs=3)
    assert three.needs[2].refuted_until_ns == one.needs[2].refuted_until_ns
    assert three.chances[0].mean_ns == pytest.approx(3 * (one.chances[0].mean_ns or 0))


def test_several_limits_need_more() -> None:
    one, two = planning.plan_length(DAILY, 1, rates=()), planning.plan_length(DAILY, 2, rates=())
    assert two.alpha == one.alpha / 2
    assert all(a.proven_after_ns < b.proven_after_ns for a, b in zip(one.needs, two.needs, strict=True))


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
    assert planning.plan_length(DAILY, 1, so_far, (1.0,)).already is already


def test_from_what_was_measured_it_goes_on() -> None:
    """A day less than what is needed is a day to go, and the chance is that of a day without an episode."""
    begun = statistics.tau_needed(0, 0.05) - 1
    told = planning.decision_chance(0.5, HOURLY, 0.05, (0, begun))
    assert told.proven > math.exp(-0.5)
    lone = planning.decision_chance(0.0, HOURLY, 0.05, (0, begun))
    assert lone.mean_ns == pytest.approx(statistics.tau_needed(0, 0.05) * HOUR)


def test_of_what_is_decided_no_chances_are_told_and_many_episodes_take_no_time() -> None:
    assert planning.plan_length(DAILY, 1, (1000, 1), (1.0,)).chances == ()
    (told,) = planning.plan_length(DAILY, 1, (1000, 1000 * DAILY.at_most_ns), (3.0,)).chances
    assert told.proven < 1e-6 < told.refuted
    assert told.proven + told.refuted + told.undecided == pytest.approx(1)
