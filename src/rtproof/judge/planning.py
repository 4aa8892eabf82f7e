# SPDX-License-Identifier: Apache-2.0
"""How long a verdict takes, computed before a run; and what the maximum and the length of a run can show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rtproof.judge.analysis_model import State
from rtproof.record.requirement import Requirement, rated
from rtproof.statistics import mean_upper, refuted_until_ns, tau_needed, tau_refuted

ROWS = 6
"""The plan shows the needed time for this many numbers of episodes."""


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
class LengthPlan:
    """How long the verdict on one limit takes.

    limits: how many share the error. alpha: the probability of error of this limit's test.
    episodes: those that a run has seen so far. measured_ns: the time measured so far. already: the state that these
    give. needs: one for each number of episodes.
    """

    requirement: Requirement
    limits: int
    alpha: float
    episodes: int
    measured_ns: int
    already: State
    needs: tuple[NeededLength, ...]


def plan_lengths(requirements: Sequence[Requirement], so_far: tuple[int, int] = (0, 0)) -> list[LengthPlan]:
    """A plan for each limit; all verdicts together are to be right. so_far: episodes and nanoseconds so far."""
    return [_plan(each, len(rated(requirements)), *so_far) for each in requirements]


def _plan(requirement: Requirement, limits: int, episodes: int, measured_ns: int) -> LengthPlan:
    if requirement.plain:
        needed_ns, alpha = held_after_ns(requirement), 1 - requirement.confidence
        already = State.EXCEEDED if episodes else State.HELD if measured_ns else State.UNDECIDED
        need = NeededLength(0, needed_ns, max(needed_ns - measured_ns, 0), 0)
        return LengthPlan(requirement, 1, alpha, episodes, measured_ns, already, (need,))
    alpha, at_most_ns = (1 - requirement.confidence) / limits, requirement.at_most_ns
    needed = [(count, proven_after_ns(count, requirement, alpha)) for count in range(episodes, episodes + ROWS)]
    needs = tuple(
        NeededLength(count, after_ns, max(after_ns - measured_ns, 0), refuted_until_ns(count, at_most_ns, alpha))
        for count, after_ns in needed
    )
    quiet_ns = max(measured_ns - episodes * requirement.gap_ns, 0)
    already = State.UNDECIDED
    if quiet_ns / at_most_ns >= requirement.bunches * tau_needed(episodes, alpha):
        already = State.PROVEN
    elif episodes and (quiet_ns + episodes * requirement.gap_ns) / at_most_ns <= tau_refuted(episodes, alpha):
        already = State.REFUTED
    return LengthPlan(requirement, limits, alpha, episodes, measured_ns, already, needs)


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


# What the length of a run can show, without a model of the latencies.

USUAL_CONFIDENCE = 0.95


def rarest_ns(duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, anytime: bool = False) -> float:
    """The largest mean time between events of which a run shows at least one with this probability, in nanoseconds.

    It is T / 3.00 at 95 %. anytime: the run may have ended at any time; then it is T / 3.48.
    """
    return duration_ns / (tau_needed(0, 1 - confidence) if anytime else mean_upper(0, confidence))
