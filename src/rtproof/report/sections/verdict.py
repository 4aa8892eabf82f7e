# SPDX-License-Identifier: Apache-2.0
"""The verdict in words, why it is so, what it rests on, and how much longer a run would have to be."""

from rtproof.analysis.model import Analysis, State, Verdict
from rtproof.analysis.wording import limit
from rtproof.report.blocks import Block, Table, Text

ORDER = 10
SHORT = True
TITLE = "Verdict"

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


def render(analysis: Analysis) -> list[Block]:
    verdict = analysis.verdict
    blocks: list[Block] = [Text(verdict.reasons, KINDS[verdict.state], MEANINGS[verdict.state])]
    lines = _without_the_verdict(verdict)
    if lines:
        blocks.append(Table("What the verdict rests on", ("line", "what it says"), lines))
    others = [other for other in analysis.verdicts if other is not verdict]
    if others:
        blocks.append(Table("The other limits", ("limit", "verdict"), tuple(_line(other) for other in others)))
    return blocks


def _line(verdict: Verdict) -> tuple[str, str]:
    asked = limit(verdict.requirement) if verdict.requirement else ""
    return asked, f"{verdict.state.value} - {'; '.join(verdict.reasons)}"


def _without_the_verdict(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """State and reasons come first among the sentences, under one label; they stand above the table already."""
    labelled = [at for at, (label, _) in enumerate(verdict.sentences) if label]
    return verdict.sentences[labelled[1] :] if len(labelled) > 1 else ()
