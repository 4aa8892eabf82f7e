# SPDX-License-Identifier: Apache-2.0
"""The tables of a plan: how long a run has to be for a verdict on each limit."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.core.phrases import duration, quantity, sure
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import State
from rtproof.judge.planning import DecisionChance, LengthPlan, NeededLength, held_after_ns
from rtproof.record.requirement import HOUR_NS, Requirement
from rtproof.report.blocks import Block, Section, Table, Text

NEEDS = ("episodes", "PROVEN after", "from now", "REFUTED if within")
CHANCES = ("true rate", "PROVEN", "REFUTED", "UNDECIDED", "decided after (mean)", "9 of 10 by")
PLAIN_NEEDS = ("to rule out more than one exceedance per", "measure without an exceedance for")
PLAIN_CHANCES = ("true rate", "HELD", "EXCEEDED", "mean length of the run")
SHOWN_NS = (60 * 10**9, HOUR_NS, 24 * HOUR_NS, 7 * 24 * HOUR_NS)
"""The exceedances that a run may be asked to rule out: more than one per minute, hour, day, week."""
NONE = "-"


def plan_sections(plans: Sequence[LengthPlan]) -> list[Section]:
    """Return one section for each limit, in the order of the limits."""
    return [_section(number, plan) for number, plan in enumerate(plans, 1)]


def _section(number: int, plan: LengthPlan) -> Section:
    requirement = plan.requirement
    if requirement.plain:
        return _plain_section(number, plan)
    needs = tuple(_need(each, plan) for each in plan.needs)
    chances = tuple(_chance(each, plan) for each in plan.chances)
    caption = f"How long to measure ({sure(plan.alpha)})"
    rates = f"How a run ends within {duration(plan.horizon_ns, up=True)}"
    blocks: list[Block] = [
        *([Text((_so_far(plan),))] if plan.measured_ns else []),
        *([Table(caption, NEEDS, needs, (0,)), Table(rates, CHANCES, chances)] if _open(plan) else []),
        Text(_explained(plan)),
    ]
    return Section(f"plan-{number}", verdict_sentences.limit_sentence(requirement), tuple(blocks))


def _plain_section(number: int, plan: LengthPlan) -> Section:
    asked = plan.requirement
    shown = [replace(asked, shows_ns=ns) for ns in sorted({*SHOWN_NS, asked.shows_ns})]
    needs = tuple((duration(each.shows_ns), duration(held_after_ns(each), up=True)) for each in shown)
    rows = tuple((_true_rate(each, plan), *_plain_chances(each)) for each in plan.chances)
    length = f"How a run of {duration(plan.horizon_ns, up=True)} ends, or one that ends at the first exceedance"
    often = quantity(plan.episodes, "exceedance") if plan.episodes else "no exceedance"
    so_far = f"{plan.already.value}: {often} in {duration(plan.measured_ns)} so far."
    blocks: list[Block] = [
        *([Text((so_far,))] if plan.measured_ns else []),
        Table(f"How long to measure ({sure(plan.alpha)})", PLAIN_NEEDS, needs),
        *([Table(length, PLAIN_CHANCES, rows)] if rows else []),
        Text(PLAIN_EXPLAINED),
    ]
    return Section(f"plan-{number}", verdict_sentences.requested_limit_sentence(asked), tuple(blocks))


PLAIN_EXPLAINED = (
    "One exceedance ends the question: the limit is EXCEEDED.",
    "You may end the run at any time. HELD always says how much the time so far shows.",
    "The tables assume a steady rate of exceedances.",
)


def _plain_chances(each: DecisionChance) -> tuple[str, str, str]:
    return _percent(each.proven), _percent(each.refuted), duration(each.mean_ns or 0, up=True)


def _open(plan: LengthPlan) -> bool:
    return plan.already is State.UNDECIDED


def _so_far(plan: LengthPlan) -> str:
    seen = f"{quantity(plan.episodes, 'episode')} in {duration(plan.measured_ns)} so far"
    stands = ". Later episodes do not change that"
    return f"{seen}: {plan.already.value}" + ("" if _open(plan) else stands)


def _need(need: NeededLength, plan: LengthPlan) -> tuple[str, ...]:
    refuted = duration(need.refuted_until_ns) if need.refuted_until_ns > plan.measured_ns else NONE
    return str(need.episodes), duration(need.proven_after_ns, up=True), duration(need.more_ns, up=True), refuted


def _chance(each: DecisionChance, plan: LengthPlan) -> tuple[str, ...]:
    rate = _true_rate(each, plan)
    shares = (_percent(share) for share in (each.proven, each.refuted, each.undecided))
    return rate, *shares, *(duration(ns, up=True) if ns is not None else NONE for ns in (each.mean_ns, each.late_ns))


def _true_rate(each: DecisionChance, plan: LengthPlan) -> str:
    return f"once per {duration(plan.requirement.goal_ns / each.rate)}" if each.rate else "never"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _explained(plan: LengthPlan) -> tuple[str, ...]:
    requirement = plan.requirement
    episode = verdict_sentences.episode_sentence(requirement)
    several = verdict_sentences.shared_error_sentence(plan.limits, plan.alpha, requirement)
    return (
        f"{verdict_sentences.answer_sentences((episode,))} You may end the run at any time. "
        "Give the limit to rtproof run before it starts.",
        f"One episode that lasts longer than {duration(requirement.longest_ns)} refutes the claim at once. Time inside "
        "an episode and the gap after it do not count for PROVEN.",
        *((_bunches(requirement),) if requirement.bunches > 1 else ()),
        *((verdict_sentences.answer_sentences((several,)),) if plan.limits > 1 else ()),
        "The tables assume short episodes that come independently at a steady rate. If episodes come in bunches, "
        "PROVEN takes longer.",
    )


def _bunches(requirement: Requirement) -> str:
    return (
        f"Episodes may come in bunches of {requirement.bunches:.3g} on average, so PROVEN takes "
        f"{requirement.bunches:.3g} times as long as for single episodes."
    )
