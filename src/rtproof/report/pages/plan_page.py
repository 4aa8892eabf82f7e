# SPDX-License-Identifier: Apache-2.0
"""The tables of a plan: how long a run has to be for a verdict on each limit."""

from collections.abc import Sequence

from rtproof.core.phrases import duration, quantity, sure
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.planning import DecisionChance, LengthPlan, NeededLength
from rtproof.report.blocks import Block, Section, Table, Text

NEEDS = ("episodes", "PROVEN after", "from now", "REFUTED if they come within")
CHANCES = ("true rate", "PROVEN", "REFUTED", "undecided", "mean time to the verdict", "9 of 10 by")
NONE = "-"


def plan_sections(plans: Sequence[LengthPlan]) -> list[Section]:
    """Return one section for each limit, in the order of the limits."""
    return [_section(number, plan) for number, plan in enumerate(plans, 1)]


def _section(number: int, plan: LengthPlan) -> Section:
    requirement = plan.requirement
    needs = tuple(_need(each, plan) for each in plan.needs)
    chances = tuple(_chance(each, plan) for each in plan.chances)
    caption = f"Measured time that a verdict needs, at {sure(plan.alpha)}"
    rates = f"Verdicts at some true rates, up to {duration(plan.horizon_ns, up=True)} of measured time"
    blocks: list[Block] = [
        *([Text((_so_far(plan),))] if plan.measured_ns else []),
        *([Table(caption, NEEDS, needs, (0,)), Table(rates, CHANCES, chances)] if _open(plan) else []),
        Text(_explained(plan)),
    ]
    return Section(f"plan-{number}", verdict_sentences.limit_sentence(requirement), tuple(blocks))


def _open(plan: LengthPlan) -> bool:
    return plan.already is State.UNDECIDED


def _so_far(plan: LengthPlan) -> str:
    seen = f"{quantity(plan.episodes, 'episode')} in {duration(plan.measured_ns)} so far"
    stands = ", and later episodes do not change that (if no earlier time decided otherwise)"
    return f"{seen}: {plan.already.value}" + ("" if _open(plan) else stands)


def _need(need: NeededLength, plan: LengthPlan) -> tuple[str, ...]:
    refuted = duration(need.refuted_until_ns) if need.refuted_until_ns > plan.measured_ns else NONE
    return str(need.episodes), duration(need.proven_after_ns, up=True), duration(need.more_ns, up=True), refuted


def _chance(each: DecisionChance, plan: LengthPlan) -> tuple[str, ...]:
    rate = f"once per {duration(plan.requirement.at_most_ns / each.rate)}" if each.rate else "never"
    shares = (_percent(share) for share in (each.proven, each.refuted, each.undecided))
    return rate, *shares, *(duration(ns, up=True) if ns is not None else NONE for ns in (each.mean_ns, each.late_ns))


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _explained(plan: LengthPlan) -> tuple[str, ...]:
    requirement = plan.requirement
    episode = verdict_sentences.episode_sentence(requirement)
    several = verdict_sentences.shared_error_sentence(plan.limits, plan.alpha, requirement)
    return (
        f"{verdict_sentences.answer_sentences((episode,))} You may look at the test and end the run at any time. "
        "Give the limit to rtproof run before it starts.",
        f"One episode that lasts longer than {duration(requirement.longest_ns)} refutes the claim at once.",
        "The measured times are for short episodes. Time inside an episode and the gap after it do not count.",
        *((_bunches(requirement),) if requirement.bunches > 1 else ()),
        *((verdict_sentences.answer_sentences((several,)),) if plan.limits > 1 else ()),
        "The chances assume that episodes come independently at a constant rate. The true rate is not known "
        "beforehand. The last two columns give quiet time, over the runs that are decided.",
        "The chances leave out the test for bunches. It withholds a few proofs of such episodes too, so PROVEN "
        "may take longer.",
    )


def _bunches(requirement: Requirement) -> str:
    return (
        f"Episodes may come in bunches of {requirement.bunches:.3g} on average, so PROVEN takes "
        f"{requirement.bunches:.3g} times as long as for single episodes."
    )
