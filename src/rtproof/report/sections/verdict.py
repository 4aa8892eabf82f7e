# SPDX-License-Identifier: Apache-2.0
"""The first screen: is it proven, what exactly, how sure is that, how much longer does it take, and what to doubt."""

from rtproof.analysis.model import Analysis, State, Verdict
from rtproof.report import answers
from rtproof.report.blocks import Block, Table, Text

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


def render(analysis: Analysis) -> list[Block]:
    verdict = analysis.verdict
    claim = tuple(filter(None, (answers.claim(verdict), answers.tally(analysis))))
    first = Text(claim, KINDS[verdict.state], verdict.state.value, answers.terms(analysis))
    more: tuple[Block | None, ...] = (answers.limits(analysis), answers.doubts(analysis))
    blocks: list[Block] = [first, *(block for block in more if block)]
    lines = tuple(_rest(verdict))
    if lines:
        blocks.append(Table("What the verdict rests on", ("line", "what it says"), lines))
    others = answers.other_limits(analysis)
    return [*blocks, others] if others else blocks


def _rest(verdict: Verdict) -> list[tuple[str, str]]:
    """The lines that the first block does not have."""
    kept, current = [], ""
    for label, text in verdict.sentences:
        current = label or current
        kept += [] if current in FIRST_SCREEN else [(label, text)]
    return kept
