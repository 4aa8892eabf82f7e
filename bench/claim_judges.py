# SPDX-License-Identifier: Apache-2.0
"""The product's decision on simulated late stretches, in the types of ``claim_rules``."""

from collections.abc import Callable

import numpy as np
from claim_processes import Floats
from claim_rules import ALPHA, Claim, Rounded, Told

from rtproof.judge.claim import LateStretches, RefutingRule, decide_course, episode_course
from rtproof.judge.requirement import Requirement
from rtproof.record.contents import Int64Array

NS = 10**9
Judge = Callable[[Rounded, float, Claim], Told]


def product(late: Rounded, length_s: float, claim: Claim) -> Told:
    """What the code says that judges records; times are rounded to the nanosecond first."""
    found = LateStretches(*map(in_ns, (late.a_low, late.a_high, late.b_low, late.b_high)))
    requirement = Requirement(
        0,
        round(claim.at_most_s * NS),
        1 - ALPHA,
        gap_ns=round(claim.gap_s * NS),
        longest_ns=round(claim.longest_s * NS),
        bunches=claim.bunches,
    )
    decision = decide_course(requirement, episode_course(found, round(length_s * NS), requirement.gap_ns), ALPHA)
    return Told(
        _in_s(decision.proven_at_ns),
        _in_s(decision.refuted_at_ns),
        decision.kind is RefutingRule.DURATION,
        decision.proven_with,
        decision.withheld,
    )


def in_ns(time_s: Floats) -> Int64Array:
    return np.rint(time_s * NS).astype(np.int64)


def _in_s(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / NS
