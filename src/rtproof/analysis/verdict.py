# SPDX-License-Identifier: Apache-2.0
"""Is the requirement met? One event can refute a worst case and no run can prove one, so what is judged is a rate.

The claim is "episodes above the limit come at most once per T, and none lasts longer than D" (analysis.claim). The test
may be looked at all the time, and the run ended whenever one likes: so no end of a run keeps it from being PROVEN, not
even a record that was cut off, since what was decided before it broke off had been decided. What does keep it is about
the data: values that were lost may have been episodes, and doubts may make the whole run INVALID, which a load that
died, the agent's guard and its errors do.

Of several limits each is tested with its share of the probability of error (Bonferroni), so that all verdicts of a run
together are right with the confidence asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rtproof.analysis import deterministic, wording
from rtproof.analysis.claim import course
from rtproof.analysis.evidence import Evidence
from rtproof.analysis.model import Requirement, Severity, State, Verdict
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.tested import Tested, limit_tested

FIRST = (State.INVALID, State.REFUTED, State.UNDECIDED, State.PROVEN, State.NOT_ASKED)
"""Of several verdicts the one that decides comes first."""
BOUNDS = (
    *("tau", "log_e_proven", "log_e_refuted", "rate_low", "rate_high", "rate_high_fixed", "bunches_bound", "bunched"),
    *("decided_at_ns", "decided_with", "kind", "proven_at_ns", "proven_with", "refuted_at_latest_ns", "needed_ns"),
    *("more_ns", "needed_with_one_more_ns", "more_with_one_more_ns", "chance", "chance_with_one_more"),
)
"""Figures of a verdict that follow from a test."""


def judge(requirement: Requirement | None, evidence: Evidence, limits: int = 1) -> Verdict:
    """The verdict on a run, with its reasons and its sentences. limits: how many were fixed before the run in all."""
    if evidence.virtual_time:
        return deterministic.judge(requirement, evidence)
    found = tested_with(requirement, evidence, limits) if requirement and evidence.measured_ns > 0 else None
    state, reasons = _state(requirement, found, evidence)
    verdict = Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=wording.sentences(state, reasons, requirement, evidence, found),
        episodes=evidence.episodes,
        measured_ns=evidence.measured_ns,
        exceedances_observed=evidence.exceedances_observed,
        exceedances_schedule=evidence.exceedances_schedule,
    )
    figured = _with_figures(verdict, found, evidence) if found else verdict
    return _without_bounds(figured) if state is State.INVALID else figured


def deciding(verdicts: Sequence[Verdict]) -> Verdict:
    """The one that the run is called by: a run has what was asked of it if every limit is PROVEN."""
    return min(verdicts, key=lambda verdict: FIRST.index(verdict.state))


def tested_with(requirement: Requirement, evidence: Evidence, limits: int) -> Tested:
    """All figures of the test. Values that were lost may have been episodes: the rate has no upper limit then."""
    found = course(evidence.times.late, evidence.measured_ns, requirement.gap_ns)
    return limit_tested(requirement, found, limits, 0 if evidence.lost else None)


def _with_figures(verdict: Verdict, found: Tested, evidence: Evidence) -> Verdict:
    decision, spacing = found.decision, found.spacing
    figured = replace(
        verdict,
        alpha=found.alpha,
        tau=found.tau,
        live_ns=found.live_ns,
        log_e_proven=found.log_e_proven,
        log_e_refuted=found.log_e_refuted,
        rate_low=found.low * SECOND_NS,
        rate_high=_known(found.high),
        rate_high_fixed=_known(found.high_fixed),
        decided_at_ns=decision.at_ns,
        decided_with=None if decision.at_ns is None else decision.episodes,
        kind=decision.kind.value if decision.kind else None,
        proven_at_ns=decision.proven_at_ns,
        proven_with=decision.proven_with,
        bunches_bound=found.bunches_bound if found.provable else None,
        bunched=spacing.bunched if spacing else None,
        withheld=decision.withheld,
        longest_seen_ns=found.course.longest_ns,
        late_seconds=evidence.times.late_seconds,
        refuted_at_latest_ns=found.refuted_at_latest_ns if decision.state is State.UNDECIDED else None,
    )
    if not found.provable or decision.withheld:
        return figured
    return replace(
        figured,
        needed_ns=found.needed_ns,
        more_ns=found.more_ns,
        needed_with_one_more_ns=found.needed_with_one_more_ns,
        more_with_one_more_ns=found.more_with_one_more_ns,
        chance=found.chance,
        chance_with_one_more=found.chance_with_one_more,
    )


def _without_bounds(verdict: Verdict) -> Verdict:
    """What was seen in a run that is INVALID stands; nothing that follows from a run that measured what was asked."""
    none: dict[str, Any] = dict.fromkeys(BOUNDS)
    return replace(verdict, **none, withheld=False)


def _known(rate_per_ns: float) -> float | None:
    """Per second; None if there is no limit: no time was quiet, or values were lost."""
    return rate_per_ns * SECOND_NS if rate_per_ns < math.inf else None


def _state(requirement: Requirement | None, tested: Tested | None, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    invalid = tuple(doubt.what for doubt in evidence.doubts if doubt.severity is Severity.INVALID)
    if invalid:
        return State.INVALID, invalid
    if requirement is None:
        return State.NOT_ASKED, ()
    if tested is None:
        return State.UNDECIDED, ("nothing was measured",)
    return tested.decision.state, _reasons(requirement, tested, evidence)


def _reasons(requirement: Requirement, tested: Tested, evidence: Evidence) -> tuple[str, ...]:
    match tested.decision.state:
        case State.PROVEN:
            return wording.proven(requirement, evidence, tested)
        case State.REFUTED:
            return wording.refuted(requirement, evidence, tested)
    return wording.undecided(requirement, evidence, tested)
