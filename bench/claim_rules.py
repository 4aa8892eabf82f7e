# SPDX-License-Identifier: Apache-2.0
"""Judge the claim without the product's code: by its definition in docs/verdict.md, and by the rule before it.

``reference`` walks from quiet stretch to quiet stretch in floating seconds. It shares only the critical times of both
bets with the product; ``acceptance.until`` integrates these for itself. ``old`` is a frozen copy of the rule before:
episodes to the second, a gap of 60 s or T, no longest episode. Benchmark 01a compares with it.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from claim_processes import Floats, Stretches
from numpy.typing import NDArray

from rtproof.statistics import tau_needed, tau_refuted

ALPHA = 0.05
LN_EPISODES = np.log([3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 100, 400])
MOST_SQUARES = (2.72, 2.85, 2.88, 2.92, 2.96, 2.91, 2.87, 2.83, 2.71, 2.53, 2.42, 2.21)
MOST_LOGS = (1.361, 1.278, 1.233, 1.198, 1.129, 1.070, 0.985, 0.932, 0.875, 0.790, 0.735, 0.656)


@dataclass(frozen=True)
class Claim:
    """Episodes at most once per T, none longer than D, in seconds. bunches: their mean size m; tested: for bunches."""

    at_most_s: float
    gap_s: float
    longest_s: float
    bunches: float = 1.0
    tested: bool = True

    @classmethod
    def usual(cls, at_most_s: float, bunches: float = 1.0, *, tested: bool = True) -> "Claim":
        gap_s = min(60.0, at_most_s / 20)
        return cls(at_most_s, gap_s, min(10 * gap_s, at_most_s / 4), bunches, tested)


@dataclass(frozen=True)
class Told:
    """When each decision comes first, in seconds; None: never. by_length: REFUTED is that of a long episode.

    episodes: how many there were at the proof. withheld: the bunch test withheld a proof at least once.
    """

    proven_s: float | None
    refuted_s: float | None
    by_length: bool = False
    episodes: int | None = None
    withheld: bool = False

    @property
    def state(self) -> str:
        """The first decision; "" without one."""
        proven, refuted = (math.inf if at is None else at for at in (self.proven_s, self.refuted_s))
        if min(proven, refuted) == math.inf:
            return ""
        return "PROVEN" if proven < refuted else "REFUTED"

    @property
    def at_s(self) -> float | None:
        """When the first decision came."""
        return self.proven_s if self.state == "PROVEN" else self.refuted_s


@dataclass(frozen=True)
class Rounded:
    """Late stretches that begin between a_low and a_high and end between b_low and b_high, in any order."""

    a_low: Floats
    a_high: Floats
    b_low: Floats
    b_high: Floats


def exact(late: Stretches) -> Rounded:
    return Rounded(late.begin_s, late.begin_s, late.end_s, late.end_s)


def seconds(late: Stretches) -> Rounded:
    """What remains if only the seconds are known in which something was late."""
    found = [np.arange(np.floor(a), np.floor(b) + 1) for a, b in zip(late.begin_s, late.end_s, strict=True)]
    second = np.unique(np.concatenate(found)) if found else late.begin_s
    return Rounded(second, second + 1, second, second + 1)


def reference(late: Rounded, length_s: float, claim: Claim) -> Told:
    """Both decisions on a run of this length, each as if the other had not been."""
    proven_s, episodes, withheld = _proven(late, length_s, claim)
    by_rate, by_length = _by_rate(late, length_s, claim), _by_length(late, length_s, claim)
    refuted_s = min(by_rate, by_length)
    return Told(
        proven_s,
        refuted_s if refuted_s < math.inf else None,
        by_length <= by_rate and by_length < math.inf,
        episodes,
        withheld,
    )


def bunched(starts: Floats, now: float) -> bool:
    """Whether 3 or more starts, in quiet time, are too unequal or too close. now: all quiet time."""
    n = starts.size
    if n < 3:
        return False
    shares = np.maximum(np.diff(np.r_[0.0, starts, now]) / now, 1e-9)
    squares, logs = (n + 1) * float(np.sum(shares**2)), -float(np.mean(np.log((n + 1) * shares)))
    at = math.log(n)
    return bool(squares > np.interp(at, LN_EPISODES, MOST_SQUARES) or logs > np.interp(at, LN_EPISODES, MOST_LOGS))


def _proven(late: Rounded, length_s: float, claim: Claim) -> tuple[float | None, int | None, bool]:
    """When, with how many episodes, and whether it was withheld before. Episodes join only if they surely do."""
    order = np.argsort(late.a_high, kind="stable")
    fresh = _fresh(late.a_high[order], late.b_low[order], claim.gap_s)
    first = np.sort(np.minimum.reduceat(late.a_low[order], np.flatnonzero(fresh))) if fresh.size else late.a_low
    since, to = _quiet(late, length_s, claim.gap_s)
    live = np.cumsum(to - since)
    starts = np.array([np.sum(np.clip(each - since, 0.0, to - since)) for each in first])
    withheld = False
    for at, before in enumerate(np.searchsorted(first, since, side="right") if first.size else np.zeros(1, np.int64)):
        had, has = (live[at - 1] if at else 0.0), live[at]
        if has <= had or has <= before * claim.bunches * claim.at_most_s:
            continue  # no bet on fewer than there were has won
        needed = needed_tau(int(before)) * claim.bunches * claim.at_most_s
        if has < needed:
            continue
        for at_live in (needed, has) if needed > had else (has,):
            if not claim.tested or not bunched(starts[:before], at_live):
                return float(to[at] - (has - at_live)), int(before), withheld
            withheld = True
    return None, None, withheld


def _quiet(late: Rounded, length_s: float, gap_s: float) -> tuple[Floats, Floats]:
    """From when to when nothing was late for the gap, wherever the late times lie within their bounds."""
    order = np.argsort(late.a_low, kind="stable")
    until = np.maximum.accumulate(late.b_high[order] + gap_s)
    since, to = np.append(0.0, until), np.append(late.a_low[order], length_s)
    since, to = np.minimum(since, length_s), np.minimum(to, length_s)
    kept = to > since
    return since[kept], to[kept]


def _by_rate(late: Rounded, length_s: float, claim: Claim) -> float:
    """The beginning of the episode that is one too many. Episodes join wherever they may."""
    order = np.argsort(late.a_low, kind="stable")
    fresh = _fresh(late.a_low[order], late.b_high[order], claim.gap_s)
    if not fresh.size:
        return math.inf
    begins = np.sort(np.minimum.reduceat(late.a_high[order], np.flatnonzero(fresh)))
    many = begins < np.arange(1, begins.size + 1) * claim.at_most_s  # else no bet on more than there were has won
    for at in np.flatnonzero(many & (begins <= length_s)):
        if begins[at] <= refuted_tau(int(at) + 1) * claim.at_most_s:
            return float(begins[at])
    return math.inf


def _by_length(late: Rounded, length_s: float, claim: Claim) -> float:
    """When an episode surely lasts longer than D: D after its beginning, or at the late stretch that shows it."""
    order = np.argsort(late.a_high, kind="stable")
    a_high, b_low = late.a_high[order], late.b_low[order]
    fresh = _fresh(a_high, b_low, claim.gap_s)
    begin = a_high[fresh][np.cumsum(fresh) - 1]
    at_s = np.maximum(a_high, begin + claim.longest_s)[b_low - begin > claim.longest_s]
    at_s = at_s[at_s <= length_s]
    return float(at_s.min()) if at_s.size else math.inf


def _fresh(begin: Floats, end: Floats, gap_s: float) -> NDArray[np.bool_]:
    """Which stretches begin further than the gap behind everything before them."""
    if not begin.size:
        return np.zeros(0, np.bool_)
    return np.append(True, begin[1:] - np.maximum.accumulate(end)[:-1] > gap_s)


@cache
def needed_tau(episodes: int) -> float:
    return tau_needed(episodes, ALPHA)


@cache
def refuted_tau(episodes: int) -> float:
    return tau_refuted(episodes, ALPHA)


def old(late: Stretches, length_s: float, at_most_s: float) -> str:
    """The first decision of the rule before: "PROVEN", "REFUTED" or ""."""
    begin, end = np.floor(late.begin_s), np.floor(late.end_s)
    fresh = _fresh(begin, end, max(1.0, min(60.0, at_most_s)))
    begin, end = begin[fresh], np.maximum.accumulate(end)[np.append(fresh[1:], [True] * bool(fresh.size)).astype(bool)]
    inside = np.r_[0.0, np.cumsum(np.where(end > begin, end - begin + 1, 0.0))]
    for before, by_s in enumerate(np.r_[begin, length_s]):
        if needed_tau(before) * at_most_s + inside[before] <= min(by_s, length_s):
            return "PROVEN"
        if before < begin.size and min(by_s + 1, length_s) <= refuted_tau(before + 1) * at_most_s:
            return "REFUTED"
    return ""
