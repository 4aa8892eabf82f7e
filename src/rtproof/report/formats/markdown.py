# SPDX-License-Identifier: Apache-2.0
"""Markdown for a README, an issue or a mail: tables as tables, plots as the sentence that says what they show."""

from functools import singledispatch

from rtproof.core.printable import clean
from rtproof.report.blocks import Bars, Block, HeatMap, Plot, Section, Table, Text

SUFFIX = ".md"

SPECIAL = "\\`*_[]<>|#"
"""Characters that have a meaning in Markdown and so are escaped in plain text."""


def draw(title: str, sections: list[Section]) -> bytes:
    """The report in GitHub's Markdown, in UTF-8."""
    parts = [f"# {words(title)}"]
    for section in sections:
        parts.append(f"## {words(section.title)}")
        parts.extend(block_markdown(block) for block in section.blocks)
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def words(text: str) -> str:
    """Plain text, escaped so that Markdown shows it unchanged."""
    return "".join("\\" + c if c in SPECIAL else c for c in clean(text))


@singledispatch
def block_markdown(block: Block) -> str:
    """One block as Markdown."""
    raise TypeError(f"no way to draw {type(block).__name__} as Markdown")


@block_markdown.register
def _(block: Text) -> str:
    if block.kind == "code":
        return "\n".join("    " + clean(line) for line in block.paragraphs)
    headline = [f"**{words(block.headline)}**"] if block.headline else []
    terms = "\n".join(f"- **{words(question)}:** {words(answer)}" for question, answer in block.terms)
    return "\n\n".join([*headline, *(words(line) for line in block.paragraphs), *([terms] if terms else [])])


@block_markdown.register
def _(block: Table) -> str:
    rule = ["---:" if at in block.numeric else "---" for at in range(len(block.header))]
    lines = [_line([words(cell) for cell in row]) for row in (block.header, *block.rows)]
    return "\n".join([words(block.caption), "", lines[0], _line(rule), *lines[1:]])


@block_markdown.register(Plot)
@block_markdown.register(HeatMap)
@block_markdown.register(Bars)
def _(block: Plot | HeatMap | Bars) -> str:
    return f"{words(block.title)}. {words(block.says)}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
