# SPDX-License-Identifier: Apache-2.0
"""The table of a plan: how long a run has to be for a verdict on each limit."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.core.phrases import duration, quantity, sure
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import State
from rtproof.judge.planning import LengthPlan, NeededLength, held_after_ns
from rtproof.record.requirement import HOUR_NS
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.number_format import table_of

SHOWN_NS = (60 * 10**9, HOUR_NS, 24 * HOUR_NS, 7 * 24 * HOUR_NS)
"""The exceedances that a run may be asked to rule out: more than one per minute, hour, day, week."""
NONE = "-"


def plan_sections(plans: Sequence[LengthPlan]) -> list[Section]:
    """Return one section for each limit, in the order of the limits."""
    sections = []
    for number, plan in enumerate(plans, 1):
        asked, so_far = plan.requirement, [Text((_so_far(plan),))] if plan.measured_ns else []
        if asked.plain:
            tables, explained = [_plain_table(plan)], PLAIN_EXPLAINED
            title = verdict_sentences.requested_limit_sentence(asked)
        else:
            tables = [_rate_table(plan)] if plan.already is State.UNDECIDED else []
            explained, title = _explained(plan), verdict_sentences.limit_sentence(asked)
        sections.append(Section(f"plan-{number}", title, (*so_far, *tables, Text(explained))))
    return sections


def _so_far(plan: LengthPlan) -> str:
    if plan.requirement.plain:
        often = quantity(plan.episodes, "exceedance") if plan.episodes else "no exceedance"
        return f"{plan.already.value}: {often} in {duration(plan.measured_ns)} so far."
    final = "" if plan.already is State.UNDECIDED else ". Later episodes do not change that"
    return f"{quantity(plan.episodes, 'episode')} in {duration(plan.measured_ns)} so far: {plan.already.value}{final}"


def _plain_table(plan: LengthPlan) -> Table:
    asked = plan.requirement
    return table_of(
        f"How long to measure ({sure(plan.alpha)})",
        [replace(asked, shows_ns=ns) for ns in sorted({*SHOWN_NS, asked.shows_ns})],
        ("to rule out more than one exceedance per", lambda each: duration(each.shows_ns)),
        ("measure without an exceedance for", lambda each: duration(held_after_ns(each), up=True)),
        numeric=(),
    )


def _rate_table(plan: LengthPlan) -> Table:
    def within(need: NeededLength) -> str:
        return duration(need.refuted_until_ns) if need.refuted_until_ns > plan.measured_ns else NONE

    return table_of(
        f"How long to measure ({sure(plan.alpha)})",
        plan.needs,
        ("episodes", lambda need: str(need.episodes)),
        ("PROVEN after", lambda need: duration(need.proven_after_ns, up=True)),
        ("from now", lambda need: duration(need.more_ns, up=True)),
        ("REFUTED if within", within),
        numeric=(0,),
    )


PLAIN_EXPLAINED: tuple[str, ...] = (
    "One exceedance ends the question: the limit is EXCEEDED.",
    "You may end the run at any time. HELD always says how much the time so far shows.",
    "The table assumes a steady rate of exceedances.",
)


BUNCHES = "Episodes may come in bunches of {0} on average, so PROVEN takes {0} times as long as for single episodes."


def _explained(plan: LengthPlan) -> tuple[str, ...]:
    requirement = plan.requirement
    episode = verdict_sentences.episode_sentence(requirement)
    several = verdict_sentences.shared_error_sentence(plan.limits, plan.alpha, requirement)
    return (
        f"{verdict_sentences.answer_sentences((episode,))} You may end the run at any time. "
        "Give the limit to rtproof run before it starts.",
        f"One episode that lasts longer than {duration(requirement.longest_ns)} refutes the claim at once. Time inside "
        "an episode and the gap after it do not count for PROVEN.",
        *((BUNCHES.format(f"{requirement.bunches:.3g}"),) if requirement.bunches > 1 else ()),
        *((verdict_sentences.answer_sentences((several,)),) if plan.limits > 1 else ()),
        "The table assumes short episodes that come independently at a steady rate. If episodes come in bunches, "
        "PROVEN takes longer.",
    )
