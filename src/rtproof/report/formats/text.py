# SPDX-License-Identifier: Apache-2.0
"""Plain text for terminals, at most about 100 columns wide, without colour."""

import textwrap
from functools import singledispatch

from rtproof.core.printable import clean
from rtproof.report.blocks import BarPart, Bars, Block, HeatMap, Plot, Section, Table, Text
from rtproof.report.plot_data import BarAxis, bar_axis, sparklines
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
def _(block: Plot | HeatMap) -> str:
    says = textwrap.fill(f"{clean(block.title)}. {clean(block.says)}", page_width())
    return "\n".join([says, *sparklines(block)])


BAR_WIDTH, LEAST_BAR_WIDTH = 50, 20
"""Of a bar, in letters."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@block_text.register
def _(block: Bars) -> str:
    """Each bar as letters, in the length that it has on the axis; of a short part nothing may be left.

    If the longest name leaves too little room, each name has lines of its own.
    """
    axis = bar_axis(block) if block.log else BarAxis((0.0, block.end))
    letters = {kind: LETTERS[at % len(LETTERS)] for at, kind in enumerate(block.kinds)}
    longest = max((len(clean(label)) for label, _ in block.bars), default=0)
    room = page_width() - max(map(len, block.values), default=0) - 3
    apart = longest > room - LEAST_BAR_WIDTH
    longest = 0 if apart else longest
    width = min(BAR_WIDTH, max(room - longest, LEAST_BAR_WIDTH))
    lines = []
    for (label, parts, below), value in zip(block.rows, block.values or [""] * len(block.bars), strict=True):
        lines += textwrap.wrap(clean(label), page_width()) if apart else []
        name = "" if apart else clean(label)
        lines.append(f"{name:<{longest}}  {_letters(parts, letters, axis, width)} {clean(value)}")
        for part in below:
            lines += textwrap.wrap(clean(part.words), page_width(), initial_indent="  ", subsequent_indent="  ")
    legend = ", ".join(f"{letter}: {clean(kind)}" for kind, letter in letters.items())
    begin, end = f"{axis.ticks[0]:,.10g} ", f"{axis.ticks[-1]:,.1f} {clean(block.x_label)}"
    begin_width = max(min(width, page_width() - longest - 2 - len(end)), len(begin))
    lines.append(f"{'':<{longest}}  {begin:<{begin_width}}{end}")
    says = textwrap.fill(f"{clean(block.title)}. {clean(block.says)}", page_width())
    return "\n".join([says, *lines, *textwrap.wrap(legend, page_width())])


def _letters(parts: tuple[BarPart, ...], letters: dict[str, str], axis: BarAxis, width: int) -> str:
    """One letter for each step of the axis: that of the part which lies at the middle of the step.

    A bar in which no middle lies has the letter of its last part.
    """
    drawn = [(axis.place(part.begin), axis.place(part.end), letters[part.kind]) for part in parts]
    middles = [(at + 0.5) / width for at in range(width)]
    line = "".join(next((letter for begin, end, letter in drawn if begin <= at < end), " ") for at in middles)
    if line.strip() or not drawn:
        return line
    place = min(int(drawn[0][0] * width), width - 1)
    return f"{line[:place]}{drawn[-1][2]}{line[place + 1 :]}"
