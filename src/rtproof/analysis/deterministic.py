# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run in virtual time, which has no confidence, no probability and no interval.

Such a run is a function of what goes in: run again it gives the same bytes. It is one observation, and nothing of it is
a sample of other runs. So the verdict tells what was seen, as a fact about this run:

* REFUTED where the limit was exceeded more often than was asked, or for longer: that was seen.
* UNDECIDED where it was not exceeded, or no more often than was asked. It is never PROVEN.
"""

from rtproof.analysis import wording
from rtproof.analysis.evidence import Evidence
from rtproof.analysis.model import Episode, Requirement, Severity, State, Verdict
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import duration, quantity, value

NOT_EXCEEDED = "not exceeded in this deterministic run"
NO_PROBABILITY = (
    "in virtual time nothing is PROVEN and nothing has a probability: the same run gives the same bytes again, and "
    "another start, load or length is another run"
)
LEFT_OUT = ("UNSEEN", "FORECAST")
"""Labels of sentences that speak of other runs."""


def judge(requirement: Requirement | None, evidence: Evidence) -> Verdict:
    """The verdict on a run in virtual time."""
    state, reasons = _state(requirement, evidence)
    return Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=_without_other_runs(wording.sentences(state, reasons, requirement, evidence, None)),
        episodes=evidence.episodes,
        measured_ns=evidence.measured_ns,
        exceedances_observed=evidence.exceedances_observed,
        exceedances_schedule=evidence.exceedances_schedule,
        deterministic=True,
    )


def _state(requirement: Requirement | None, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    invalid = tuple(doubt.what for doubt in evidence.doubts if doubt.severity is Severity.INVALID)
    if invalid:
        return State.INVALID, invalid
    if requirement is None:
        return State.NOT_ASKED, ()
    if evidence.measured_ns <= 0:
        return State.UNDECIDED, ("nothing was measured",)
    return (
        _seen(requirement, evidence) if evidence.episodes else (State.UNDECIDED, _not_exceeded(requirement, evidence))
    )


def _not_exceeded(requirement: Requirement, evidence: Evidence) -> tuple[str, ...]:
    if evidence.lost:
        return wording.lost(evidence), NO_PROBABILITY
    due, span = quantity(evidence.obtained + evidence.missed, "activation"), duration(evidence.measured_ns)
    return f"{NOT_EXCEEDED}: none of {due} in {span} was above {value(requirement.limit_ns)}", NO_PROBABILITY


def _seen(requirement: Requirement, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    """Where something was above the limit."""
    episodes, longest_ns = evidence.episodes, max(map(_surely_ns, evidence.episodes))
    above, span = value(requirement.limit_ns), duration(evidence.measured_ns)
    times = f"exceeded {_times(evidence)} in this deterministic run"
    seen = f"{times}: {quantity(len(episodes), 'episode')} above {above} in {span}"
    if longest_ns > requirement.longest_ns:
        asked = f"at most {duration(requirement.longest_ns)} was asked"
        return State.REFUTED, (f"{seen}, one of at least {duration(longest_ns)}, and {asked}", NO_PROBABILITY)
    asked = f"at most once per {duration(requirement.at_most_ns)} was asked"
    if len(episodes) * requirement.at_most_ns > evidence.measured_ns:
        return State.REFUTED, (f"{seen}, and {asked}", NO_PROBABILITY)
    return State.UNDECIDED, (f"{seen}, which is no more often than was asked ({asked})", NO_PROBABILITY)


def _times(evidence: Evidence) -> str:
    times = max(evidence.exceedances_schedule or 0, len(evidence.episodes))
    return "once" if times == 1 else f"{times:,} times"


def _surely_ns(episode: Episode) -> int:
    """The least that it lasted, by its seconds."""
    return max(episode.last_second - episode.first_second - 1, 0) * SECOND_NS


def _without_other_runs(lines: wording.Sentences) -> wording.Sentences:
    kept, current = [], ""
    for label, text in lines:
        current = label or current
        kept += [] if current in LEFT_OUT else [(label, text)]
    return tuple(kept)
