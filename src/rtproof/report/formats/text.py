# SPDX-License-Identifier: Apache-2.0
"""Plain text for terminals, at most about 100 columns wide, without colour. Of a plot it has what the plot says."""

import textwrap
from functools import singledispatch

from rtproof.core.printable import clean
from rtproof.report.blocks import Bars, Block, HeatMap, Plot, Section, Table, Text
from rtproof.report.text_table import lay_out, page_width

SUFFIX = ".txt"

MARKS = {"bad": "! ", "doubt": "- ", "code": "    "}


def draw(title: str, sections: list[Section]) -> bytes:
    """The report as text in UTF-8, with one newline after each line and no trailing blanks."""
    parts = [_heading(clean(title), "=")]
    for section in sections:
        parts.append(_heading(clean(section.title), "-"))
        parts.extend(block_text(block) for block in section.blocks)
    lines = "\n\n".join(part for part in parts if part).splitlines()
    return ("\n".join(line.rstrip() for line in lines) + "\n").encode()


def _heading(words: str, rule: str) -> str:
    return f"{words}\n{rule * min(len(words), page_width())}"


@singledispatch
def block_text(block: Block) -> str:
    """One block as lines. What a page folds stands whole."""
    raise TypeError(f"no way to draw {type(block).__name__} as text")


@block_text.register
def _(block: Text) -> str:
    mark = MARKS.get(block.kind, "")
    lines = textwrap.wrap(clean(block.headline), page_width())
    lines += [_paragraph(clean(line), mark, wrap=block.kind != "code") for line in block.paragraphs]
    longest = max((len(clean(question)) for question, _ in block.terms), default=0)
    lines += [
        _paragraph(clean(answer), f"{clean(question):<{longest}}  ", wrap=True) for question, answer in block.terms
    ]
    return "\n".join(lines)


def _paragraph(line: str, mark: str, wrap: bool) -> str:
    if not wrap:
        return mark + line
    return textwrap.fill(
        line, page_width(), initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False
    )


@block_text.register
def _(block: Table) -> str:
    return lay_out(block)


@block_text.register(Plot)
@block_text.register(HeatMap)
@block_text.register(Bars)
def _(block: Plot | HeatMap | Bars) -> str:
    return textwrap.fill(f"{clean(block.title)}. {clean(block.says)}", page_width())
