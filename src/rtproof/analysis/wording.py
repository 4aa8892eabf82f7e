# SPDX-License-Identifier: Apache-2.0
"""The sentences of a verdict. Each says what was measured and how sure that is, and none claims more.

No run can tell the longest latency of a system, so no sentence here does, and none says that a system may be relied on.
"""

import math

from rtproof.analysis import honesty
from rtproof.analysis.evidence import Evidence, Worst
from rtproof.analysis.model import Requirement, State
from rtproof.analysis.phrases import chance, duration, error, percent, quantity, sure, value
from rtproof.analysis.simulated import NO_MACHINE
from rtproof.analysis.tested import Tested
from rtproof.analysis.virtual_time import WORDS

Sentences = tuple[tuple[str, str], ...]
ANYTIME = "valid at any stopping time"
NO_UPPER = "no upper limit of the rate can be given, as no time is left without an episode"
SHORT = 0.99
"""Share of the asked duration that a run of a fixed length covers: its first and last period may lie outside."""
OWN = ("VERDICT", "STATED", "LIMIT", "RATE", "NEEDED")
"""Labels of what is about one limit and its test; the other lines are about the run."""


def sentences(
    state: State, reasons: tuple[str, ...], requirement: Requirement | None, evidence: Evidence, tested: Tested | None
) -> Sentences:
    """Label and text, line by line; an empty label carries on the one before."""
    first, *others = reasons or ("no limit was given",)
    lines = [("VERDICT", f"{state.value} - {first}"), *(("", reason) for reason in others)]
    if requirement:
        lines += _labelled("LIMIT", (limit(requirement), episode(requirement), *_shared(requirement, tested)))
    if requirement and tested:
        lines += _labelled("RATE", _rates(state, requirement, evidence, tested))
        lines += _labelled("NEEDED", _needed(state, requirement, evidence, tested))
    lines += _missed(requirement, evidence)
    confidence = requirement.confidence if requirement else honesty.CONFIDENCE
    if evidence.worst and evidence.measured_ns > 0:
        lines += _labelled("MAX", _largest(state, evidence.worst, evidence, confidence))
    if evidence.measured_ns > 0:
        lines += _labelled("UNSEEN", honesty.unseen(evidence.measured_ns, confidence))
    lines += _labelled("FORECAST", evidence.forecast)
    if evidence.virtual_time:
        lines.append(("TIME", f"{WORDS} ({evidence.virtual_time})"))
    return (*lines, ("VALID FOR", _valid_for(evidence)))


def of_the_run(lines: Sentences) -> Sentences:
    """Those lines that are not about a limit and its test."""
    kept, label = [], ""
    for name, text in lines:
        label = name or label
        kept += [] if label in OWN else [(name, text)]
    return tuple(kept)


def under(lines: Sentences, *labels: str) -> tuple[str, ...]:
    """The texts of these labels, with those that carry them on."""
    found, last = [], ""
    for label, text in lines:
        last = label or last
        found += [text] if last in labels else []
    return tuple(found)


def _labelled(label: str, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def limit(requirement: Requirement) -> str:
    return (
        f"{value(requirement.limit_ns)}, at most once per {duration(requirement.at_most_ns)}, "
        f"confidence {percent(requirement.confidence)}"
    )


def episode(requirement: Requirement) -> str:
    """What is counted."""
    above, gap = value(requirement.limit_ns), duration(requirement.gap_ns)
    return f"an episode is all that exceeds {above}, on any thread, with no more than {gap} between"


def found(requirement: Requirement, evidence: Evidence) -> str:
    """What was seen, with its n."""
    threads = f"{quantity(evidence.threads, 'thread')}, any of which counts" if evidence.threads > 1 else "1 thread"
    return (
        f"{quantity(len(evidence.episodes), 'episode')} above {value(requirement.limit_ns)} in "
        f"{duration(evidence.measured_ns)} ({threads}; {quantity(evidence.obtained, 'activation')})"
    )


def proven(requirement: Requirement, evidence: Evidence, tested: Tested) -> tuple[str, ...]:
    """What was decided first stands, so that when it was matters where the run went on otherwise."""
    said = _less(tested)
    if tested.high * requirement.at_most_ns <= 1:
        return (f"{found(requirement, evidence)}{_lasting(tested)}: {said} ({_sure(tested)})", *_decided(tested))
    return _at_first("less", requirement, evidence, tested)


def refuted(requirement: Requirement, evidence: Evidence, tested: Tested) -> tuple[str, ...]:
    if tested.low * requirement.at_most_ns < 1:
        return _at_first("more", requirement, evidence, tested)
    said = f"more often than once per {duration(1 / tested.low, up=True)}"
    return (f"{found(requirement, evidence)}: {said} ({_sure(tested)})", *_decided(tested))


def _at_first(than: str, requirement: Requirement, evidence: Evidence, tested: Tested) -> tuple[str, ...]:
    """The run went on, and all of it would not have been enough for the decision."""
    begun = f"{quantity(tested.decision.episodes, 'episode')} above {value(requirement.limit_ns)} in the first"
    asked = duration(requirement.at_most_ns)
    return (
        f"{begun} {duration(tested.decision.at_ns or 0)}: {than} often than once per {asked} ({_sure(tested)})",
        f"the run went on: {found(requirement, evidence)}",
        *_contradicted(requirement, tested),
    )


def undecided(requirement: Requirement, evidence: Evidence, tested: Tested) -> str:
    bound = f"{_less(tested)} ({_sure(tested)})" if tested.high < math.inf else NO_UPPER
    return (
        f"{found(requirement, evidence)}{_lasting(tested)}: {bound}, "
        f"and at most once per {duration(requirement.at_most_ns)} was asked"
    )


def lost(evidence: Evidence) -> str:
    return f"{quantity(evidence.lost, 'activation')} left no value, and any of those may have exceeded the limit"


def length_was_fixed(evidence: Evidence) -> bool:
    """Whether the run ended where it was asked to end before it began."""
    asked = evidence.asked_duration_ns
    return evidence.ended_as_asked and (asked is None or evidence.measured_ns >= SHORT * asked)


def _decided(tested: Tested) -> tuple[str, ...]:
    """The time of the decision, unless the run ended with it."""
    at = tested.decision.at_ns
    if at is None or duration(at) == duration(tested.measured_ns):
        return ()
    return (f"decided after {duration(at, up=True)}, with {quantity(tested.decision.episodes, 'episode')} by then",)


def _contradicted(requirement: Requirement, tested: Tested) -> tuple[str, ...]:
    """Where all of the run would have decided otherwise."""
    at_most, refuted = requirement.at_most_ns, tested.decision.state is State.REFUTED
    if tested.high * at_most > 1 and tested.low * at_most < 1:
        return ()
    share = error(tested.alpha)
    return (
        f"all of it speaks {'for' if refuted else 'against'} the claim: either the rate "
        f"{'fell' if refuted else 'rose'} during the run, and what was decided is no longer so, or this is one of the "
        f"{share} of such decisions that are false",
    )


def _less(tested: Tested) -> str:
    """Nothing if there is no upper limit."""
    return f"less often than once per {duration(1 / tested.high)}" if tested.high < math.inf else ""


def _lasting(tested: Tested) -> str:
    """Time within an episode is none without."""
    return f", {duration(tested.inside_ns)} of it within" if tested.inside_ns else ""


def _sure(tested: Tested) -> str:
    return f"{sure(tested.alpha)}, {ANYTIME}"


def _shared(requirement: Requirement, tested: Tested | None) -> tuple[str, ...]:
    if tested is None or tested.limits == 1:
        return ()
    each = sure(tested.alpha)
    return (
        f"one of {tested.limits} limits: each is tested at {each}, so that all verdicts together are right with "
        f"{percent(requirement.confidence)}",
    )


def _rates(state: State, requirement: Requirement, evidence: Evidence, tested: Tested) -> tuple[str, ...]:
    """What the first sentence has not said."""
    if state is State.INVALID:
        return (f"{found(requirement, evidence)}; no limit of the rate holds for a run that is INVALID",)
    less = _less(tested)
    more = f"more often than once per {duration(1 / tested.low, up=True)}" if tested.low > 0 else ""
    said_already = {State.PROVEN: less, State.REFUTED: more, State.UNDECIDED: less}
    joined = ", ".join(text for text in (less, more) if text and text != said_already.get(state))
    each = f"; {honesty.EACH}" if less and more else ""
    return (f"{joined} ({_sure(tested)}{each})",) if joined else ()


def _needed(state: State, requirement: Requirement, evidence: Evidence, tested: Tested) -> tuple[str, ...]:
    if state is not State.UNDECIDED or evidence.lost:
        return ()
    more, with_one = (duration(ns, up=True) for ns in (tested.more_ns, tested.more_with_one_more_ns))
    none, one = chance(tested.chance), chance(tested.chance_with_one_more)
    limit_text, so_far = value(requirement.limit_ns), quantity(tested.episodes, "episode")
    needed = f"PROVEN in {more} more if nothing exceeds {limit_text}, in {with_one} if one more episode comes"
    if tested.inside_ns >= tested.measured_ns:
        return (needed,)
    return (
        needed,
        f"chance to finish by then, at a rate that fits the {so_far} so far: {none}, {one}",
    )


def _missed(requirement: Requirement | None, evidence: Evidence) -> list[tuple[str, str]]:
    lines = []
    if evidence.missed:
        text = f"{quantity(evidence.missed, 'activation')} of {evidence.expected:,} due never ran"
        lines.append(("MISSED", f"{text}; each counts in the schedule view with the time it was late"))
    if requirement and evidence.exceedances_observed is not None and (evidence.missed or evidence.exceedances_schedule):
        due = evidence.obtained + evidence.missed
        lines.append(
            (
                "EXCEEDED",
                f"{evidence.exceedances_observed:,} of {evidence.obtained:,} activations that ran (observed), "
                f"{evidence.exceedances_schedule:,} of {due:,} that were due (schedule)",
            )
        )
    return lines


def _largest(state: State, worst: Worst, evidence: Evidence, confidence: float) -> tuple[str, ...]:
    """A run that did not measure what was asked says nothing of a second one that does."""
    cpu = f" (cpu {worst.cpu})" if worst.cpu >= 0 else ""
    kept = quantity(evidence.obtained - evidence.lost, "activation")
    first = f"{value(worst.value_ns)} on thread {worst.thread}{cpu} at {worst.at}, the largest of {kept}"
    if evidence.lost:
        return (f"{first} with a value; {evidence.lost:,} more left none, so that nothing follows from it",)
    if state is State.INVALID:
        return (f"{first}; the run is INVALID, so that nothing follows from it",)
    fixed = length_was_fixed(evidence)
    again, *rest = honesty.largest(worst.value_ns, evidence.measured_ns, confidence, length_was_fixed=fixed)
    return (f"{first}; {again}", *rest)


def _valid_for(evidence: Evidence) -> str:
    if evidence.simulated:
        return NO_MACHINE
    load = f"load ({evidence.loads})" if evidence.loads else "load (none of ours)"
    return f"this kernel ({evidence.kernel}), boot, {load} and temperature only; 1 boot measured"
