# SPDX-License-Identifier: Apache-2.0
"""How long a verdict takes, before the first minute is measured: for so many episodes, and for a true rate.

The chances are exact for short episodes that come independently at a constant rate in quiet time; the bunch test,
which withholds a proof in fewer than one of a hundred such runs, is left out. Nothing is decided between two thresholds
but by an episode, so the number of episodes is followed in quiet time from each threshold to the next: at a time at
which n episodes prove, those runs with n are PROVEN; between times, those that reach the number that refutes are
REFUTED. Of all time, on which refutations count, each episode takes a gap out of the quiet time.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtproof.judge.analysis_model import Requirement, State
from rtproof.statistics import sequential_test

ROWS = 6
"""So many numbers of episodes are told of."""
RATES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 10.0)
"""True rates, as parts of the one in the claim."""
HORIZON = 40.0
"""What is not decided after so many times at_most_ns counts as undecided."""
_STEPS = 2000
_LATE = 0.9
_STEEP = 1e-12


@dataclass(frozen=True)
class NeededLength:
    """What so many short episodes in all mean. refuted_until_ns: they refute if the last comes by then (0: never)."""

    episodes: int
    proven_after_ns: int
    more_ns: int
    refuted_until_ns: int


@dataclass(frozen=True)
class DecisionChance:
    """What comes of a true rate, a multiple of the claim's. Times are of those runs that are decided, None if none.

    undecided: after the horizon. Times are quiet time.
    mean_ns: until the verdict; late_ns: nine of ten of the decided are decided by then.
    """

    rate: float
    proven: float
    refuted: float
    undecided: float
    mean_ns: float | None
    late_ns: float | None


@dataclass(frozen=True)
class LengthPlan:
    """For one of several limits. already: what the episodes so far have decided in the time measured."""

    requirement: Requirement
    limits: int
    alpha: float
    episodes: int
    measured_ns: int
    already: State
    needs: tuple[NeededLength, ...]
    chances: tuple[DecisionChance, ...]
    horizon_ns: int


def plan_length(
    requirement: Requirement,
    limits: int = 1,
    so_far: tuple[int, int] = (0, 0),
    rates: tuple[float, ...] = RATES,
) -> LengthPlan:
    """so_far: episodes and measured nanoseconds. rates: true ones, as multiples of the claim's."""
    episodes, measured_ns = so_far
    alpha, at_most = (1 - requirement.confidence) / limits, requirement.at_most_ns
    needs = tuple(_need(count, measured_ns, requirement, alpha) for count in range(episodes, episodes + ROWS))
    begun = max(measured_ns - episodes * requirement.gap_ns, 0) / at_most
    already = _already(episodes, begun, requirement, alpha)
    open_ = rates if already is State.UNDECIDED else ()
    return LengthPlan(
        requirement,
        limits,
        alpha,
        episodes,
        measured_ns,
        already,
        needs,
        tuple(decision_chance(rate, requirement, alpha, (episodes, begun)) for rate in open_),
        round((begun + HORIZON) * at_most),
    )


def _need(count: int, measured_ns: int, requirement: Requirement, alpha: float) -> NeededLength:
    needed = proven_after_ns(count, requirement, alpha)
    until = sequential_test.refuted_until_ns(count, requirement.at_most_ns, alpha)
    return NeededLength(count, needed, max(needed - measured_ns, 0), until)


def proven_after_ns(count: int, requirement: Requirement, alpha: float) -> int:
    """The measured time that a proof takes in all with so many short episodes, each with the gap behind it."""
    quiet = requirement.bunches * sequential_test.tau_needed(count, alpha) * requirement.at_most_ns
    return math.ceil(quiet) + count * requirement.gap_ns


def _already(episodes: int, tau: float, requirement: Requirement, alpha: float) -> State:
    if tau >= requirement.bunches * sequential_test.tau_needed(episodes, alpha):
        return State.PROVEN
    all_time = tau + episodes * requirement.gap_ns / requirement.at_most_ns
    refuted = episodes > 0 and all_time <= sequential_test.tau_refuted(episodes, alpha)
    return State.REFUTED if refuted else State.UNDECIDED


def decision_chance(
    rate: float, requirement: Requirement, alpha: float, so_far: tuple[int, float] = (0, 0.0)
) -> DecisionChance:
    """so_far: episodes and quiet time in units of at_most_ns.

    What they decide already is left out: only what comes from now on is followed.
    """
    at_most_ns = requirement.at_most_ns
    decided = list(_decisions(rate, requirement, alpha, *so_far))
    tau = np.array([each[0] for each in decided])
    proven, refuted = (np.array([each[at] for each in decided]) for at in (1, 2))
    both = proven + refuted
    total = float(both.sum())
    known = total > _STEEP
    late = float(tau[np.searchsorted(np.cumsum(both), _LATE * total)]) if known else 0.0
    return DecisionChance(
        rate,
        float(proven.sum()),
        float(refuted.sum()),
        max(1 - total, 0.0),
        float((tau * both).sum()) / total * at_most_ns if known else None,
        late * at_most_ns if known else None,
    )


def _decisions(
    rate: float, requirement: Requirement, alpha: float, episodes: int, begun: float
) -> Iterator[tuple[float, float, float]]:
    """At each instant the shares of runs that are PROVEN then, and REFUTED since the one before."""
    gap = requirement.gap_ns / requirement.at_most_ns
    counts = range(episodes, max(_most(begun, alpha, gap), episodes) + 2)
    proving = requirement.bunches * np.array([sequential_test.tau_needed(n, alpha) for n in counts])
    refuting = np.maximum.accumulate([_refuting(n, alpha, gap) for n in counts])
    steps = np.linspace(begun, begun + HORIZON, _STEPS + 1)
    times = np.unique(np.concatenate((steps, proving[proving > begun], refuting[refuting > begun])))
    state = np.zeros(refuting.size)
    state[0] = 1.0
    for before, now in pairwise(times):
        if now > begun + HORIZON:
            return
        too_many = int(np.searchsorted(refuting, now, side="left"))
        moved = _moved(state[:too_many], rate * (now - before))
        refuted = float(state.sum() - moved.sum())
        state = np.concatenate((moved, np.zeros(state.size - moved.size)))
        done = np.flatnonzero(proving == now)
        proven = float(state[done].sum())
        state[done] = 0.0
        yield float(now), proven, max(refuted, 0.0)


def _moved(state: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """The numbers of episodes after a time in which so many are expected, of those that stay below the end."""
    steps = np.arange(state.size)
    logs = steps * np.log(mean) - np.cumsum(np.log(np.maximum(steps, 1))) if mean > 0 else np.where(steps, -np.inf, 0.0)
    return np.convolve(state, np.exp(logs - mean))[: state.size]


def _refuting(count: int, alpha: float, gap: float) -> float:
    """The quiet time up to which so many episodes refute: of all time the gaps behind the ones before are not quiet."""
    return max(sequential_test.tau_refuted(count, alpha) - max(count - 1, 0) * gap, 0.0)


def _most(begun: float, alpha: float, gap: float) -> int:
    """The number of episodes that refutes at any time up to the horizon."""
    high = 1
    while _refuting(high, alpha, gap) < begun + HORIZON:
        high *= 2
    return bisect_left(range(high), begun + HORIZON, key=lambda count: _refuting(count, alpha, gap))
