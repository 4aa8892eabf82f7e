# SPDX-License-Identifier: Apache-2.0
"""How long a verdict takes, computed before a run; and what the maximum and the length of a run can show."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtproof.judge.analysis_model import State
from rtproof.record.requirement import Requirement, rated
from rtproof.statistics import mean_upper, refuted_until_ns, tau_needed, tau_refuted

ROWS = 6
"""The plan shows the needed time for this many numbers of episodes."""
RATES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 10.0)
"""True rates, as multiples of the rate in the claim."""
HORIZON = 40.0
"""A run that is not decided after this many times at_most_ns counts as undecided."""
_TRUE_DIGITS = 9
"""Behind these, 1 minus a sum is what the order of the summands makes of it, and differs by processor."""
_STEPS = 2000
_LATE = 0.9
_STEEP = 1e-12


@dataclass(frozen=True)
class NeededLength:
    """What a number of short episodes in all means for the verdict.

    episodes: in all. proven_after_ns: measured time in all until PROVEN; of a plain limit, until HELD shows as much as
    asked. more_ns: how much of it is still missing.
    refuted_until_ns: the episodes refute if the last of them comes by then; 0: they never do.
    """

    episodes: int
    proven_after_ns: int
    more_ns: int
    refuted_until_ns: int


@dataclass(frozen=True)
class DecisionChance:
    """How runs of a system end whose true rate of episodes is ``rate`` times the rate in the claim.

    Of a plain limit: at so many times the rate that HELD shall show.

    proven: the share of runs that are PROVEN or HELD. refuted: the share of runs that are REFUTED or EXCEEDED.
    undecided: the share of runs without a verdict by the horizon.
    mean_ns: the mean time without an episode until the verdict, over the decided runs; None: none is decided.
    late_ns: nine tenths of the decided runs have their verdict by then; None: none is decided.
    """

    rate: float
    proven: float
    refuted: float
    undecided: float
    mean_ns: float | None
    late_ns: float | None


@dataclass(frozen=True)
class LengthPlan:
    """How long the verdict on one limit takes, and with which chances.

    limits: how many share the error. alpha: the probability of error of this limit's test.
    episodes: those that a run has seen so far. measured_ns: the time measured so far. already: the state that these
    give.
    horizon_ns: what is not decided by then counts as undecided. needs: one for each number of episodes. chances: one
    for each true rate; empty if ``already`` decided.
    """

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
    """Plan the length of a run. so_far: episodes and nanoseconds measured so far.

    limits: how many limits share the probability of error. rates: true rates, as multiples of the rate in the claim.
    """
    if requirement.plain:
        return _plan_of_plain_limit(requirement, so_far, rates)
    episodes, measured_ns = so_far
    alpha, at_most = (1 - requirement.confidence) / limits, requirement.at_most_ns
    needed = [(count, proven_after_ns(count, requirement, alpha)) for count in range(episodes, episodes + ROWS)]
    needs = tuple(
        NeededLength(count, after_ns, max(after_ns - measured_ns, 0), refuted_until_ns(count, at_most, alpha))
        for count, after_ns in needed
    )
    begun = max(measured_ns - episodes * requirement.gap_ns, 0) / at_most
    already = State.UNDECIDED
    if begun >= requirement.bunches * tau_needed(episodes, alpha):
        already = State.PROVEN
    elif episodes and begun + episodes * requirement.gap_ns / at_most <= tau_refuted(episodes, alpha):
        already = State.REFUTED
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


def _plan_of_plain_limit(requirement: Requirement, so_far: tuple[int, int], rates: tuple[float, ...]) -> LengthPlan:
    """The plan of a limit that is never to be exceeded. rates: multiples of once per shows_ns."""
    exceeded, measured_ns = so_far
    needed, shows_ns = held_after_ns(requirement), requirement.shows_ns
    already = State.EXCEEDED if exceeded else State.HELD if measured_ns else State.UNDECIDED
    more_ns = max(needed - measured_ns, 0)
    chances = []
    for rate in rates if more_ns and not exceeded else ():  # How a run of more_ns ends that the first exceedance ends.
        expected = rate * more_ns / shows_ns
        held = math.exp(-expected)
        mean_ns = more_ns * (1 - held) / expected if expected else float(more_ns)
        late_ns = min(-math.log(1 - _LATE) / rate * shows_ns, more_ns) if rate else more_ns
        chances.append(DecisionChance(rate, held, 1 - held, 0.0, mean_ns, late_ns))
    needs, alpha = (NeededLength(0, needed, more_ns, 0),), 1 - requirement.confidence
    return LengthPlan(requirement, 1, alpha, exceeded, measured_ns, already, needs, tuple(chances), needed)


def proven_after_ns(count: int, requirement: Requirement, alpha: float) -> int:
    """All measured time that a proof takes with this number of short episodes, each with a gap that is not quiet."""
    quiet = requirement.bunches * tau_needed(count, alpha) * requirement.at_most_ns
    return math.ceil(quiet) + count * requirement.gap_ns


def held_after_ns(requirement: Requirement) -> int:
    """How long a run takes to rule out more than one exceedance of a plain limit per shows_ns; in nanoseconds."""
    return math.ceil(-math.log(1 - requirement.confidence) * requirement.shows_ns)


def shown_by_ns(requirement: Requirement, measured_ns: int) -> float:
    """T in nanoseconds: a run of this length without an exceedance rules out more than one per T."""
    return measured_ns / -math.log(1 - requirement.confidence)


def decision_chance(
    rate: float, requirement: Requirement, alpha: float, so_far: tuple[int, float] = (0, 0.0)
) -> DecisionChance:
    """How likely each verdict is at a true rate, and how long it takes.

    rate: a multiple of the rate in the claim. so_far: episodes so far, and quiet time in units of at_most_ns. Only
    decisions that come from now on are counted.
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
        round(max(1 - total, 0.0), _TRUE_DIGITS),
        float((tau * both).sum()) / total * at_most_ns if known else None,
        late * at_most_ns if known else None,
    )


def _decisions(
    rate: float, requirement: Requirement, alpha: float, episodes: int, begun: float
) -> Iterator[tuple[float, float, float]]:
    """Yield instants in units of at_most_ns, with the share of runs PROVEN then and REFUTED since the last instant."""
    gap = requirement.gap_ns / requirement.at_most_ns
    counts = range(episodes, max(_most(begun, alpha, gap), episodes) + 2)
    proving = requirement.bunches * np.array([tau_needed(n, alpha) for n in counts])
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
    """The shares of runs by their number of episodes, after a time in which ``mean`` more episodes are expected.

    state: the shares before. Runs that get more episodes than state has places for are left out.
    """
    steps = np.arange(state.size)
    logs = steps * np.log(mean) - np.cumsum(np.log(np.maximum(steps, 1))) if mean > 0 else np.where(steps, -np.inf, 0.0)
    return np.convolve(state, np.exp(logs - mean))[: state.size]


def _refuting(count: int, alpha: float, gap: float) -> float:
    """The quiet time up to which this number of episodes refutes, in units of at_most_ns, without the gaps."""
    return max(tau_refuted(count, alpha) - max(count - 1, 0) * gap, 0.0)


def _most(begun: float, alpha: float, gap: float) -> int:
    """The smallest number of episodes that refutes at any time up to the horizon."""
    high = 1
    while _refuting(high, alpha, gap) < begun + HORIZON:
        high *= 2
    return bisect_left(range(high), begun + HORIZON, key=lambda count: _refuting(count, alpha, gap))


# What a maximum and the length of a run can show. These functions need plain numbers and no record.
#
# The statements need no model of the latencies. Those about the largest value make two assumptions. Latencies are
# exchangeable: an equally long run might as well have come before this one. The length was fixed before the run.


USUAL_CONFIDENCE = 0.95
DAY_NS = 24 * 3_600_000_000_000


def rarest_ns(duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, anytime: bool = False) -> float:
    """The largest mean time between events of which a run shows at least one with this probability, in nanoseconds.

    It is T / 3.00 at 95 %. anytime: the run may have ended at any time; then it is T / 3.48.
    """
    return duration_ns / (tau_needed(0, 1 - confidence) if anytime else mean_upper(0, confidence))


def plan_lengths(
    requirements: Sequence[Requirement], so_far: tuple[int, int], rates: Sequence[int]
) -> list[LengthPlan]:
    """A plan for each limit; all verdicts together are to be right.

    so_far: number of episodes that were measured, and in how many nanoseconds. rates: true rates to tell the chances
    of, each as nanoseconds per episode; by default some multiples of the rate that the limit allows.
    """
    limits = len(rated(requirements))
    return [
        plan_length(each, limits, so_far, tuple(each.goal_ns / rate for rate in rates) or RATES)
        for each in requirements
    ]
