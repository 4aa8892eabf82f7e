# SPDX-License-Identifier: Apache-2.0
"""Judge whether a run meets a requirement, and return the ``Verdict``.

One late activation can refute a longest latency, and no run can prove one. So with --at-most the verdict judges a rate;
``plain_limit`` judges a limit alone. A run in virtual time gets a verdict without a probability. A limit that was
chosen after the data were seen is not tested, because such a choice decides the outcome.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rtproof.core.notebook import Sentences
from rtproof.core.phrases import duration, quantity
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import DECIDED, Analysis, Episode, State, Verdict
from rtproof.judge.claim import episode_course
from rtproof.judge.evidence import Evidence, LimitTest, figures_of_limit
from rtproof.judge.plain_limit import judge_plain_limit
from rtproof.judge.seen import invalid_reasons, seen
from rtproof.judge.verdict_sentences import NO_LIMIT, NO_PROBABILITY
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import EndReason
from rtproof.record.requirement import Requirement
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Severity

# The verdict on a run in virtual time has no confidence, no probability and no interval.
#
# The input determines such a run. The same input gives the same bytes again. The run is one observation and not a
# sample of other runs. So the verdict states what was seen, as a fact about this run:
#
# * REFUTED if the limit was exceeded more often or for longer than was asked.
# * UNDECIDED if it was not exceeded, or no more often than was asked. It is never PROVEN.


LEFT_OUT = ("UNSEEN", "FORECAST")
"""Labels of the sentences about other runs. A verdict in virtual time leaves them out."""


def judge_in_virtual_time(requirement: Requirement | None, evidence: Evidence) -> Verdict:
    """The verdict on a run in virtual time."""
    state, reasons = _state_in_virtual_time(requirement, evidence)
    lines = verdict_sentences.verdict_sentences(state, reasons, requirement, evidence, None)
    verdict = evidence.verdict(state, requirement, reasons, verdict_sentences.lines_without(lines, LEFT_OUT))
    return replace(verdict, deterministic=True)


def _state_in_virtual_time(requirement: Requirement | None, evidence: Evidence) -> tuple[State, tuple[str, ...]]:
    early = _without_test_of_rate(requirement, evidence)
    if early or requirement is None:
        return early or (State.NOT_ASKED, ())
    episodes = evidence.episodes
    fact = seen(requirement, evidence, f" ({quantity(len(episodes), 'episode')})" if episodes else "")
    if evidence.lost and not episodes:
        return State.UNDECIDED, (fact, verdict_sentences.lost_values_sentence(evidence), NO_PROBABILITY)
    longest_ns = max(map(_surely_ns, episodes), default=0)
    asked = f"at most once per {duration(requirement.at_most_ns)} was asked"
    if longest_ns > requirement.longest_ns:
        most = f"at most {duration(requirement.longest_ns)} was asked"
        return State.REFUTED, (fact, f"One episode lasted at least {duration(longest_ns)}; {most}", NO_PROBABILITY)
    if len(episodes) * requirement.at_most_ns > evidence.measured_ns:
        return State.REFUTED, (fact, f"This is more often than was asked: {asked}", NO_PROBABILITY)
    if episodes:
        return State.UNDECIDED, (fact, f"This is no more often than was asked: {asked}", NO_PROBABILITY)
    return State.UNDECIDED, (fact, NO_PROBABILITY)


def _without_test_of_rate(requirement: Requirement | None, evidence: Evidence) -> tuple[State, tuple[str, ...]] | None:
    """The state and the reasons of a run that is INVALID, has no limit, or measured nothing; None of any other."""
    fact = seen(requirement, evidence)
    if invalid := invalid_reasons(requirement, evidence):
        return State.INVALID, invalid
    if requirement is None:
        return State.NOT_ASKED, (fact, NO_LIMIT)
    return None if evidence.measured_ns > 0 else (State.UNDECIDED, (fact,))


def _surely_ns(episode: Episode) -> int:
    """The shortest time that the episode can have lasted, by its first and last second."""
    return max(episode.last_second - episode.first_second - 1, 0) * SECOND_NS


STATE_ORDER = (
    *(State.INVALID, State.EXCEEDED, State.REFUTED),
    *(State.UNDECIDED, State.HELD, State.PROVEN, State.NOT_ASKED),
)
"""The order in which states decide. Of several verdicts, the one whose state comes first decides."""


def judge_requirement(requirement: Requirement | None, evidence: Evidence, limits: int = 1) -> Verdict:
    """Judge a run by one requirement; return the verdict with its reasons and its sentences.

    limits: how many limits were fixed before the run, this one included. A plain limit does not share its error.
    """
    if requirement and requirement.plain:
        return judge_plain_limit(requirement, evidence)
    if evidence.virtual_time:
        return judge_in_virtual_time(requirement, evidence)
    found = verdict_tested_with(requirement, evidence, limits) if requirement and evidence.measured_ns > 0 else None
    state, reasons = _state_of_limit(requirement, found, evidence)
    lines = verdict_sentences.verdict_sentences(state, reasons, requirement, evidence, found)
    verdict = evidence.verdict(state, requirement, reasons, lines)
    return _with_figures(verdict, found, evidence) if found else verdict


def worst_state(states: Iterable[State]) -> State:
    """The state that decides; NOT ASKED if there is none."""
    return min(states, key=STATE_ORDER.index, default=State.NOT_ASKED)


def deciding_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that decides for the whole run. The run is PROVEN only if every limit is.

    Of several with one state it is the one whose limit was exceeded: a screen with room for one must not hide it.
    """
    return min(verdicts, key=lambda verdict: (STATE_ORDER.index(verdict.state), not verdict.exceeded))


def verdict_tested_with(requirement: Requirement, evidence: Evidence, limits: int) -> LimitTest:
    """Test a requirement and return all figures of the test.

    Lost values may have been late. So the rate has no upper bound if any value was lost, or the record was cut off.
    """
    found = episode_course(evidence.times.late, evidence.measured_ns, requirement.gap_ns)
    return figures_of_limit(requirement, found, limits, 0 if evidence.lost or evidence.cut_off else None)


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


def _state_of_limit(
    requirement: Requirement | None, tested: LimitTest | None, evidence: Evidence
) -> tuple[State, tuple[str, ...]]:
    early = _without_test_of_rate(requirement, evidence)
    if early or requirement is None or tested is None:
        return early or (State.NOT_ASKED, ())
    return tested.decision.state, verdict_sentences.reasons_of_test(requirement, evidence, tested)


# A limit that was chosen after the data were seen: such a choice decides the outcome, so a test means nothing.
#
# One figure still holds, rate_high_fixed_per_s. It is about the rank of the limit among the run's episodes, as if this
# rank and the length of the run had been chosen beforehand (order statistics). It takes the episodes as exchangeable.


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
    """The analysis with a sentence beside each decision on a limit that only the user says was fixed before the run.

    fixed: the limits of which the run itself shows that they were fixed before. They get no such sentence.
    """
    if not _chosen_now(analysis, fixed):
        return analysis
    doubt = Doubt(
        "limit-stated", Severity.WARNING, "only the user says that the limit came first", LIMIT_REMEDY, LIMIT_STATED
    )
    verdicts = tuple(_stated(each) if _is_chosen_now(each, fixed) else each for each in analysis.verdicts)
    return replace(
        analysis, doubts=worst_first((*analysis.doubts, doubt)), verdict=deciding_verdict(verdicts), verdicts=verdicts
    )


def _stated(verdict: Verdict) -> Verdict:
    """The verdict with the user's statement directly after its reasons."""
    labelled = [at for at, (label, _) in enumerate(verdict.sentences) if label]
    at = labelled[1] if len(labelled) > 1 else len(verdict.sentences)
    sentences = (*verdict.sentences[:at], ("STATED", LIMIT_STATED), *verdict.sentences[at:])
    return replace(verdict, reasons=(*verdict.reasons, LIMIT_STATED), sentences=sentences)


def chosen_after_the_data(analysis: Analysis, fixed: Sequence[Requirement] = ()) -> Analysis:
    """The analysis without a decision on requirements that were not fixed before the run.

    fixed: the requirements that were. Of the others' tests only rate_high_fixed_per_s stays. Their state becomes
    UNDECIDED, unless the run is INVALID. A verdict in virtual time stays, because it tests nothing: it states what was
    seen, whenever the limit was chosen.
    """
    if all(verdict.deterministic for verdict in analysis.verdicts) or not _chosen_now(analysis, fixed):
        return analysis
    doubt = Doubt(
        "limit-after-data",
        Severity.WARNING,
        "the limit was chosen after the data",
        LIMIT_REMEDY,
        AFTER_THE_DATA_DETAIL,
    )
    verdicts = tuple(_without_test(each) if _is_chosen_now(each, fixed) else each for each in analysis.verdicts)
    stand = tuple(each for each in analysis.doubts if each.code != NOT_CHECKED_CODE)
    return replace(analysis, doubts=worst_first((*stand, doubt)), verdict=deciding_verdict(verdicts), verdicts=verdicts)


def _chosen_now(analysis: Analysis, fixed: Sequence[Requirement]) -> bool:
    return any(_is_chosen_now(verdict, fixed) for verdict in analysis.verdicts)


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
    return Verdict(
        state=state,
        requirement=verdict.requirement,
        reasons=reasons,
        sentences=_sentences_without_test(state, reasons, verdict),
        episodes=verdict.episodes,
        measured_ns=verdict.measured_ns,
        exceedances_observed=verdict.exceedances_observed,
        exceedances_schedule=verdict.exceedances_schedule,
        rate_high_fixed_per_s=verdict.rate_high_fixed_per_s,
        chosen_after=True,
        untimed=verdict.untimed,
        above=verdict.above,
    )


def _sentences_without_test(state: State, reasons: tuple[str, ...], verdict: Verdict) -> Sentences:
    lines = verdict_sentences.verdict_lines(state, reasons)
    if verdict.requirement:
        lines.append(("LIMIT", f"{verdict_sentences.limit_sentence(verdict.requirement)}; {AFTER_THE_DATA_LABEL}"))
    above = verdict_sentences.texts_under_labels(verdict.sentences, "ABOVE")
    lines += [("" if number else "ABOVE", text) for number, text in enumerate(above)]
    return (*lines, *verdict_sentences.sentences_of_run(verdict.sentences))


def ended_when_decided(analysis: Analysis) -> Analysis:
    """The analysis of a run that was to end when decided, without the doubt ``ended-early`` if it is decided.

    Such a run was stopped on purpose.
    """
    end = analysis.record.end
    stopped = end is not None and end.reason is EndReason.INTERRUPTED
    if not stopped or analysis.verdict.state not in DECIDED:
        return analysis
    return replace(analysis, doubts=tuple(doubt for doubt in analysis.doubts if doubt.code != "ended-early"))
