# SPDX-License-Identifier: Apache-2.0
"""How long a verdict takes, before the first minute is measured; and what a maximum and a length of time are worth."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtproof import statistics
from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge.analysis_model import Requirement, State
from rtproof.statistics import binomial_at_most, mean_upper, share_lower, share_upper, tau_needed

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
    until = statistics.refuted_until_ns(count, requirement.at_most_ns, alpha)
    return NeededLength(count, needed, max(needed - measured_ns, 0), until)


def proven_after_ns(count: int, requirement: Requirement, alpha: float) -> int:
    """The measured time that a proof takes in all with so many short episodes, each with the gap behind it."""
    quiet = requirement.bunches * statistics.tau_needed(count, alpha) * requirement.at_most_ns
    return math.ceil(quiet) + count * requirement.gap_ns


def _already(episodes: int, tau: float, requirement: Requirement, alpha: float) -> State:
    if tau >= requirement.bunches * statistics.tau_needed(episodes, alpha):
        return State.PROVEN
    all_time = tau + episodes * requirement.gap_ns / requirement.at_most_ns
    refuted = episodes > 0 and all_time <= statistics.tau_refuted(episodes, alpha)
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
    proving = requirement.bunches * np.array([statistics.tau_needed(n, alpha) for n in counts])
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
    return max(statistics.tau_refuted(count, alpha) - max(count - 1, 0) * gap, 0.0)


def _most(begun: float, alpha: float, gap: float) -> int:
    """The number of episodes that refutes at any time up to the horizon."""
    high = 1
    while _refuting(high, alpha, gap) < begun + HORIZON:
        high *= 2
    return bisect_left(range(high), begun + HORIZON, key=lambda count: _refuting(count, alpha, gap))


# What a maximum, a threshold and a length of time are worth, from plain numbers: no record is needed for these lines.
#
# They hold without any model of the latencies. Whatever is said of the largest value takes them as exchangeable,
# which
# means that a run as long as this one might as well have come first, and the length as fixed before the run.


USUAL_CONFIDENCE = 0.95
DAY_NS = 24 * 3_600_000_000_000
PREDICTION = 0.05
FIXED = "fixed-time"
FOR_EACH_LENGTH = "the upper and the lower limit hold so each by itself, not both together"


@dataclass(frozen=True)
class ShareThreshold:
    """The value that a share of the measured ones exceeds, and what is known of the share behind it.

    exceeding: how many of the n values are above it. low, high: two-sided interval of the true share. rank: counted
    from the largest (1), the value that is an upper limit of the true threshold, one-sided; None if n is too small.
    """

    share: float
    n: int
    exceeding: int
    low: float
    high: float
    rank: int | None
    confidence: float


def chance_exceeded(past: float, coming: float) -> float:
    """At most how likely the largest of the coming units exceeds that of the past ones, all in the same unit.

    m / (n + m), if no two values are equal. Equal maxima (coarse clocks, few values) make it less.
    """
    return coming / (past + coming)


def predicted_until(past: float, chance: float = PREDICTION) -> float:
    """How long the largest value so far stays the largest but for this chance: T / 19 for 5 %."""
    return past * chance / (1 - chance)


def rarest_ns(duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, anytime: bool = False) -> float:
    """The mean time between events that such a run shows at least once with this probability: T / 3.00, or T / 3.48.

    anytime: the run may have been ended whenever one liked.
    """
    return duration_ns / (tau_needed(0, 1 - confidence) if anytime else mean_upper(0, confidence))


def share_threshold(share: float, n: int, confidence: float = USUAL_CONFIDENCE) -> ShareThreshold:
    """share: of the values that are above the threshold, such as 1e-5 for the 99.999th percentile."""
    exceeding, tail = round(share * n), (1 - confidence) / 2
    low, high = share_lower(exceeding, n, 1 - tail), share_upper(exceeding, n, 1 - tail)
    return ShareThreshold(share, n, exceeding, low, high, _rank(share, n, confidence), confidence)


def _rank(share: float, n: int, confidence: float) -> int | None:
    """The largest j with P(Bin(n, p) <= j - 1) <= 1 - confidence (Wilks 1941), by bisection."""
    low, high = 0, round(share * n) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if binomial_at_most(middle - 1, n, share) <= 1 - confidence else (low, middle)
    return low or None


def largest_value_sentences(
    max_ns: int, duration_ns: int, confidence: float = USUAL_CONFIDENCE, *, length_was_fixed: bool = True
) -> tuple[str, str, str]:
    """What the largest value of a run is worth: for a second run, for the time to come, and as a bound."""
    again, later = chance_exceeded(1, 1), duration(predicted_until(duration_ns))
    unless = "" if length_was_fixed else ", had the length been fixed beforehand, which it was not"
    return (
        f"a second, equally long run will exceed this with a probability of at most {percent(again)}, if it is alike "
        "(an equal maximum does not exceed it)",
        f"within the next {later} it is exceeded with a probability of at most {percent(PREDICTION)}, if conditions "
        "stay alike; at most m/(n+m) for m more after n",
        f"> {value(max_ns)}: less often than once per {duration(rarest_ns(duration_ns, confidence))} "
        f"({percent(confidence)}, {FIXED}{unless})",
    )


def unseen_event_sentences(duration_ns: int, confidence: float = USUAL_CONFIDENCE) -> tuple[str, ...]:
    """What may exist although a run of this length shows nothing of it."""
    fixed, anytime = (duration(rarest_ns(duration_ns, confidence, anytime=free)) for free in (False, True))
    short = (f"a run of {duration(duration_ns)} cannot have seen what comes once a day",)
    return (
        f"anything rarer than once per {fixed} may be missing from this run "
        f"({percent(confidence)}, {FIXED}; once per {anytime} if it could have ended at any time)",
        *(short if duration_ns < DAY_NS else ()),
        "1 boot cannot show what differs from boot to boot",
    )


def threshold_rank_sentence(found: ShareThreshold) -> str:
    """What is known of the share behind a threshold, in words."""
    p = percent(1 - found.share)
    rank = f"the {_ordinal(found.rank)} largest value" if found.rank else "none: n is too small"
    return (
        f"the {p} threshold of {quantity(found.n, 'activation')} ({found.exceeding} above it): between "
        f"{found.low:.2g} and {found.high:.3g} of all activations exceed it ({percent(found.confidence)}, {FIXED}); "
        f"upper limit of the true {p} threshold ({percent(found.confidence)}): {rank}"
    )


def _ordinal(n: int) -> str:
    """1st, 22nd, 113th."""
    last = {1: "1st", 2: "2nd", 3: "3rd"}.get(n % 10)
    return f"{n}th" if last is None or n // 10 % 10 == 1 else f"{n // 10 or ''}{last}"
