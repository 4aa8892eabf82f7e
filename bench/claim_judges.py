# SPDX-License-Identifier: Apache-2.0
"""The product's decisions on simulated late stretches, in seconds. tests/slow_verdict.py judges without its code."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from claim_processes import PROCESSES, Floats, Process, Span, Stretches, poisson, rate_for, runs

from rtproof.judge import claim as product_claim
from rtproof.judge.claim import LateStretches, RefutingRule, decide_course, episode_course
from rtproof.record.contents import Int64Array
from rtproof.record.requirement import Requirement

ALPHA = 0.05
NS = 10**9
MINUTE_S, HOUR_S = 60.0, 3600.0
NAMES = {MINUTE_S: "1 min", HOUR_S: "1 h", 6 * HOUR_S: "6 h"}
"""The usual T."""
TIMES = 100
"""How many T a run is long."""
CALIBRATED = 300_000
POISSON = Process("Poisson", poisson)


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

    episodes: how many there were at the proof.
    """

    proven_s: float | None
    refuted_s: float | None
    by_length: bool = False
    episodes: int | None = None

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


def exact(late: Stretches) -> LateStretches:
    return LateStretches.exact(in_ns(late.begin_s), in_ns(late.end_s))


def seconds(late: Stretches) -> LateStretches:
    """What remains if only the seconds are known in which something was late."""
    found = [np.arange(np.floor(a), np.floor(b) + 1) for a, b in zip(late.begin_s, late.end_s, strict=True)]
    second = np.unique(np.concatenate(found)) if found else late.begin_s
    return LateStretches(in_ns(second), in_ns(second + 1), in_ns(second), in_ns(second + 1))


def product(late: LateStretches, length_s: float, claim: Claim) -> Told:
    """What the code says that judges records; without the test for bunches if the claim is not tested for them."""
    requirement = Requirement(
        0,
        round(claim.at_most_s * NS),
        1 - ALPHA,
        gap_ns=round(claim.gap_s * NS),
        longest_ns=round(claim.longest_s * NS),
        bunches=claim.bunches,
    )
    course = episode_course(late, round(length_s * NS), requirement.gap_ns)
    untested = patch.object(product_claim, "look_bunched", lambda _starts, _now: False)
    with nullcontext() if claim.tested else untested:
        decision = decide_course(requirement, course, ALPHA)
    by_length = decision.kind is RefutingRule.DURATION
    return Told(_in_s(decision.proven_at_ns), _in_s(decision.refuted_at_ns), by_length, decision.proven_with)


def named(name: str) -> Process:
    return next(one for one in PROCESSES if one.name == name)


def episode_rate(process: Process, claim: Claim, seed: tuple[int, ...]) -> float:
    """The rate per second at which the process gives one episode per T."""
    return rate_for(process, claim.gap_s, Span(CALIBRATED * claim.at_most_s, claim.at_most_s), seed)


@dataclass(frozen=True)
class Runs:
    """So many runs of so many T, drawn with a seed."""

    count: int
    seed: tuple[int, ...]
    length: float = TIMES


def judged(
    process: Process, rate: float, claim: Claim, drawn: Runs, form: Callable[[Stretches], LateStretches] = exact
) -> list[Told]:
    """What is said of each run. rate: per second. form: what is known of the late times."""
    span = Span(drawn.length * claim.at_most_s, claim.at_most_s)
    return [product(form(late), span.length_s, claim) for late in runs(process, rate, span, drawn.count, drawn.seed)]


def in_ns(time_s: Floats) -> Int64Array:
    return np.rint(time_s * NS).astype(np.int64)


def _in_s(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / NS
