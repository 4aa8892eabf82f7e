# SPDX-License-Identifier: Apache-2.0
"""Turn a plan into plain data for JSON; docs/json-schema.md describes it."""

from collections.abc import Sequence
from typing import Any

from rtproof.judge.planning import DecisionChance, LengthPlan, NeededLength

PLAN_SCHEMA = "rtproof.plan"
PLAN_VERSION = 2

Json = dict[str, Any]


def plan_dict(plans: Sequence[LengthPlan]) -> Json:
    """Return the plans as plain data. Keys name the unit of their number; None stands for what no run has."""
    return {"schema": PLAN_SCHEMA, "version": PLAN_VERSION, "limits": [_plan(each) for each in plans]}


def _plan(plan: LengthPlan) -> Json:
    return {
        "limit_ns": plan.requirement.limit_ns,
        "at_most_ns": plan.requirement.at_most_ns,
        "confidence_ratio": plan.requirement.confidence,
        "gap_ns": plan.requirement.gap_ns,
        "longest_ns": plan.requirement.longest_ns,
        "bunches_count": plan.requirement.bunches,
        "alpha_ratio": plan.alpha,
        "episodes_count": plan.episodes,
        "measured_ns": plan.measured_ns,
        "already": plan.already.value,
        "horizon_ns": plan.horizon_ns,
        "needs": [_need(need) for need in plan.needs],
        "chances": [_chance(chance, plan.requirement.at_most_ns) for chance in plan.chances],
    }


def _need(need: NeededLength) -> Json:
    return {
        "episodes_count": need.episodes,
        "proven_after_ns": need.proven_after_ns,
        "more_ns": need.more_ns,
        "refuted_until_ns": need.refuted_until_ns,
    }


def _chance(chance: DecisionChance, at_most_ns: int) -> Json:
    return {
        "rate_per_s": chance.rate / at_most_ns * 1e9,
        "proven_ratio": chance.proven,
        "refuted_ratio": chance.refuted,
        "undecided_ratio": chance.undecided,
        "mean_ns": chance.mean_ns,
        "late_ns": chance.late_ns,
    }
