# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run, and what has to be known before its numbers: doubts, objections, a co-kernel, virtual time."""

from rtproof.core.phrases import quantity
from rtproof.judge.analyse import CHECKS, FOREMOST_CODES
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.report import answers
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.objection_blocks import objection_blocks, run_objections
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE, virtual_time_clock
from rtproof.summary.summary_model import Doubt, Severity

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
"""Labels of sentences that the first block has in its own words or as they are."""


def verdict_section(analysis: Analysis) -> list[Block]:
    verdict = analysis.verdict
    claim = tuple(filter(None, (answers.claim_answer(verdict), answers.doubt_tally(analysis))))
    first = Text(claim, KINDS[verdict.state], verdict.state.value, answers.claim_terms(analysis))
    more: tuple[Block | None, ...] = (answers.limit_answers(analysis), answers.doubt_answers(analysis))
    blocks: list[Block] = [first, *(block for block in more if block)]
    lines = tuple(_rest(verdict))
    if lines:
        blocks.append(Table("What the verdict rests on", ("line", "what it says"), lines))
    others = answers.other_limit_answers(analysis)
    return [*blocks, others] if others else blocks


def _rest(verdict: Verdict) -> list[tuple[str, str]]:
    """The lines that the first block does not have."""
    kept, current = [], ""
    for label, text in verdict.sentences:
        current = label or current
        kept += [] if current in FIRST_SCREEN else [(label, text)]
    return kept


SEVERITY_KINDS = {Severity.INVALID: "bad", Severity.WARNING: "doubt"}
SEVERITY_WORDS = {Severity.INVALID: "Makes the run invalid", Severity.WARNING: "Warning"}


def doubts_section(analysis: Analysis) -> list[Block]:
    if not analysis.doubts:
        return [Text((f"No doubts: {quantity(len(CHECKS), 'check')} of the run found nothing wrong with it.",), "good")]
    return [_block(doubt) for doubt in analysis.doubts]


def _block(doubt: Doubt) -> Text:
    advice = (f"What to do: {doubt.remedy}",) if doubt.remedy else ()
    return Text(
        (doubt.what, *advice), SEVERITY_KINDS[doubt.severity], f"{SEVERITY_WORDS[doubt.severity]} ({doubt.code})"
    )


def objections_section(analysis: Analysis) -> list[Block]:
    return objection_blocks(run_objections(analysis))


def in_band_section(analysis: Analysis) -> list[Block]:
    """One paragraph where a co-kernel was found, or may be hidden; else nothing."""
    said = [doubt for doubt in analysis.doubts if doubt.code in FOREMOST_CODES]
    return [Text((f"What to do: {doubt.remedy}.",), "doubt", _sentence(doubt.what)) for doubt in said]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def virtual_time_section(analysis: Analysis) -> list[Block]:
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
