# SPDX-License-Identifier: Apache-2.0
"""What the comparison found, first in one line, and what that rests on and cannot show."""

from itertools import accumulate

from rtproof.analysis.comparison.model import Comparison, Finding
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.comparison import runs
from rtproof.report.comparison.told import Told

KINDS = {
    Finding.A_BETTER: "good",
    Finding.B_BETTER: "good",
    Finding.MIXED: "doubt",
    Finding.NO_DIFFERENCE: "doubt",
    Finding.NOT_JUDGED: "doubt",
    Finding.NOT_INTERLEAVED: "doubt",
    Finding.UNKNOWN_ORDER: "doubt",
}
ELSEWHERE = ("VERDICT", "NOT COMPARED", "DIFFER", "VARIES", "LEFT OUT")
"""Labels of sentences that have a place of their own on the page."""


def section(found: Comparison, told: Told) -> Section:
    """Named as the first section of a run's report is, which is set large."""
    headline, *rest = lines(found, "VERDICT")
    sides = zip((found.a, found.b), told.what, strict=True)
    what = " ".join(f"{side.name}: {words} ({quantity(len(side.runs), 'run')})." for side, words in sides)
    blocks: list[Block] = [Text((what, *map(sentence, rest)), KINDS[found.finding], sentence(headline))]
    blocks = [*runs.beside_a_core((*found.a.runs, *found.b.runs)), *blocks]
    rows = tuple(
        (label if at == 0 else "", text) for label in _labels(found) for at, text in enumerate(lines(found, label))
    )
    blocks.append(Table("What the result rests on, and what it cannot show", ("line", "what it says"), rows))
    return Section("verdict", "Result", tuple(blocks))


def _labels(found: Comparison) -> list[str]:
    return [label for label, _ in found.sentences if label and label not in ELSEWHERE]


def lines(found: Comparison, label: str) -> list[str]:
    """The sentences under a label."""
    labels = accumulate([each for each, _ in found.sentences], _carried)
    return [text for here, (_, text) in zip(labels, found.sentences, strict=True) if here == label]


def _carried(before: str, here: str) -> str:
    return here or before


def sentence(text: str) -> str:
    """With a capital, but for names such as p99, and a full stop, to stand by itself."""
    first = text.partition(" ")[0]
    return (text if any(map(str.isdigit, first)) else text[:1].upper() + text[1:]) + ("" if text.endswith(".") else ".")
