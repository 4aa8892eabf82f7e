# SPDX-License-Identifier: Apache-2.0
"""Judge a plain limit, which is never to be exceeded: HELD, EXCEEDED, UNDECIDED or INVALID.

EXCEEDED: one activation was later than the limit, on any thread; or one that never ran, or a thread that stood still
until the end. It was seen, so it needs no confidence and no assumption.

HELD: nothing exceeded the limit in the measured time t. At 1 - alpha, the limit is then exceeded no more often than
-ln(alpha) / t, which is once per t / 3.00 at 95 %. If the rate is higher and steady, nothing is late during t with a
probability below alpha. So the statement holds whenever the run ends, because it is made only while nothing was late.
It counts the first exceedance of each bunch, so bunches do not break it.

UNDECIDED: something is missing that may have been late. Values were lost, the record was cut off, a thread
stood until the end, or the run was no longer than the limit.
"""

from dataclasses import replace

from rtproof.core.phrases import duration, limit_value, quantity, sure, value
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import State, Verdict
from rtproof.judge.evidence import Evidence
from rtproof.judge.planning import held_after_ns, shown_by_ns
from rtproof.judge.seen import NOTHING, exceeded_count, invalid_reasons, largest_latency, seen
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS

NO_RATE = "Virtual time shows no rate: the same run gives the same values again"


def shown_sentences(requirement: Requirement, measured_ns: int) -> tuple[str, ...]:
    """What HELD shows of the rate; and how long a run is that shows as much as was asked."""
    alpha = 1 - requirement.confidence
    rarest = duration(shown_by_ns(requirement, measured_ns))
    ruled_out = f"This rules out exceedances more often than once per {rarest} ({sure(alpha)})"
    shown = f"{ruled_out}, if conditions stay as they were; rarer ones may come"
    if held_after_ns(requirement) <= measured_ns:
        return (shown,)
    longer = duration(held_after_ns(requirement), up=True)
    return shown, f"To rule out more than one per {duration(requirement.shows_ns)}, measure {longer}"


def judge_plain_limit(requirement: Requirement, evidence: Evidence) -> Verdict:
    """The verdict on a plain limit."""
    state, reasons = _state(requirement, evidence)
    alpha = None if evidence.virtual_time else 1 - requirement.confidence
    late = evidence.times.late
    lines = verdict_sentences.verdict_sentences(state, reasons, requirement, evidence, None)
    verdict = replace(
        evidence.verdict(state, requirement, reasons, lines),
        exceedances_schedule=exceeded_count(requirement, evidence),
        alpha=alpha,
        decided_at_ns=int(late.begin_hi.min()) if state is State.EXCEEDED and late.size else None,
        late_seconds=evidence.times.late_seconds,
        deterministic=evidence.virtual_time is not None,
    )
    held = state is State.HELD and alpha is not None
    return with_shown_rate(verdict, requirement, evidence.measured_ns) if held else verdict


def with_shown_rate(verdict: Verdict, requirement: Requirement, measured_ns: int) -> Verdict:
    """A verdict of HELD with what a run of this length shows."""
    needed, rate = held_after_ns(requirement), SECOND_NS / shown_by_ns(requirement, measured_ns)
    return replace(verdict, shown_rate_per_s=rate, needed_ns=needed, more_ns=max(needed - measured_ns, 0))


def _state(requirement: Requirement, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    fact = seen(requirement, evidence)
    if invalid := invalid_reasons(requirement, evidence):
        return State.INVALID, invalid
    if exceeded_count(requirement, evidence) > 0:
        return State.EXCEEDED, (fact,)
    missing = _missing(requirement, evidence)
    if missing:
        return State.UNDECIDED, missing
    shown = (NO_RATE,) if evidence.virtual_time else shown_sentences(requirement, evidence.measured_ns)
    return State.HELD, (fact, *shown)


def _missing(requirement: Requirement, evidence: Evidence) -> tuple[str, ...]:
    """Why a run without an exceedance does not show that there was none; () if it does."""
    limit, fact = limit_value(requirement.limit_ns), seen(requirement, evidence)
    if evidence.lost:
        one = evidence.lost == 1
        lost = f"{quantity(evidence.lost, 'value')} {'was' if one else 'were'} lost"
        may = f"{'it' if one else 'any of them'} may have been above {limit}"
        return (f"{lost}, and {may}; {largest_latency(requirement, evidence)}",)
    stood = f"Thread {evidence.stalled_thread} still stood at the end, for {value(evidence.stalled_ns)} so far"
    short = f"The run lasted {duration(evidence.measured_ns)}, which is no longer than the limit of {limit}"
    table = (
        (evidence.measured_ns <= 0, (NOTHING,)),
        (evidence.cut_off, (f"{verdict_sentences.CUT_OFF}; until then, {fact}",)),
        (evidence.stalled_ns > 0, (stood, f"The run ended before it showed whether {limit} was exceeded")),
        (evidence.measured_ns <= requirement.limit_ns, (short,)),
    )
    return next((sentences for holds, sentences in table if holds), ())
