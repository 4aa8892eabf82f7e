# SPDX-License-Identifier: Apache-2.0
"""Sections on what a run shows and what it cannot: verdict, doubts, a co-kernel, virtual time."""

from collections.abc import Iterator
from dataclasses import replace

from rtproof.core.phrases import capitalised, duration, limit_value, quantity, value
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.doubts.registry import CHECKS
from rtproof.judge.histogram_only import impossible_figures
from rtproof.judge.worst_first import EVERY_RUN, FOREMOST_CODES, briefs_worst_first, kinds_worst_first
from rtproof.report.blocks import Block, Table, Text
from rtproof.summary import loops
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE
from rtproof.summary.summary_model import Doubt, Severity

EXACTLY, SURE = "What exactly", "How sure"
SHOWN_DOUBTS = 4


def claim_terms(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """The questions about a verdict with their answers: what exactly, how sure, how much longer, valid for what.

    In front of them, the loop of a run that measured cycles or an application, or the edges of two boards.
    """
    verdict = analysis.verdict
    valid = " ".join(verdict_sentences.texts_under_labels(verdict.sentences, "VALID FOR"))
    answers = (
        ("The loop", loop_answer(analysis)),
        ("The edges", edges_answer(analysis)),
        (EXACTLY, "" if verdict.state is State.NOT_ASKED else verdict_sentences.exact_answer(verdict)),
        (SURE, verdict_sentences.certainty_answer(verdict)),
        ("How much longer", verdict_sentences.more_time_of_verdict(verdict)),
        ("Valid for", valid),
    )
    return tuple((question, answer) for question, answer in answers if answer)


def loop_answer(analysis: Analysis) -> str:
    """Sentences on the cycles or on the application's loops that a run measured; "" if it measured only latencies."""
    found = analysis.cycles
    if found:
        stood = "".join(f" STALLED for {duration(stall.duration_ns)}." for stall in found.stalls)
        return f"{loops.cycle_sentences(found)}{stood}"
    if analysis.run_record is None or not loops.is_app(analysis.run_record) or not analysis.pooled.observed.count:
        return ""
    top, end = analysis.stages[0].observed, analysis.stages[-1].observed
    return (
        f"Of {quantity(top.count, 'loop')} the top was late by {value(round(top.mean or 0))} on average and "
        f"{value(top.max)} at most; the work was done {value(end.max)} after its target at the latest."
    )


def edges_answer(analysis: Analysis) -> str:
    """Sentences on the edges that have no response time; "" of a run on one board, or if all have one."""
    edges = analysis.edges
    if edges is None:
        return ""
    never, missing = edges.never_answered_ns.size, edges.not_given
    whose = "it" if never == 1 else "one of them"
    unanswered = f"{quantity(never, 'edge')} {'was' if never == 1 else 'were'} never answered"
    waited = f"{unanswered}: the largest value is how long the generator waited for {whose}."
    skipped = f"{missing:,} of {edges.given + missing:,} edges due were missed: the generator never gave them."
    return " ".join(text for text, count in ((waited, never), (skipped, missing)) if count)


def limit_answers(analysis: Analysis) -> Table | None:
    """A table of all limits in the order given; None if the run has fewer than two."""
    if len(analysis.verdicts) < 2:
        return None
    plain = all(verdict.plain for verdict in analysis.verdicts)
    header = ("limit", "at most", "verdict", "exceeded", *(() if plain else ("episodes", "how much longer")))
    assumed = list(dict.fromkeys(filter(None, map(verdict_sentences.assumption_of_verdict, analysis.verdicts))))
    caption = "Every limit. The verdict is that of the worst one" + "".join(f". {each}" for each in assumed)
    rows = tuple(_row(verdict)[: len(header)] for verdict in analysis.verdicts)
    return Table(caption, header, rows, (3,), foremost=True)


def other_limit_answers(analysis: Analysis) -> list[Block]:
    """A table of what was seen of the limits but the one that decides, without the reasons of INVALID; [] without any.

    The caption of the table of all limits states the assumption.
    """
    rows: list[tuple[str, str]] = []
    for verdict in analysis.verdicts:
        if verdict is not analysis.verdict:
            asked = verdict.requirement or verdict_sentences.USUAL
            limit = limit_value(asked.limit_ns)
            name = limit if asked.plain else f"{limit} once per {duration(asked.at_most_ns)}"
            reasons = () if verdict.state is State.INVALID else verdict.reasons
            told = [reason for reason in reasons if reason != verdict_sentences.assumption_of_verdict(verdict)]
            told += verdict_sentences.texts_under_labels(verdict.sentences, "ABOVE")
            rows += zip([name, *[""] * len(told)], told, strict=False)
    return [Table("What was seen of the other limits", ("limit", "what it says"), tuple(rows))] if rows else []


def _row(verdict: Verdict) -> tuple[str, ...]:
    asked, count = verdict.requirement or verdict_sentences.USUAL, verdict.exceeded_count
    more = verdict_sentences.more_time_of_verdict(verdict) or "-"
    if verdict.decided_at_ns is not None and not asked.plain:
        more = f"none, decided {verdict_sentences.decision_time_phrase(verdict)}"
    return (
        limit_value(asked.limit_ns),
        "never" if asked.plain else f"once per {duration(asked.at_most_ns)}",
        verdict.state.value,
        "unknown" if count is None else {0: "never", 1: "once"}.get(count, f"{count:,} times"),
        "-" if asked.plain else "unknown" if verdict.untimed else f"{len(verdict.episodes):,}",
        more,
    )


def doubts_in_short(analysis: Analysis) -> list[str]:
    """One line for each kind of doubt, worst first: the fact, and what to do."""
    return briefs_worst_first(_counted_kinds(analysis))


def _counted_kinds(analysis: Analysis) -> Iterator[Doubt]:
    for doubt, count in kinds_worst_first(analysis):
        yield replace(doubt, what=f"{doubt.what}, and {count - 1} more like it") if count > 1 else doubt


def doubt_answers(analysis: Analysis) -> Text | None:
    """A block with the first of these lines; None if there are none. What makes a run invalid stands elsewhere."""
    lines = briefs_worst_first(each for each in _counted_kinds(analysis) if each.severity is not Severity.INVALID)
    usual = [lines.pop()] if lines and lines[-1].startswith(EVERY_RUN) else []
    shown = lines[:SHOWN_DOUBTS] if len(lines) > SHOWN_DOUBTS + 1 else lines
    more = (f"and {quantity(len(lines) - len(shown), 'more caution')}, below",) if len(shown) < len(lines) else ()
    return Text((*shown, *more, *usual), "doubt", "Cautions", foremost=True) if lines or usual else None


KINDS = {
    State.HELD: "good",
    State.EXCEEDED: "bad",
    State.PROVEN: "good",
    State.REFUTED: "bad",
    State.INVALID: "bad",
    State.UNDECIDED: "doubt",
    State.NOT_ASKED: "normal",
}
FIRST_SCREEN = ("VERDICT", "VALID FOR")
"""Labels of the sentences that the first block of the section already shows, in its own words or unchanged."""


def verdict_section(analysis: Analysis) -> list[Block]:
    """The first screen: the verdict, what exactly is shown, how sure it is, how much longer to run, and the doubts."""
    verdict = analysis.verdict
    facts = (verdict_sentences.claim_answer(verdict), verdict_sentences.fact_if_invalid(verdict))
    first = Text(tuple(filter(None, facts)), KINDS[verdict.state], verdict.state.word, claim_terms(analysis))
    more: tuple[Block | None, ...] = (limit_answers(analysis), doubt_answers(analysis))
    blocks: list[Block] = [first, *(block for block in more if block)]
    lines = verdict_sentences.lines_without(verdict.sentences, FIRST_SCREEN)
    if lines:
        blocks.append(Table("What the verdict rests on", ("line", "what it says"), lines))
    return [*blocks, *other_limit_answers(analysis)]


def doubts_section(analysis: Analysis) -> list[Block]:
    """A block for each doubt with what to do about it, or how many checks found nothing wrong."""
    if not analysis.doubts:
        return [Text((f"No doubts: {quantity(len(CHECKS), 'check')} of the run found nothing wrong with it.",), "good")]
    blocks: list[Block] = []
    for doubt in analysis.doubts:
        advice = f"What to do: {doubt.remedy}" if doubt.remedy else ""
        kind, word = ("bad", "INVALID") if doubt.severity is Severity.INVALID else ("doubt", "Warning")
        said = tuple(filter(None, (doubt.detail, advice)))
        blocks.append(Text(said, kind, f"{word}: {doubt.what} ({doubt.code})"))
    return blocks


def in_band_section(analysis: Analysis) -> list[Block]:
    """A paragraph if a co-kernel was found or may be hidden: the figures are of Linux's own threads alone."""
    return [
        Text((f"{capitalised(doubt.detail)}.", f"What to do: {doubt.remedy}."), "doubt", f"{capitalised(doubt.what)}.")
        for doubt in analysis.doubts
        if doubt.code in FOREMOST_CODES
    ]


def virtual_time_section(analysis: Analysis) -> list[Block]:
    """A paragraph for a run whose clock counts instructions: none of its figures is a time on any board."""
    headline = f"{capitalised(VIRTUAL_TIME_SENTENCE)}."
    return [Text((f"What made the clock count instructions: {analysis.virtual_clock}.",), "doubt", headline)]


def impossible_section(analysis: Analysis) -> list[Block]:
    """Each figure that a run has and the file lacks, with the reason; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    caption = "Statements that need more than a histogram"
    table = Table(caption, ("statement", "why not"), tuple(impossible_figures(imported)))
    ordered = "rtproof run measures with time order, so that it can prove and refute."
    return [table, *([Text((ordered,))] if analysis.verdict.state is State.UNDECIDED else [])]
