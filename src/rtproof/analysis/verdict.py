# SPDX-License-Identifier: Apache-2.0
"""Is the requirement met? One event can refute a worst case and no run can prove one, so what is judged is a rate.

The claim is always "episodes above the limit come at most once per T". The test may be looked at all the time, and the
run ended whenever one likes (analysis.sequential): so no end of a run keeps it from being PROVEN, not even a record
that was cut off, since what was decided before it broke off had been decided. What does keep it is about the data:
values that were lost may have been episodes, and doubts may make the whole run INVALID, which a load that died, the
agent's guard and its errors do.

Of several limits each is tested with its share of the probability of error (Bonferroni), so that all verdicts of a run
together are right with the confidence asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from rtproof.analysis import sequential, wording
from rtproof.analysis.bounds import mean_upper
from rtproof.analysis.episodes import lengths_ns, starts_ns
from rtproof.analysis.evidence import Evidence
from rtproof.analysis.model import Requirement, Severity, State, Verdict
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.sequential import Known
from rtproof.analysis.tested import Tested

FIRST = (State.INVALID, State.REFUTED, State.UNDECIDED, State.PROVEN, State.NOT_ASKED)
"""Of several verdicts the one that decides comes first."""


def judge(requirement: Requirement | None, evidence: Evidence, limits: int = 1) -> Verdict:
    """The verdict on a run, with its reasons and its sentences. limits: how many were fixed before the run in all."""
    tested = tested_with(requirement, evidence, limits) if requirement and evidence.measured_ns > 0 else None
    state, reasons = _state(requirement, tested, evidence)
    verdict = Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=wording.sentences(state, reasons, requirement, evidence, tested),
        episodes=evidence.episodes,
        measured_ns=evidence.measured_ns,
        exceedances_observed=evidence.exceedances_observed,
        exceedances_schedule=evidence.exceedances_schedule,
    )
    return _with_figures(verdict, tested, provable=not evidence.lost) if tested else verdict


def deciding(verdicts: Sequence[Verdict]) -> Verdict:
    """The one that the run is called by: a run has what was asked of it if every limit is PROVEN."""
    return min(verdicts, key=lambda verdict: FIRST.index(verdict.state))


def tested_with(requirement: Requirement, evidence: Evidence, limits: int) -> Tested:
    """All figures of the test. Values that were lost may have been episodes: the rate has no upper limit then."""
    alpha = (1 - requirement.confidence) / limits
    n, measured, at_most = len(evidence.episodes), evidence.measured_ns, requirement.at_most_ns
    starts = starts_ns(evidence.episodes, evidence.first_due_ns)
    lengths = lengths_ns(evidence.episodes)
    inside = min(sum(lengths), measured)
    outside = 0 if evidence.lost else measured - inside
    needed, with_one_more = (sequential.needed_ns(count, at_most, alpha) + inside for count in (n, n + 1))
    return Tested(
        episodes=n,
        measured_ns=measured,
        inside_ns=inside,
        limits=limits,
        alpha=alpha,
        tau=measured / at_most,
        log_e_proven=sequential.log_e_proven(n, (measured - inside) / at_most),
        log_e_refuted=sequential.log_e_refuted(n, measured / at_most),
        decision=sequential.decide(starts, measured, at_most, alpha, Known(lengths, not evidence.lost)),
        low=sequential.rate_lower(n, measured, alpha),
        high=sequential.rate_upper(n, outside, alpha),
        high_fixed=mean_upper(n, 1 - alpha) / outside if outside else math.inf,
        needed_ns=needed,
        needed_with_one_more_ns=with_one_more,
    )


def _with_figures(verdict: Verdict, tested: Tested, *, provable: bool) -> Verdict:
    decided = tested.decision.at_ns is not None
    figured = replace(
        verdict,
        alpha=tested.alpha,
        tau=tested.tau,
        inside_ns=tested.inside_ns,
        log_e_proven=tested.log_e_proven,
        log_e_refuted=tested.log_e_refuted,
        rate_low=tested.low * SECOND_NS,
        rate_high=_known(tested.high),
        rate_high_fixed=_known(tested.high_fixed),
        decided_at_ns=tested.decision.at_ns,
        decided_with=tested.decision.episodes if decided else None,
    )
    if not provable:
        return figured
    return replace(
        figured,
        needed_ns=tested.needed_ns,
        more_ns=tested.more_ns,
        needed_with_one_more_ns=tested.needed_with_one_more_ns,
        more_with_one_more_ns=tested.more_with_one_more_ns,
        chance=tested.chance,
        chance_with_one_more=tested.chance_with_one_more,
    )


def _known(rate_per_ns: float) -> float | None:
    """Per second; None if there is no limit: all of the run was one episode, or values were lost."""
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
    return (wording.lost(evidence) if evidence.lost else wording.undecided(requirement, evidence, tested),)
