# SPDX-License-Identifier: Apache-2.0
"""The sentences of a verdict. Each says what was measured and how sure that is, and none claims more.

No run can tell the longest latency of a system, so no sentence here does, and none says that a system may be relied on.
"""

import math

from rtproof.analysis.bounds import Rate
from rtproof.analysis.evidence import Evidence, Worst
from rtproof.analysis.model import Requirement, State
from rtproof.analysis.phrases import duration, percent, quantity, value
from rtproof.analysis.virtual_time import WORDS

Sentences = tuple[tuple[str, str], ...]
FIXED = "for a length fixed before the run"
_PREDICTION = 0.05


def sentences(
    state: State, reasons: tuple[str, ...], requirement: Requirement | None, evidence: Evidence, rate: Rate | None
) -> Sentences:
    """Label and text, line by line; an empty label carries on the one before."""
    first, *others = reasons or ("no limit was given",)
    lines = [("VERDICT", f"{state.value} - {first}"), *(("", reason) for reason in others)]
    if requirement:
        lines.append(("LIMIT", limit(requirement)))
    if requirement and rate and state not in (State.PROVEN, State.REFUTED):
        lines += [("EPISODES", found(requirement, evidence)), ("", _rate(requirement, rate))]
        lines += [("", text) for text in _needed(state, evidence, rate)]
    lines += _missed(requirement, evidence)
    confidence = requirement.confidence if requirement else 0.95
    if evidence.worst and evidence.measured_ns > 0:
        lines += _largest(evidence.worst, evidence, confidence)
    if evidence.measured_ns > 0:
        rarest = _rarest(evidence, confidence)
        lines.append(("UNSEEN", f"anything rarer than once per {rarest} may be missing from this run"))
    lines += [("" if at else "FORECAST", text) for at, text in enumerate(evidence.forecast)]
    if evidence.virtual_time:
        lines.append(("TIME", f"{WORDS} ({evidence.virtual_time})"))
    return (*lines, ("VALID FOR", _valid_for(evidence)))


def limit(requirement: Requirement) -> str:
    return (
        f"{value(requirement.limit_ns)}, at most once per {duration(requirement.at_most_ns)}, "
        f"confidence {percent(requirement.confidence)}"
    )


def found(requirement: Requirement, evidence: Evidence) -> str:
    """What was seen, with its n."""
    threads = f"{quantity(evidence.threads, 'thread')}, any of which counts" if evidence.threads > 1 else "1 thread"
    return (
        f"{quantity(len(evidence.episodes), 'episode')} above {value(requirement.limit_ns)} in "
        f"{duration(evidence.measured_ns)} ({threads}; {quantity(evidence.obtained, 'activation')})"
    )


def proven(requirement: Requirement, evidence: Evidence, high: float) -> str:
    return f"{found(requirement, evidence)}: less often than once per {duration(1 / high)} ({_sure(requirement)})"


def refuted(requirement: Requirement, evidence: Evidence, low: float) -> str:
    return f"{found(requirement, evidence)}: more often than once per {duration(1 / low)} ({_sure(requirement)})"


def undecided(requirement: Requirement, high: float) -> str:
    return (
        f"this run shows that episodes come less often than once per {duration(1 / high)}, "
        f"and at most once per {duration(requirement.at_most_ns)} was asked"
    )


def ended_early(evidence: Evidence) -> str:
    asked = f" of the {duration(evidence.asked_duration_ns)} asked for" if evidence.asked_duration_ns else ""
    return (
        f"the run ended after {duration(evidence.measured_ns)}{asked}; "
        "the bound holds only for a length that was fixed beforehand, so this run proves nothing"
    )


def lost(evidence: Evidence) -> str:
    return f"{quantity(evidence.lost, 'activation')} left no value, and any of those may have exceeded the limit"


def _sure(requirement: Requirement) -> str:
    return f"{percent(requirement.confidence)}, {FIXED}"


def _rate(requirement: Requirement, rate: Rate) -> str:
    return f"rate: less often than once per {duration(1 / rate.high)} ({_sure(requirement)})"


def _needed(state: State, evidence: Evidence, rate: Rate) -> list[str]:
    if state is not State.UNDECIDED:
        return []
    none, one = ("no further episode", "one more") if evidence.episodes else ("no episode", "one")
    return [
        f"PROVEN needs a run of {duration(rate.needed_ns, up=True)} in all with {none}, "
        f"or {duration(rate.needed_with_one_more_ns, up=True)} with {one}, its length fixed before it starts"
    ]


def _missed(requirement: Requirement | None, evidence: Evidence) -> list[tuple[str, str]]:
    lines = []
    if evidence.missed:
        text = f"{quantity(evidence.missed, 'activation')} of {evidence.expected:,} due never ran"
        lines.append(("MISSED", f"{text}; each counts in the schedule view with the time it was late"))
    if requirement and evidence.exceedances_observed is not None and (evidence.missed or evidence.episodes):
        due = evidence.obtained + evidence.missed
        lines.append(
            (
                "EXCEEDED",
                f"{evidence.exceedances_observed:,} of {evidence.obtained:,} activations that ran (observed), "
                f"{evidence.exceedances_schedule:,} of {due:,} that were due (schedule)",
            )
        )
    return lines


def _largest(worst: Worst, evidence: Evidence, confidence: float) -> list[tuple[str, str]]:
    cpu = f" (cpu {worst.cpu})" if worst.cpu >= 0 else ""
    later = duration(evidence.measured_ns * _PREDICTION / (1 - _PREDICTION))
    rarest = f"less often than once per {_rarest(evidence, confidence)} ({percent(confidence)}, fixed-time)"
    return [
        (
            "MAX",
            f"{value(worst.value_ns)} on thread {worst.thread}{cpu} at {worst.at}, the largest of "
            f"{quantity(evidence.obtained, 'activation')}; "
            "a second, equally long run will exceed this with probability 50 %",
        ),
        ("", f"within the next {later} it is exceeded with probability {percent(_PREDICTION)}"),
        ("", f"> {value(worst.value_ns)}: {rarest}"),
    ]


def _rarest(evidence: Evidence, confidence: float) -> str:
    """What a run of this length shows with this probability at least once."""
    return duration(evidence.measured_ns / -math.log1p(-confidence))


def _valid_for(evidence: Evidence) -> str:
    load = f"load ({evidence.loads})" if evidence.loads else "load (none of ours)"
    return f"this kernel ({evidence.kernel}), boot, {load} and temperature only; 1 boot measured"
