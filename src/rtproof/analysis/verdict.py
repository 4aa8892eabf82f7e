# SPDX-License-Identifier: Apache-2.0
"""Is the requirement met? One event can refute a worst case and no run can prove one, so what is judged is a rate.

The claim is always "episodes above the limit come at most once per T". The bound holds for a horizon that was fixed
before the run.
"""

from rtproof.analysis import wording
from rtproof.analysis.bounds import Rate, rate_of
from rtproof.analysis.evidence import Evidence
from rtproof.analysis.model import Requirement, Severity, State, Verdict
from rtproof.analysis.persecond import SECOND_NS

SHORT = 0.99
"""Share of the asked duration that a run must cover: its first and last period may lie outside."""


def judge(requirement: Requirement | None, evidence: Evidence) -> Verdict:
    """The verdict on a run, with its reasons and its sentences."""
    rate = rate_of(len(evidence.episodes), evidence.measured_ns, requirement) if requirement else None
    state, reasons = _state(requirement, rate, evidence)
    needed = rate.needed_ns if rate else None
    return Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=wording.sentences(state, reasons, requirement, evidence, rate),
        episodes=evidence.episodes,
        measured_ns=evidence.measured_ns,
        rate_low=rate.low * SECOND_NS if rate else None,
        rate_high=rate.high * SECOND_NS if rate else None,
        needed_ns=needed,
        more_ns=None if needed is None else max(needed - evidence.measured_ns, 0),
        exceedances_observed=evidence.exceedances_observed,
        exceedances_schedule=evidence.exceedances_schedule,
    )


def _state(requirement: Requirement | None, rate: Rate | None, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    invalid = tuple(doubt.what for doubt in evidence.doubts if doubt.severity is Severity.INVALID)
    if invalid:
        return State.INVALID, invalid
    if requirement is None:
        return State.NOT_ASKED, ()
    if rate is None:
        return State.UNDECIDED, ("nothing was measured",)
    state, reason = _judged(requirement, rate, evidence)
    return state, (reason,)


def _judged(requirement: Requirement, rate: Rate, evidence: Evidence) -> tuple[State, str]:
    if rate.low * requirement.at_most_ns > 1:
        return State.REFUTED, wording.refuted(requirement, evidence, rate.low)
    if _ended_early(evidence):
        return State.UNDECIDED, wording.ended_early(evidence)
    if evidence.lost:
        return State.UNDECIDED, wording.lost(evidence)
    if rate.high * requirement.at_most_ns < 1:
        return State.PROVEN, wording.proven(requirement, evidence, rate.high)
    return State.UNDECIDED, wording.undecided(requirement, rate.high)


def _ended_early(evidence: Evidence) -> bool:
    """The bound needs a length fixed beforehand: who stops a run may do so because it looks good."""
    asked = evidence.asked_duration_ns
    return not evidence.ended_as_asked or (asked is not None and evidence.measured_ns < SHORT * asked)
