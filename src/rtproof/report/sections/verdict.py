# SPDX-License-Identifier: Apache-2.0
"""Sections on what a run shows and what it cannot: verdict, doubts, objections, a co-kernel, virtual time."""

from collections.abc import Sequence

from rtproof.core import phrases
from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge import verdict_sentences
from rtproof.judge.analyse import CHECKS, FOREMOST_CODES, LOSS_CODES
from rtproof.judge.analysis_model import Analysis, Requirement, State, Verdict
from rtproof.judge.claim import RefutingRule
from rtproof.judge.histogram_only import impossible_figures
from rtproof.judge.objections import Objection, claim_of, objections
from rtproof.judge.verdict import NO_PROBABILITY
from rtproof.report.blocks import Block, Table, Text
from rtproof.statistics import needed_ns
from rtproof.summary import loops
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE, virtual_time_clock
from rtproof.summary.summary_model import Doubt, Severity

NAME = "this run"


def run_objections(analysis: Analysis) -> tuple[Objection, ...]:
    """The objections to a run by itself, without those that one of its doubts already states.

    A histogram of another tool has none, because the rules judge conditions that the file does not hold.
    """
    if analysis.imported:
        return ()
    return unsaid_objections(objections([claim_of(analysis, NAME)]))


def objection_blocks(found: Sequence[Objection]) -> list[Block]:
    """A block for each objection, in the order given."""
    return [Text((each.what,), "doubt", f"Objection ({each.code})") for each in found]


def unsaid_objections(found: Sequence[Objection]) -> tuple[Objection, ...]:
    """The objections that no doubt already states."""
    return tuple(each for each in found if each.doubt is None)


LOOP, EXACTLY, SURE, LONGER, VALID = "The loop", "What exactly", "How sure", "How much longer", "Valid for"
SHOWN_DOUBTS = 3
LISTED = 4
"""How many limits are listed one by one: more do not fit on the first screen of a telephone."""
USUAL = Requirement(0)
OF_A_FILE = {
    State.PROVEN: "For what this file shows of the run, episodes {above} come less often than {once}.",
    State.REFUTED: "The requirement on latencies {above} does not hold at the confidence asked.",
}
"""What a decision means for a file that holds neither the conditions of its run nor times."""
NO_LENGTH = "A histogram has no time order, so no length of it is known to decide."
RANK, VALID_FOR, MAX = "RANK", "VALID FOR", "MAX"
"""Labels of the verdict's sentences that this module looks for."""


def claim_answer(verdict: Verdict) -> str:
    """One sentence that says what the verdict means for the system."""
    if verdict.requirement is None:
        if verdict.state is State.INVALID:
            return "The run did not measure what was asked, so its numbers decide nothing."
        return "The run was measured; no limit was given to judge it by."
    above = f"above {value(verdict.requirement.limit_ns)}"
    if verdict.deterministic and verdict.state is not State.INVALID:
        return _seen(verdict)
    once = f"once per {duration(verdict.requirement.at_most_ns)}"
    if verdict.kind == RefutingRule.DURATION.value and verdict.state is State.REFUTED:
        return f"An episode {above} lasted longer than {duration(verdict.requirement.longest_ns)}."
    if verdict_sentences.only_at_first(verdict):
        often = "less" if verdict.state is State.PROVEN else "more"
        only = f"all of the run would not be {verdict.state.value}"
        first = verdict_sentences.decided_after_phrase(verdict, verdict.requirement)
        return f"In the first {first} episodes {above} came {often} often than {once}; {only}."
    answers = {
        State.PROVEN: f"Episodes {above} come less often than {once}.",
        State.REFUTED: f"Episodes {above} come more often than {once}.",
        State.UNDECIDED: f"Whether episodes {above} come at most {once}, this run cannot say.",
        State.INVALID: f"The run did not measure what was asked, so it says nothing of latencies {above}.",
        State.NOT_ASKED: "",
    }
    if verdict.untimed:
        answers |= {state: answer.format(above=above, once=once) for state, answer in OF_A_FILE.items()}
    return answers[verdict.state]


def _seen(verdict: Verdict) -> str:
    """A sentence on what happened in a run in virtual time, which says nothing about other runs."""
    limit = value(verdict.requirement.limit_ns if verdict.requirement else 0)
    often = " more often than was asked" if verdict.state is State.REFUTED else ""
    if not verdict.episodes:
        return f"{limit} was not exceeded in this deterministic run."
    return f"{limit} was exceeded in this deterministic run{often}."


def claim_terms(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """The questions about a verdict with their answers: what exactly, how sure, how much longer, valid for what.

    In front of them, the loop of a run that measured cycles or an application.
    """
    verdict = analysis.verdict
    valid = " ".join(labelled_sentence(verdict, VALID_FOR))
    answers = (
        (EXACTLY, exact_answer(verdict)),
        (SURE, certainty_answer(verdict)),
        (LONGER, longer_run_answer(verdict)),
        (VALID, valid),
    )
    asked = ((LOOP, loop_answer(analysis)), *answers)
    return tuple((question, answer) for question, answer in asked if answer)


def loop_answer(analysis: Analysis) -> str:
    """Sentences on the cycles or on the application's loops that a run measured; "" if it measured only latencies."""
    found = analysis.cycles
    if found:
        stood = "".join(f" STALLED for {duration(stall.duration_ns)}." for stall in found.stalls)
        return f"{loops.cycle_sentences(found)}{stood}"
    if not loops.is_app(analysis.record) or not analysis.pooled.observed.count:
        return ""
    top, end = analysis.stages[0].observed, analysis.stages[-1].observed
    return (
        f"Of {quantity(top.count, 'loop')} the top was late by {value(round(top.mean or 0))} on average and "
        f"{value(top.max)} at most; the work was done {value(end.max)} after its target at the latest."
    )


def exact_answer(verdict: Verdict) -> str:
    """Sentences on what was seen and which bound follows; without a limit, on the largest value."""
    if verdict.reasons:
        asked = verdict.requirement if verdict.state is not State.INVALID else None
        assumed = verdict_sentences.assumption_of_verdict(verdict)  # The answer to "How sure" states it.
        seen = [reason for reason in verdict.reasons if reason != assumed]
        return answer_sentences((*seen, *((verdict_sentences.episode_sentence(asked),) if asked else ())))
    return answer_sentences(labelled_sentence(verdict, MAX)[:1])


def certainty_answer(verdict: Verdict) -> str:
    """Sentences on the confidence of the verdict and what it means."""
    if verdict.state is State.INVALID:
        return "Not at all: what makes the run invalid stands above."
    return answer_sentences((NO_PROBABILITY,)) if verdict.deterministic else _confidence(verdict)


def _confidence(verdict: Verdict) -> str:
    if verdict.chosen_after:
        return answer_sentences(("No test of it means anything", *labelled_sentence(verdict, RANK)))
    if verdict.requirement is None:
        return answer_sentences(labelled_sentence(verdict, MAX)[2:3])
    wanted = percent(verdict.requirement.confidence)
    alpha = verdict_sentences.own_alpha(verdict, verdict.requirement)
    several = verdict_sentences.shares_error(verdict, verdict.requirement)
    shared = f"; {wanted} for all limits of the run together" if several else ""
    if verdict.state is State.UNDECIDED:
        together = f" all limits together, which takes {phrases.sure(alpha)} for this one" if several else ""
        return f"Nothing is decided; {wanted} was asked for{together}."
    assumed = verdict_sentences.assumption_of_verdict(verdict)
    if assumed is None:
        return "It was seen, so it needs neither a confidence nor an assumption."
    when = "" if verdict.untimed else f", {verdict_sentences.ANYTIME}"
    return f"{phrases.sure(alpha)}{when}. {assumed}{shared}."


def longer_run_answer(verdict: Verdict) -> str:
    """A sentence on how much longer the run takes to a decision: without and with one more episode, and the chances."""
    if verdict.deterministic and verdict.state is not State.INVALID:
        return "No length of virtual time proves a limit: measure on the hardware that will be used."
    if verdict.untimed and verdict.requirement and not verdict.chosen_after and verdict.state is not State.INVALID:
        return NO_LENGTH if verdict.state is State.UNDECIDED else ""
    return _until_decided(verdict)


def _until_decided(verdict: Verdict) -> str:
    if verdict.state is State.INVALID:
        return "Longer does not help: mend what makes the run invalid, and measure again."
    if verdict.decided_at_ns is not None and verdict.state in (State.PROVEN, State.REFUTED):
        return f"No longer: the result was clear {_when(verdict)}."
    if verdict.requirement is None or verdict.chosen_after:
        return repeat_answer(verdict.requirement)
    if verdict.withheld:
        return "Much longer, or with --gap or --bunches fixed before a new run: the episodes come in bunches."
    if not verdict.more_ns or verdict.more_with_one_more_ns is None:
        return "Longer does not help this run: values are missing from it. Measure again."
    none, one = (duration(ns, up=True) for ns in (verdict.more_ns, verdict.more_with_one_more_ns))
    chance, with_one = (phrases.chance(share or 0) for share in (verdict.chance, verdict.chance_with_one_more))
    return f"{none} more if nothing exceeds the limit (chance {chance}), {one} if one more episode comes ({with_one})."


def _when(verdict: Verdict) -> str:
    """When the run was decided, in words.

    The length of a run is rounded down and the time of a decision up. If both are equal, the words are "at its end",
    because a decision must not seem to come after the end.
    """
    at = verdict_sentences.decided_after_phrase(verdict, verdict.requirement or USUAL)
    return "at its end" if at == duration(verdict.measured_ns, up=True) else f"after {at}"


def repeat_answer(requirement: Requirement | None) -> str:
    """A sentence on how long a new run must be, with the limit given before it starts."""
    asked = requirement or USUAL
    length = duration(asked.bunches * needed_ns(0, asked.at_most_ns, 1 - asked.confidence), up=True)
    limit = f"--limit {value(asked.limit_ns).replace(' ', '')}" if requirement else "--limit"
    return (
        f"A run with {limit} given before it starts takes {length} to prove “at most once per "
        f"{duration(asked.at_most_ns)}”, if nothing exceeds it."
    )


def limit_answers(analysis: Analysis) -> Table | None:
    """A table of all limits in the order given; None if the run has fewer than two."""
    if len(analysis.verdicts) < 2:
        return None
    header = ("limit", "once per", "verdict", "episodes", "how much longer")
    assumed = list(dict.fromkeys(filter(None, map(verdict_sentences.assumption_of_verdict, analysis.verdicts))))
    caption = "Every limit" + "".join(f". {each}" for each in assumed)
    return Table(caption, header, tuple(_row(verdict) for verdict in analysis.verdicts), (3,))


def other_limit_answers(analysis: Analysis) -> Table | None:
    """A table of what was seen of the limits, without the one that decides the run; None if it has no row.

    The sentences of the deciding limit stand elsewhere. The caption of the table of all limits states the assumption.
    The reasons of INVALID are left out, because the report says only once what makes a run invalid.
    """
    rows: list[tuple[str, str]] = []
    for verdict in analysis.verdicts:
        if verdict is not analysis.verdict:
            reasons = () if verdict.state is State.INVALID else verdict.reasons
            told = [reason for reason in reasons if reason != verdict_sentences.assumption_of_verdict(verdict)]
            told += verdict_sentences.texts_under_labels(verdict.sentences, "ABOVE")
            rows += zip([_asked(verdict), *[""] * len(told)], told, strict=False)
    return Table("What was seen of the other limits", ("limit", "what it says"), tuple(rows)) if rows else None


def doubt_tally(analysis: Analysis) -> str:
    """A sentence with the verdict on each limit; "" if there are fewer than two.

    With more limits than LISTED, it counts the verdicts. ``limit_answers`` has the details.
    """
    states = [verdict.state for verdict in analysis.verdicts]
    if len(states) < 2:
        return ""
    counted = [f"{states.count(state)} {state.value}" for state in State if state in states]
    told = [f"{_asked(verdict)} {verdict.state.value}" for verdict in analysis.verdicts]
    shown = ", ".join(told if len(states) <= LISTED else counted)
    return f"{len(states)} limits: {shown}. What follows is of the worst one, {_asked(analysis.verdict)}:"


def _asked(verdict: Verdict) -> str:
    asked = verdict.requirement or USUAL
    return f"{value(asked.limit_ns)} once per {duration(asked.at_most_ns)}"


def _row(verdict: Verdict) -> tuple[str, ...]:
    asked = verdict.requirement or USUAL
    open_ = verdict.state is State.UNDECIDED and verdict.more_ns and verdict.more_with_one_more_ns
    more = "-"
    if open_:
        none, one = (duration(ns or 0, up=True) for ns in (verdict.more_ns, verdict.more_with_one_more_ns))
        more = f"{none}, or {one} after one more"
    elif verdict.decided_at_ns is not None:
        more = f"none, decided {_when(verdict)}"
    return (
        value(asked.limit_ns),
        duration(asked.at_most_ns),
        verdict.state.value,
        "unknown" if verdict.untimed else f"{len(verdict.episodes):,}",
        more,
    )


def doubt_answers(analysis: Analysis) -> Text | None:
    """A block with one doubt of each kind and the kinds of objections; None if there are none.

    It shows the first few doubts, and more if more kinds tell of a loss. Doubts that make a run invalid are not here:
    another section states them.
    """
    warnings = [doubt for doubt in analysis.doubts if doubt.severity is Severity.WARNING]
    kinds = {doubt.code: doubt.what for doubt in reversed(warnings)}
    each = [kinds[code] for code in dict.fromkeys(doubt.code for doubt in warnings)]
    shown = each[: max(SHOWN_DOUBTS, sum(code in LOSS_CODES for code in kinds))]
    rest = len(warnings) - len(shown)
    more = (f"and {quantity(rest, 'more doubt')}, below",) if rest > 0 else ()
    objected = dict.fromkeys(objection.code for objection in run_objections(analysis))
    against = (f"what speaks against its own figures is below: {', '.join(objected)}",) if objected else ()
    counts = ((len(warnings), "doubt"), (len(objected), "objection"))
    head = " and ".join(quantity(n, noun) for n, noun in counts if n)
    told = (*shown, *more, *against)
    return Text(told, "doubt", f"{head}: read all figures with this in mind") if told else None


def labelled_sentence(verdict: Verdict, label: str) -> tuple[str, ...]:
    """The verdict's sentences under a label."""
    found, current = [], ""
    for name, text in verdict.sentences:
        current = name or current
        found += [text] if current == label else []
    return tuple(found)


def answer_sentences(parts: tuple[str, ...]) -> str:
    """The parts as sentences: each gets a capital letter and a full stop."""
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


KINDS = {
    State.PROVEN: "good",
    State.REFUTED: "bad",
    State.INVALID: "bad",
    State.UNDECIDED: "doubt",
    State.NOT_ASKED: "normal",
}
MEANINGS = {
    State.PROVEN: "PROVEN: the requirement holds at the confidence asked, for this system under this load.",
    State.REFUTED: "REFUTED: the requirement does not hold at the confidence asked.",
    State.UNDECIDED: "UNDECIDED: this run does not carry an answer.",
    State.INVALID: "INVALID: the run did not measure what was asked, so its numbers decide nothing.",
    State.NOT_ASKED: "NOT ASKED: the run was measured; no limit was given to judge it by.",
}
FIRST_SCREEN = ("VERDICT", "NEEDED", "VALID FOR", "RANK")
"""Labels of the sentences that the first block of the section already shows, in its own words or unchanged."""


def verdict_section(analysis: Analysis) -> list[Block]:
    """The first screen: the verdict, what exactly is shown, how sure it is, how much longer to run, and the doubts."""
    verdict = analysis.verdict
    claim = tuple(filter(None, (claim_answer(verdict), doubt_tally(analysis))))
    first = Text(claim, KINDS[verdict.state], verdict.state.value, claim_terms(analysis))
    more: tuple[Block | None, ...] = (limit_answers(analysis), doubt_answers(analysis))
    blocks: list[Block] = [first, *(block for block in more if block)]
    lines = tuple(_rest(verdict))
    if lines:
        blocks.append(Table("What the verdict rests on", ("line", "what it says"), lines))
    others = other_limit_answers(analysis)
    return [*blocks, others] if others else blocks


def _rest(verdict: Verdict) -> list[tuple[str, str]]:
    """The verdict's lines that the first block does not show."""
    kept, current = [], ""
    for label, text in verdict.sentences:
        current = label or current
        kept += [] if current in FIRST_SCREEN else [(label, text)]
    return kept


SEVERITY_KINDS = {Severity.INVALID: "bad", Severity.WARNING: "doubt"}
SEVERITY_WORDS = {Severity.INVALID: "Makes the run invalid", Severity.WARNING: "Warning"}


def doubts_section(analysis: Analysis) -> list[Block]:
    """A block for each doubt with what to do about it, or how many checks found nothing wrong."""
    if not analysis.doubts and analysis.imported:
        return []
    if not analysis.doubts:
        return [Text((f"No doubts: {quantity(len(CHECKS), 'check')} of the run found nothing wrong with it.",), "good")]
    return [_block(doubt) for doubt in analysis.doubts]


def _block(doubt: Doubt) -> Text:
    advice = (f"What to do: {doubt.remedy}",) if doubt.remedy else ()
    return Text(
        (doubt.what, *advice), SEVERITY_KINDS[doubt.severity], f"{SEVERITY_WORDS[doubt.severity]} ({doubt.code})"
    )


def objections_section(analysis: Analysis) -> list[Block]:
    """What the run's own figures say against it and no doubt already states; [] if they say nothing."""
    return objection_blocks(run_objections(analysis))


def in_band_section(analysis: Analysis) -> list[Block]:
    """A paragraph if a co-kernel was found or may be hidden; else [].

    The figures of such a run are of Linux's own threads and of no others.
    """
    said = [doubt for doubt in analysis.doubts if doubt.code in FOREMOST_CODES]
    return [Text((f"What to do: {doubt.remedy}.",), "doubt", _sentence(doubt.what)) for doubt in said]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def virtual_time_section(analysis: Analysis) -> list[Block]:
    """A paragraph for a run whose clock counts instructions: none of its figures is a time on any board; else []."""
    made_by = virtual_time_clock(analysis.record)
    if made_by is None:
        return []
    return [
        Text(
            (f"What made the clock count instructions: {made_by}.",),
            "doubt",
            f"{VIRTUAL_TIME_SENTENCE[:1].upper()}{VIRTUAL_TIME_SENTENCE[1:]}.",
        )
    ]


def impossible_section(analysis: Analysis) -> list[Block]:
    """Each figure that a run has and the file lacks, with the reason; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    caption = "Statements that need more than a histogram"
    table = Table(caption, ("statement", "why not"), tuple(impossible_figures(imported)))
    ordered = "rtproof run measures with time order, so that it can prove and refute."
    return [table, *([Text((ordered,))] if analysis.verdict.state is State.UNDECIDED else [])]
