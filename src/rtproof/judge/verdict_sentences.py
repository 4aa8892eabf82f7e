# SPDX-License-Identifier: Apache-2.0
"""The sentences of a verdict. Each says what was measured and how sure that is.

No run can show the longest latency of a system. So no sentence names one, and none says that a system is reliable.
"""

import math
from collections.abc import Collection, Iterable

from rtproof import statistics
from rtproof.core.notebook import Sentences
from rtproof.core.phrases import capitalised, chance, duration, error, limit_value, percent, quantity, sure, value
from rtproof.judge import planning
from rtproof.judge.analysis_model import State, Verdict
from rtproof.judge.claim import LEAST_EPISODES, RefutingRule
from rtproof.judge.evidence import Evidence, LimitTest
from rtproof.judge.seen import episodes_phrase, seen
from rtproof.record.requirement import NO_LONGEST, Requirement
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.recorded_facts import NO_MACHINE, VIRTUAL_TIME_SENTENCE

FIXED = "fixed-time"
FOR_EACH_LENGTH = "each bound holds by itself at this confidence, both together do not"
CUT_OFF = "The record was cut off, so its last values are missing"
NO_LIMIT = "No limit was given to judge it by"
USUAL = Requirement(0)
"""Stands where a verdict has no limit."""
NO_PROBABILITY = (
    "in virtual time nothing is PROVEN and nothing has a probability: the same run gives the same bytes again, and "
    "another start, load or length is another run"
)
ANYTIME = "valid at any stopping time"
AGAIN = "an equally long run under the same conditions exceeds this with a probability of at most 50 %"
"""Of two equally long runs whose values are exchangeable, each has the larger maximum with the same probability."""
UNLIKELY = 0.1
"""Below this chance of PROVEN a sentence says that PROVEN is unlikely."""
WHOLE_RUN_SHARE = 0.99
"""A run of a fixed length covers this share of the asked duration. Its first and last period may lie outside."""
LABELS_OF_LIMIT = ("VERDICT", "STATED", "LIMIT", "RATE", "ABOVE")
"""The labels of lines about one limit and its test. All other lines are about the run."""


def verdict_sentences(
    state: State,
    reasons: tuple[str, ...],
    requirement: Requirement | None,
    evidence: Evidence,
    tested: LimitTest | None,
) -> Sentences:
    """Label and text of each line of a verdict. An empty label continues the label before.

    tested: the test of the requirement; None without one, in virtual time, or if nothing was measured.
    """
    lines = verdict_lines(state, reasons)
    plain = requirement is not None and requirement.plain
    if requirement:
        lines += lines_under("LIMIT", _limit_lines(requirement, evidence, tested))
    if requirement and tested:
        lines += lines_under("RATE", _rates(state, tested))
    lines += missed_lines(requirement, evidence)
    if evidence.measured_ns > 0 and not (plain and state is State.EXCEEDED):
        lines += lines_under("MAX", _largest(state, requirement, evidence))
    if evidence.measured_ns > 0 and not plain and state is not State.INVALID:
        confidence = requirement.confidence if requirement else planning.USUAL_CONFIDENCE
        lines.append(("UNSEEN", unseen_event_sentence(evidence.measured_ns, confidence)))
    lines += lines_under("FORECAST", () if plain else evidence.forecast)
    if evidence.virtual_time:
        lines.append(("TIME", f"{VIRTUAL_TIME_SENTENCE} ({evidence.virtual_time})"))
    return (*lines, ("VALID FOR", conditions_sentence(evidence)))


def _limit_lines(requirement: Requirement, evidence: Evidence, tested: LimitTest | None) -> tuple[str, ...]:
    if requirement.plain:
        return (limit_sentence(requirement),)
    of = requested_limit_sentence(requirement) if evidence.virtual_time else limit_sentence(requirement)
    lines = [of, episode_sentence(requirement)]
    if tested and tested.limits > 1:
        lines.append(shared_error_sentence(tested.limits, tested.alpha, requirement))
    if requirement.longest_ns >= NO_LONGEST:
        # An older rtproof fixed the claim before the run by another rule than today.
        lines.append(
            f"fixed without a longest length of an episode, so a gap of {duration(requirement.gap_ns)} can hide a storm"
        )
    return tuple(lines)


def verdict_lines(state: State, reasons: tuple[str, ...]) -> list[tuple[str, str]]:
    """The first lines of each verdict: its state and its reasons."""
    first, *others = reasons or (NO_LIMIT,)
    return lines_under("VERDICT", (f"{state.word} - {first}", *others))


def sentences_of_run(lines: Sentences) -> Sentences:
    """The lines that are about the run, without those about a limit and its test."""
    return lines_without(lines, LABELS_OF_LIMIT)


def lines_without(lines: Sentences, labels: Collection[str]) -> Sentences:
    """The lines of all other labels, with those that continue them."""
    kept, current = [], ""
    for label, text in lines:
        current = label or current
        kept += [] if current in labels else [(label, text)]
    return tuple(kept)


def texts_under_labels(lines: Sentences, *labels: str) -> tuple[str, ...]:
    """The texts of these labels, including the lines that continue them."""
    others = {label for label, _ in lines if label} - {*labels}
    return tuple(text for _, text in lines_without(lines, others))


def lines_under(label: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """A line for each text; the label stands at the first one."""
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def limit_sentence(requirement: Requirement) -> str:
    """The claim with its confidence. A plain limit claims nothing that needs one."""
    if requirement.plain:
        return requested_limit_sentence(requirement)
    return f"{requested_limit_sentence(requirement)}, confidence {percent(requirement.confidence)}"


def requested_limit_sentence(requirement: Requirement) -> str:
    """The claim without its confidence. A verdict in virtual time has no confidence."""
    if requirement.plain:
        return f"{limit_value(requirement.limit_ns)}, never exceeded"
    limit = limit_value(requirement.limit_ns)
    return f"{limit}, at most once per {duration(requirement.at_most_ns)}{longest(requirement)}"


def longest(requirement: Requirement) -> str:
    """The end of a claim: how long an episode may last, and the size of bunches."""
    none = (
        "" if requirement.longest_ns >= NO_LONGEST else f", no episode longer than {duration(requirement.longest_ns)}"
    )
    bunches = f", in bunches of {_number(requirement.bunches)} on average" if requirement.bunches > 1 else ""
    return f"{none}{bunches}"


def episode_sentence(requirement: Requirement) -> str:
    """What counts as one episode."""
    above, gap = limit_value(requirement.limit_ns), duration(requirement.gap_ns)
    return f"latencies above {above} that are no more than {gap} apart, on any thread, count as one episode"


def assumption_sentence(state: State, alpha: float, bunches: float) -> str:
    """How often PROVEN or REFUTED by rate is wrong, and the assumption without which it means nothing."""
    wrong = "keeps" if state is State.REFUTED else "breaks"
    who = "episodes come" if bunches == 1 else f"bunches of {_number(bunches)} episodes on average come"
    return (
        f"A system that {wrong} this claim is called {state.value} in at most {error(alpha)} of runs, "
        f"if {who} independently and at a steady rate"
    )


def assumption_of_verdict(verdict: Verdict) -> str | None:
    """The assumption of a verdict as a sentence; None if the verdict needs no assumption."""
    by_bet = verdict.state is State.PROVEN or (
        verdict.state is State.REFUTED and verdict.kind == RefutingRule.RATE.value
    )
    if verdict.requirement is None or verdict.alpha is None or not by_bet:
        return None
    bunches = verdict.requirement.bunches if verdict.state is State.PROVEN else 1.0
    return assumption_sentence(verdict.state, verdict.alpha, bunches)


def own_alpha(verdict: Verdict, requirement: Requirement) -> float:
    """The probability of error of this limit's own test."""
    return 1 - requirement.confidence if verdict.alpha is None else verdict.alpha


def shares_error(verdict: Verdict, requirement: Requirement) -> bool:
    """Whether several limits share the probability of error, and this one has only a part of it."""
    return own_alpha(verdict, requirement) < 0.999 * (1 - requirement.confidence)


def reasons_of_test(requirement: Requirement, evidence: Evidence, tested: LimitTest) -> tuple[str, ...]:
    """The reasons of a tested limit: first what was seen, then what it shows, or what is missing for a decision."""
    if tested.decision.state is State.PROVEN:
        return _proven_reasons(requirement, evidence, tested)
    if tested.decision.state is State.REFUTED:
        return _refuted_reasons(requirement, evidence, tested)
    return (seen(requirement, evidence, episodes_phrase(tested)), *_undecided_reasons(requirement, evidence, tested))


def _proven_reasons(requirement: Requirement, evidence: Evidence, tested: LimitTest) -> tuple[str, ...]:
    """If the whole run would no longer prove the limit, the sentences speak of the first part of the run."""
    shown = _at_first(requirement, tested)
    if tested.high * requirement.at_most_ns <= 1:
        rarest = f"less often than once per {duration(1 / tested.high)} ({sure(tested.alpha)})"
        asked = f"once per {duration(requirement.at_most_ns)} was asked{_shorter(requirement, tested)}"
        shown = f"Episodes above {limit_value(requirement.limit_ns)} come {rarest}; {asked}"
    return (
        seen(requirement, evidence, episodes_phrase(tested)),
        shown,
        assumption_sentence(State.PROVEN, tested.alpha, requirement.bunches),
        _independent(tested),
    )


def _refuted_reasons(requirement: Requirement, evidence: Evidence, tested: LimitTest) -> tuple[str, ...]:
    reasons = [seen(requirement, evidence, episodes_phrase(tested, refuting=True))]
    if tested.course.longest_ns > requirement.longest_ns:
        long, most = duration(tested.course.longest_ns), duration(requirement.longest_ns)
        lasted = f"lasted {f'more than {most}' if long == most else long}; at most {most} was asked"
        reasons.append(f"An episode above {limit_value(requirement.limit_ns)} {lasted}")
    if tested.decision.kind is RefutingRule.RATE:
        often = _at_first(requirement, tested)
        if tested.low * requirement.at_most_ns >= 1:
            rate = f"once per {duration(1 / tested.low, up=True)} ({sure(tested.alpha)})"
            often = f"Episodes come more often than {rate}; once per {duration(requirement.at_most_ns)} was asked"
        reasons += [often, assumption_sentence(State.REFUTED, tested.alpha, 1.0)]
    if tested.decision.bunched:
        wrong = f"REFUTED may be wrong in more than {error(tested.alpha)} of runs"
        reasons.append(f"The episodes came in bunches, so {wrong}. A longer run may show a lower rate")
    if tested.decision.proven_at_ns is not None:  # The refutation prevails over an earlier proof.
        reasons.append(f"The first {duration(tested.decision.proven_at_ns, up=True)} alone would have been PROVEN")
    return tuple(reasons)


def _undecided_reasons(requirement: Requirement, evidence: Evidence, tested: LimitTest) -> tuple[str, ...]:
    if evidence.lost:
        return (lost_values_sentence(evidence),)
    if evidence.cut_off:
        return (CUT_OFF,)
    if tested.decision.withheld:
        come = "are few enough for PROVEN, but they come in bunches, so the verdict is not PROVEN"
        return (
            f"{quantity(tested.episodes, 'episode')} in {duration(tested.measured_ns)} {come}",
            "Fix a larger --gap or --bunches before a new run, or measure longer",
        )
    if tested.vague_from_ns is not None:
        from_ns = tested.vague_from_ns
        begun = f"From {duration(from_ns)} on" if from_ns >= SECOND_NS else "From the first second on"
        return (
            f"{begun} the late times are known only to the second, but the gap is {duration(requirement.gap_ns)}",
            "A second may hold several such episodes, so no longer run of this kind is PROVEN",
            "Fix a gap of 1 s or more before a new run, or record every sample",
        )
    more = f"Too short to show at most once per {duration(requirement.at_most_ns)}: PROVEN after "
    more += calm_time_phrase(tested)
    more += f", at {sure(tested.alpha)} as one of {tested.limits} limits" if tested.limits > 1 else ""
    if tested.refuted_at_latest_ns is None:
        return (more,)
    until = duration(tested.refuted_at_latest_ns, up=True)
    return more, f"The last episode was still open: REFUTED if it goes on until {until}"


def calm_time_phrase(tested: LimitTest) -> str:
    """How much more time without an exceedance PROVEN needs; also the chance of that, if PROVEN is unlikely."""
    unlikely = tested.live_ns > 0 and tested.chance_with_one_more < UNLIKELY
    how_likely = f" (unlikely: {chance(tested.chance)})" if unlikely else ""
    return f"{duration(tested.more_ns, up=True)} more without an exceedance{how_likely}"


def lost_values_sentence(evidence: Evidence) -> str:
    """Why lost values prevent PROVEN."""
    return f"{quantity(evidence.lost, 'activation')} left no value, and any of them may have exceeded the limit"


def _independent(tested: LimitTest) -> str:
    """Whether the episodes look bunched."""
    n = tested.episodes
    if n < LEAST_EPISODES:
        return "Too few episodes came to tell whether they come singly or in bunches"
    if not tested.bunched:
        return f"The {n} episodes seem to come singly, not in bunches (a weak test, n = {n})"
    wrong = f"so PROVEN may be wrong in more than {error(tested.alpha)} of runs"
    return f"The {n} episodes now seem to come in bunches (a weak test, n = {n}), {wrong}"


def _shorter(requirement: Requirement, tested: LimitTest) -> str:
    """That no episode was seen to last too long; nothing without an episode or a longest length."""
    if not tested.episodes or requirement.longest_ns >= NO_LONGEST:
        return ""
    vague = tested.course.longest_at_most_ns > requirement.longest_ns
    but = ", but times are known to the second only" if vague else ""
    return f". None was seen to last longer than {duration(requirement.longest_ns)}{but}"


def _at_first(requirement: Requirement, tested: LimitTest) -> str:
    """The sentence if the first part of the run decided, but the whole run would not have."""
    n, refuted, at_most = tested.decision.episodes, tested.decision.state is State.REFUTED, requirement.at_most_ns
    at = duration(told_at_ns(requirement, tested.decision.at_ns, tested.alpha), up=True)
    often = f"{'more' if refuted else 'less'} than one per {duration(at_most)} ({sure(tested.alpha)})"
    shown = f"{quantity(n, 'episode')} in the first {at} {'show' if n > 1 else 'shows'} {often}"
    return f"{shown}, and the first decision stands: the whole run alone does not show it"


def told_at_ns(requirement: Requirement, at_ns: int | None, alpha: float) -> int:
    """The time of the decision that sentences name, in nanoseconds.

    A single episode at the very start refutes at once, and "after 0 s" would say little. So the result is at least one
    second. If T is a few seconds, it is at least the shorter time within which a single episode refutes.
    """
    return max(at_ns or 0, min(SECOND_NS, statistics.refuted_until_ns(1, requirement.at_most_ns, alpha)))


def _number(number: float) -> str:
    return f"{number:.3g}"


def length_was_fixed(evidence: Evidence) -> bool:
    """Whether the run lasted as long as it was asked to before it began."""
    asked = evidence.asked_duration_ns
    return evidence.ended_as_asked and (asked is None or evidence.measured_ns >= WHOLE_RUN_SHARE * asked)


def shared_error_sentence(limits: int, alpha: float, requirement: Requirement) -> str:
    """How several limits share the probability of error. alpha: the share of one limit."""
    both = error(1 - requirement.confidence)
    return f"with {limits} limits, the {both} error is split between them: each limit is tested at {sure(alpha)}"


def _rates(state: State, tested: LimitTest) -> tuple[str, ...]:
    """The bounds of the rate."""
    if state is State.INVALID:
        return ("An INVALID run shows no rate",)
    bounds = [f"less often than once per {duration(1 / tested.high)}"] if tested.high < math.inf else []
    bounds += [f"more often than once per {duration(1 / tested.low, up=True)}"] if tested.low > 0 else []
    quiet = f"; {duration(tested.live_ns)} of {duration(tested.measured_ns)} were quiet" if tested.episodes else ""
    each = f"; {FOR_EACH_LENGTH}" if len(bounds) > 1 else ""
    return (f"{', '.join(bounds)} ({sure(tested.alpha)}, {ANYTIME}){quiet}{each}",) if bounds else ()


def more_time_of_verdict(verdict: Verdict) -> str:
    """How much more measured time an UNDECIDED verdict needs, without and with one more episode; "" if unknown."""
    asked = verdict.requirement
    if asked is None or verdict.state is not State.UNDECIDED or asked.plain:
        return ""
    if verdict.untimed:
        return NO_LENGTH
    if not verdict.more_ns or not verdict.more_with_one_more_ns:
        return ""
    more, with_one = duration(verdict.more_ns, up=True), duration(verdict.more_with_one_more_ns, up=True)
    return f"{more} more if nothing exceeds {limit_value(asked.limit_ns)}, {with_one} more if one more episode comes"


def missed_lines(requirement: Requirement | None, evidence: Evidence) -> list[tuple[str, str]]:
    """The lines on activations that were due and never ran."""
    missed = f"{quantity(evidence.missed, evidence.noun)} of {evidence.expected:,} due"
    if evidence.gives_edges:
        never_given = f"{missed} were never given, and no latency is charged for them"
        return [("MISSED", never_given)] if evidence.missed else []
    never_ran = f"{missed} never ran; each counts in the schedule view with the time it was late"
    lines = [("MISSED", never_ran)] if evidence.missed else []
    if requirement and evidence.exceedances_observed is not None and (evidence.missed or evidence.exceedances_schedule):
        ran, due = evidence.obtained, evidence.obtained + evidence.missed
        observed = f"{evidence.exceedances_observed:,} of {ran:,} activations that ran (observed)"
        lines.append(("EXCEEDED", f"{observed}, {evidence.exceedances_schedule:,} of {due:,} that were due (schedule)"))
    return lines


def _largest(state: State, requirement: Requirement | None, evidence: Evidence) -> tuple[str, ...]:
    """The MAX lines: the largest latency and where it was; without a plain limit also what it says of other runs."""
    worst = evidence.worst
    if evidence.stalled_ns > max(worst.value_ns if worst else 0, 0):
        ran = f"; of the activations that ran the largest is {value(worst.value_ns)}" if worst else ""
        stood = f"at least {value(evidence.stalled_ns)} on thread {evidence.stalled_thread}, which never ran again"
        return (f"{stood}{ran}",)
    if worst is None:
        return ()
    cpu = f" (cpu {worst.cpu})" if worst.cpu >= 0 else ""
    kept = quantity(evidence.obtained - evidence.lost, "activation")
    first = f"{value(worst.value_ns)} on thread {worst.thread}{cpu} at {worst.at}, the largest of {kept}"
    table = (
        (requirement is not None and requirement.plain, ""),
        (evidence.lost, f" with a value; {evidence.lost:,} more left none, so that nothing follows from it"),
        (state is State.INVALID, "; the run is INVALID, so that nothing follows from it"),
        (evidence.virtual_time, "; a second run like this one has the same"),
    )
    for holds, text in table:
        if holds:
            return (f"{first}{text}",)
    confidence = requirement.confidence if requirement else planning.USUAL_CONFIDENCE
    not_fixed = "; this holds only if the length of the run was fixed beforehand, and it was not"
    unless = "" if length_was_fixed(evidence) else not_fixed
    rarest = duration(planning.rarest_ns(evidence.measured_ns, confidence))
    bound = f"> {value(worst.value_ns)}: less often than once per {rarest} ({percent(confidence)}, {FIXED}{unless})"
    return f"{first}; {AGAIN}", bound


def conditions_sentence(evidence: Evidence) -> str:
    """The conditions that a verdict is valid for."""
    if evidence.simulated:
        return NO_MACHINE
    load = f"load ({evidence.loads})" if evidence.loads else "load (none of ours)"
    return f"this kernel ({evidence.kernel}), boot, {load} and temperature only; 1 boot measured"


def unseen_event_sentence(duration_ns: int, confidence: float = planning.USUAL_CONFIDENCE) -> str:
    """A sentence on what may exist although a run of this length does not show it."""
    fixed, anytime = (duration(planning.rarest_ns(duration_ns, confidence, anytime=free)) for free in (False, True))
    unless = f"once per {anytime} if the run could end at any time"
    return f"events rarer than once per {fixed} may be missing from this run ({percent(confidence)}, {FIXED}; {unless})"


# The answers to the questions of the first screen. They are made from the finished verdict alone.


NO_LENGTH = "The file has no time order of its values, so no length of the run is known to decide."


def claim_answer(verdict: Verdict) -> str:
    """The first sentence of every output: the fact with its number; of an INVALID run, what makes it so."""
    return answer_sentences(verdict.reasons[:1])


def fact_if_invalid(verdict: Verdict) -> str:
    """What an INVALID run saw of the limit, which no page and no line leaves out; "" for any other verdict."""
    return answer_sentences(verdict.reasons[1:2]) if verdict.state is State.INVALID else ""


def exact_answer(verdict: Verdict) -> str:
    """Sentences on what the fact shows, or why it shows nothing; of an INVALID run its other reasons."""
    assumed = assumption_of_verdict(verdict)  # The answer to "How sure" states it.
    others = verdict.reasons[2:] if verdict.state is State.INVALID else verdict.reasons[1:]
    shown = [reason for reason in others if reason != assumed]
    rate = verdict.requirement if verdict.state is not State.INVALID and not verdict.plain else None
    return answer_sentences((*shown, *((episode_sentence(rate),) if rate else ())))


def short_answer(verdict: Verdict) -> str:
    """The one or two sentences below the fact, on a screen that has room for few."""
    few = verdict.reasons[1:] if verdict.plain and verdict.state is not State.INVALID else verdict.reasons[1:2]
    few = verdict.reasons[1:4] if verdict.withheld else few
    if verdict.state is State.PROVEN and verdict.bunched:  # PROVEN was reached before the episodes looked bunched.
        share = error(own_alpha(verdict, verdict.requirement or USUAL))
        few = (*few, f"The episodes look bunched: PROVEN may be wrong in more than {share} of runs")
    return answer_sentences(few)


def certainty_answer(verdict: Verdict) -> str:
    """Sentences on the confidence of the verdict and what it means."""
    asked, assumed = verdict.requirement or USUAL, assumption_of_verdict(verdict)
    wanted, own, several = percent(asked.confidence), sure(own_alpha(verdict, asked)), shares_error(verdict, asked)
    together = f" all limits together, which takes {own} for this one" if several else ""
    shared = f"; {wanted} for all limits of the run together" if several else ""
    when = "" if verdict.untimed else f", {ANYTIME}"
    table = (
        (verdict.state is State.INVALID, "It has no confidence: the run is INVALID for the reason above."),
        (verdict.plain, ""),
        (verdict.deterministic, answer_sentences((NO_PROBABILITY,))),
        (verdict.chosen_after, "A limit that was chosen after the data has no confidence."),
        (verdict.requirement is None, ""),
        (verdict.state is State.UNDECIDED, f"Nothing is decided; {wanted} was asked for{together}."),
        (assumed is None, "The episode was seen, so the verdict needs no confidence and no assumption."),
    )
    return next((answer for holds, answer in table if holds), f"{own}{when}. {assumed}{shared}.")


def decision_time_phrase(verdict: Verdict) -> str:
    """When the run was decided, in words.

    The length of a run is rounded down and the time of a decision up. If both are equal, the words are "at its end",
    because a decision must not seem to come after the end.
    """
    requirement = verdict.requirement or USUAL
    at_ns = told_at_ns(requirement, verdict.decided_at_ns, own_alpha(verdict, requirement))
    at = duration(at_ns, up=True)
    return "at its end" if at == duration(verdict.measured_ns or 0, up=True) else f"after {at}"


def answer_sentences(parts: tuple[str, ...]) -> str:
    """The parts as sentences: each gets a capital letter and a full stop."""
    return " ".join(f"{capitalised(part)}." for part in parts)
