# SPDX-License-Identifier: Apache-2.0
"""Judge whether a run meets a requirement, and return the ``Verdict``.

One late activation can refute a longest latency, and no run can prove one. So with --at-most the verdict judges a rate.
A limit alone is HELD as long as nothing exceeds it. A run in virtual time gets a verdict without a probability. A limit
with a rate that was chosen after the data were seen is not tested, because such a choice decides the outcome.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rtproof.core.phrases import duration, limit_value, quantity, sure, value
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import DECIDED, Analysis, State, Verdict
from rtproof.judge.claim import episode_course
from rtproof.judge.evidence import Evidence, LimitTest, figures_of_limit
from rtproof.judge.planning import held_after_ns, shown_by_ns
from rtproof.judge.seen import NOTHING, exceeded_count, invalid_reasons, largest_latency, seen
from rtproof.judge.verdict_sentences import NO_LIMIT, NO_PROBABILITY
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import EndReason
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Severity

STATE_ORDER = (
    *(State.INVALID, State.EXCEEDED, State.REFUTED),
    *(State.UNDECIDED, State.HELD, State.PROVEN, State.NOT_ASKED),
)
"""The order in which states decide. Of several verdicts, the one whose state comes first decides."""
LEFT_OUT = ("UNSEEN", "FORECAST")
"""Labels of the sentences about other runs. A verdict in virtual time leaves them out."""
NO_RATE = "Virtual time shows no rate: the same run gives the same values again"


def judge_requirement(requirement: Requirement | None, evidence: Evidence, limits: int = 1) -> Verdict:
    """Judge a run by one requirement; return the verdict with its reasons and its sentences.

    limits: how many limits were fixed before the run, this one included. A plain limit does not share its error.
    """
    virtual, found = bool(evidence.virtual_time), None
    if requirement and not requirement.plain and not virtual and evidence.measured_ns > 0:
        # A lost value may have been late, so nothing is PROVEN then, and the rate has no upper bound.
        course = episode_course(evidence.times.late, evidence.measured_ns, requirement.gap_ns)
        found = figures_of_limit(requirement, course, limits, 0 if evidence.lost or evidence.cut_off else None)
    state, reasons = _state(requirement, evidence, found)
    lines = verdict_sentences.verdict_sentences(state, reasons, requirement, evidence, found)
    verdict = Verdict(
        state=state,
        requirement=requirement,
        reasons=reasons,
        sentences=verdict_sentences.lines_without(lines, LEFT_OUT) if virtual else lines,
        episodes=evidence.episodes,
        measured_ns=evidence.measured_ns,
        exceedances_observed=evidence.exceedances_observed,
        exceedances_schedule=evidence.exceedances_schedule,
        largest_ns=evidence.largest_ns,
        deterministic=virtual,
    )
    if requirement and requirement.plain:
        return _with_figures_of_plain_limit(verdict, requirement, evidence)
    return _with_figures(verdict, found, evidence) if found else verdict


def worst_state(states: Iterable[State]) -> State:
    """The state that decides; NOT ASKED if there is none."""
    return min(states, key=STATE_ORDER.index, default=State.NOT_ASKED)


def deciding_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that decides for the whole run. The run is PROVEN only if every limit is.

    Of several with one state it is the one whose limit was exceeded: a screen with room for one must not hide it.
    """
    return min(verdicts, key=lambda verdict: (STATE_ORDER.index(verdict.state), not verdict.exceeded))


Found = tuple[State, tuple[str, ...]]
"""A state and its reasons."""


def _state(requirement: Requirement | None, evidence: Evidence, tested: LimitTest | None) -> Found:
    fact = seen(requirement, evidence)
    if invalid := invalid_reasons(requirement, evidence):
        return State.INVALID, invalid
    if requirement is None:
        return State.NOT_ASKED, (fact, NO_LIMIT)
    if requirement.plain:
        return _state_of_plain_limit(requirement, evidence, fact)
    if evidence.measured_ns <= 0:
        return State.UNDECIDED, (fact,)
    if tested is None:
        return _state_in_virtual_time(requirement, evidence)
    return tested.decision.state, verdict_sentences.reasons_of_test(requirement, evidence, tested)


def _state_in_virtual_time(requirement: Requirement, evidence: Evidence) -> Found:
    """The state of a limit with a rate in virtual time, which has no confidence, no probability and no interval.

    The input determines such a run. So it is one observation and not a sample of other runs, and the verdict states
    what was seen. It is never PROVEN.
    """
    episodes, alone = len(evidence.episodes), NO_PROBABILITY
    fact = seen(requirement, evidence, f" ({quantity(episodes, 'episode')})" if episodes else "")
    longest_ns = max((each.last_second - each.first_second - 1 for each in evidence.episodes), default=0) * SECOND_NS
    asked = f"at most once per {duration(requirement.at_most_ns)} was asked"
    if evidence.lost and not episodes:
        return State.UNDECIDED, (fact, verdict_sentences.lost_values_sentence(evidence), alone)
    if longest_ns > requirement.longest_ns:
        most = f"at most {duration(requirement.longest_ns)} was asked"
        return State.REFUTED, (fact, f"One episode lasted at least {duration(longest_ns)}; {most}", alone)
    if episodes * requirement.at_most_ns > evidence.measured_ns:
        return State.REFUTED, (fact, f"This is more often than was asked: {asked}", alone)
    why = (f"This is no more often than was asked: {asked}",) if episodes else ()
    return State.UNDECIDED, (fact, *why, alone)


# A plain limit, which is never to be exceeded.
#
# EXCEEDED: one activation was later than the limit, on any thread; or one that never ran, or a thread that stood still
# until the end. It was seen, so it needs no confidence and no assumption.
#
# HELD: nothing exceeded the limit in the measured time t. At 1 - alpha, the limit is then exceeded no more often than
# -ln(alpha) / t, which is once per t / 3.00 at 95 %. If the rate is higher and steady, nothing is late during t with a
# probability below alpha. This holds whenever the run ends, and of the first exceedances of bunches.


def _state_of_plain_limit(requirement: Requirement, evidence: Evidence, fact: str) -> Found:
    """UNDECIDED: something is missing that may have been late, or the run was no longer than the limit."""
    if exceeded_count(requirement, evidence) > 0:
        return State.EXCEEDED, (fact,)
    limit, lost = limit_value(requirement.limit_ns), quantity(evidence.lost, "value")
    one = evidence.lost == 1
    lost += f" {'was' if one else 'were'} lost, and {'it' if one else 'any of them'} may have been above {limit}"
    stood = f"Thread {evidence.stalled_thread} still stood at the end, for {value(evidence.stalled_ns)} so far"
    short = f"The run lasted {duration(evidence.measured_ns)}, which is no longer than the limit of {limit}"
    table = (
        (evidence.lost, (f"{lost}; {largest_latency(requirement, evidence)}",)),
        (evidence.measured_ns <= 0, (NOTHING,)),
        (evidence.cut_off, (f"{verdict_sentences.CUT_OFF}; until then, {fact}",)),
        (evidence.stalled_ns > 0, (stood, f"The run ended before it showed whether {limit} was exceeded")),
        (evidence.measured_ns <= requirement.limit_ns, (short,)),
    )
    if missing := next((sentences for holds, sentences in table if holds), ()):
        return State.UNDECIDED, missing
    shown = (NO_RATE,) if evidence.virtual_time else shown_sentences(requirement, evidence.measured_ns)
    return State.HELD, (fact, *shown)


def shown_sentences(requirement: Requirement, measured_ns: int) -> tuple[str, ...]:
    """What HELD shows of the rate; and how long a run is that shows as much as was asked."""
    rarest, alpha = duration(shown_by_ns(requirement, measured_ns)), 1 - requirement.confidence
    ruled_out = f"This rules out exceedances more often than once per {rarest} ({sure(alpha)})"
    shown = f"{ruled_out}, if conditions stay as they were; rarer ones may come"
    if held_after_ns(requirement) <= measured_ns:
        return (shown,)
    longer = duration(held_after_ns(requirement), up=True)
    return shown, f"To rule out more than one per {duration(requirement.shows_ns)}, measure {longer}"


def with_shown_rate(verdict: Verdict, requirement: Requirement, measured_ns: int) -> Verdict:
    """A verdict of HELD with what a run of this length shows."""
    needed, rate = held_after_ns(requirement), SECOND_NS / shown_by_ns(requirement, measured_ns)
    return replace(verdict, shown_rate_per_s=rate, needed_ns=needed, more_ns=max(needed - measured_ns, 0))


def _with_figures_of_plain_limit(verdict: Verdict, requirement: Requirement, evidence: Evidence) -> Verdict:
    late = evidence.times.late
    verdict = replace(
        verdict,
        exceedances_schedule=exceeded_count(requirement, evidence),
        alpha=None if evidence.virtual_time else 1 - requirement.confidence,
        decided_at_ns=int(late.begin_hi.min()) if verdict.state is State.EXCEEDED and late.size else None,
        late_seconds=evidence.times.late_seconds,
    )
    held = verdict.state is State.HELD and not evidence.virtual_time
    return with_shown_rate(verdict, requirement, evidence.measured_ns) if held else verdict


# A limit with a rate.

PROOF_KEYS = (
    "needed_ns",
    "more_ns",
    "needed_with_one_more_ns",
    "more_with_one_more_ns",
    "chance",
    "chance_with_one_more",
)
"""The figures that tell how much longer a proof takes, as ``Verdict`` and ``LimitTest`` call them."""


def _with_figures(verdict: Verdict, found: LimitTest, evidence: Evidence) -> Verdict:
    """The verdict with the figures of its test. An INVALID run has only those that say what was seen."""
    decision = found.decision
    seen_figures = replace(
        verdict,
        alpha=found.alpha,
        live_ns=found.live_ns,
        longest_seen_ns=found.course.longest_ns,
        late_seconds=evidence.times.late_seconds,
    )
    if verdict.state is State.INVALID:
        return seen_figures
    proof: dict[str, Any] = {key: getattr(found, key) for key in PROOF_KEYS}
    return replace(
        seen_figures,
        tau=found.tau,
        log_e_proven=found.log_e_proven,
        log_e_refuted=found.log_e_refuted,
        rate_low_per_s=found.low * SECOND_NS,
        rate_high_per_s=_known(found.high),
        rate_high_fixed_per_s=_known(found.high_fixed),
        decided_at_ns=decision.at_ns,
        decided_with=None if decision.at_ns is None else decision.episodes,
        kind=decision.kind.value if decision.kind else None,
        proven_at_ns=decision.proven_at_ns,
        proven_with=decision.proven_with,
        bunches_bound=found.bunches_bound if found.provable else None,
        bunched=found.bunched,
        withheld=decision.withheld,
        refuted_at_latest_ns=found.refuted_at_latest_ns if decision.state is State.UNDECIDED else None,
        **(proof if found.provable and not decision.withheld else {}),
    )


def _known(rate_per_ns: float) -> float | None:
    """The rate per second; None if it is infinite, because no time was quiet or values were lost."""
    return rate_per_ns * SECOND_NS if rate_per_ns < math.inf else None


# A limit that was chosen after the data were seen: such a choice decides the outcome, so a test means nothing.
#
# One figure still holds, rate_high_fixed_per_s: it is about the rank of the limit among exchangeable episodes.

AFTER_THE_DATA_LABEL = "chosen after the fact"
AFTER_THE_DATA = "the limit was chosen after the data, so a verdict on it would have no confidence"
AFTER_THE_DATA_DETAIL = (
    "a verdict on it would have no confidence; if it was fixed before this run, state that with rtproof judge "
    "--fixed-beforehand"
)
NOT_CHECKED_CODE = "not-checked"
"""The doubt about what a decision on a histogram of another tool does not rest on. Without a decision it falls away."""


LIMIT_STATED = (
    "the user states that this limit was fixed before the run (--fixed-beforehand); the run does not show it, and "
    "the confidence means nothing if it was not"
)
LIMIT_REMEDY = "give it to rtproof run"


def stated_by_the_user(analysis: Analysis, fixed: Sequence[Requirement] = ()) -> Analysis:
    """With a sentence beside each decision on a limit that the run does not show to be fixed before (``fixed``)."""
    if not any(_is_chosen_now(verdict, fixed) for verdict in analysis.verdicts):
        return analysis
    what = "only the user says that the limit came first"
    doubt = Doubt("limit-stated", Severity.WARNING, what, LIMIT_REMEDY, LIMIT_STATED)
    verdicts = []
    for verdict in analysis.verdicts:
        if _is_chosen_now(verdict, fixed):  # The statement stands directly after the reasons.
            lines, labelled = verdict.sentences, [at for at, (label, _) in enumerate(verdict.sentences) if label]
            at = labelled[1] if len(labelled) > 1 else len(lines)
            sentences = (*lines[:at], ("STATED", LIMIT_STATED), *lines[at:])
            verdicts.append(replace(verdict, reasons=(*verdict.reasons, LIMIT_STATED), sentences=sentences))
        else:
            verdicts.append(verdict)
    return _with_verdicts(analysis, verdicts, (*analysis.doubts, doubt))


def _with_verdicts(analysis: Analysis, verdicts: Sequence[Verdict], doubts: Sequence[Doubt]) -> Analysis:
    verdict = deciding_verdict(verdicts)
    return replace(analysis, doubts=worst_first(doubts), verdict=verdict, verdicts=tuple(verdicts))


def chosen_after_the_data(analysis: Analysis, fixed: Sequence[Requirement] = ()) -> Analysis:
    """The analysis without a decision on requirements that were not fixed before the run.

    fixed: the requirements that were. Of the others' tests only rate_high_fixed_per_s stays. Their state becomes
    UNDECIDED, unless the run is INVALID. A verdict in virtual time stays, because it tests nothing: it states what was
    seen, whenever the limit was chosen.
    """
    chosen = [verdict for verdict in analysis.verdicts if _is_chosen_now(verdict, fixed)]
    if not chosen or all(verdict.deterministic for verdict in analysis.verdicts):
        return analysis
    what = "the limit was chosen after the data"
    doubt = Doubt("limit-after-data", Severity.WARNING, what, LIMIT_REMEDY, AFTER_THE_DATA_DETAIL)
    verdicts = [_without_test(each) if _is_chosen_now(each, fixed) else each for each in analysis.verdicts]
    stand = [each for each in analysis.doubts if each.code != NOT_CHECKED_CODE]
    return _with_verdicts(analysis, verdicts, (*stand, doubt))


def _is_chosen_now(verdict: Verdict, fixed: Sequence[Requirement]) -> bool:
    """Whether the verdict needs a limit that was fixed before the run, and its limit was not.

    A plain limit needs none. What was seen stays true. The rate that HELD shows is true of the largest latency, too:
    a run of a fixed length exceeds each level whose rate is higher with the probability 1 - alpha.
    """
    return verdict.requirement not in fixed and not verdict.plain


def _without_test(verdict: Verdict) -> Verdict:
    state = State.INVALID if verdict.state is State.INVALID else State.UNDECIDED
    stands = verdict.state is State.INVALID or (verdict.untimed and verdict.state is State.UNDECIDED)
    seen_of_it = verdict.reasons if stands else verdict.reasons[:1]
    reasons = (*seen_of_it, AFTER_THE_DATA)
    lines = verdict_sentences.verdict_lines(state, reasons)
    if verdict.requirement:
        lines.append(("LIMIT", f"{verdict_sentences.limit_sentence(verdict.requirement)}; {AFTER_THE_DATA_LABEL}"))
    above = verdict_sentences.texts_under_labels(verdict.sentences, "ABOVE")
    lines += verdict_sentences.lines_under("ABOVE", above)
    untested = Verdict(
        state,
        verdict.requirement,
        reasons,
        (*lines, *verdict_sentences.sentences_of_run(verdict.sentences)),
        verdict.episodes,
        verdict.measured_ns,
        verdict.exceedances_observed,
        verdict.exceedances_schedule,
        chosen_after=True,
    )
    kept = {name: getattr(verdict, name) for name in ("rate_high_fixed_per_s", "untimed", "above")}
    return replace(untested, **kept)


def ended_when_decided(analysis: Analysis) -> Analysis:
    """Without the doubt ``ended-early``, if a run that was to end when decided is decided."""
    end = analysis.record.end
    stopped = end is not None and end.reason is EndReason.INTERRUPTED
    if not stopped or analysis.verdict.state not in DECIDED:
        return analysis
    return replace(analysis, doubts=tuple(doubt for doubt in analysis.doubts if doubt.code != "ended-early"))
