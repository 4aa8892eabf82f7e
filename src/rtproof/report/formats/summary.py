# SPDX-License-Identifier: Apache-2.0
"""One page of A4 for people who decide: the verdict, one picture, the conditions and the cautions. Needs matplotlib.

It is one HTML file without scripts, made of blocks of the full report. The title, the first sentence, the picture and
the conditions always stand on it. Then come as many answers and cautions as fit; those that do not fit are counted.
"""

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtproof.core.phrases import quantity
from rtproof.report.blocks import Plot, Section, Table, Text
from rtproof.report.formats.html import HtmlMarkup, html_element
from rtproof.report.formats.svg import figure_file

SUFFIX = ".summary.html"
ONLY_PART = True

MOST_PIECES = 6
"""Cautions, or answers."""
LONGEST = 180
"""The most characters of the sentences of one text that has more than one."""
CUT_AT = 400
"""A single sentence, title or value that is longer than any of rtproof's own ends in "...": a file may be hostile."""
LONGEST_HEADLINE = 40
"""A longer headline has the letters of a sentence."""
PAGE_MM, HEADING_MM, PICTURE_MM = 262, 11, 52
"""Height of the page, with some millimetres to spare; of a heading; and of the picture without its sentence."""


@dataclass(frozen=True)
class _Letters:
    """A size of letters: how many surely fit into a line, the height of a line, and what is above a text."""

    in_line: int
    line_mm: float
    above_mm: float = 1.0

    def height_mm(self, text: str) -> float:
        """The height of a text. A letter of several bytes may be wide."""
        return self.above_mm + self.line_mm * math.ceil(max(len(text.encode()), 1) / self.in_line)


BODY, SAYS, HEADLINE, VALUE = _Letters(95, 4.6), _Letters(70, 6.3), _Letters(32, 10.2), _Letters(30, 4.6, 0.5)
LEFT_OUT = (
    "What this page leaves out: type rtproof show, the folder or file of this run, and --section verdict, "
    "--section doubts or --all."
)
CONDITIONS = {
    "system": ("machine", "processor", "kernel", "in effect", "virtual machine"),
    "evidence": ("probe", "policy", "priority", "CPUs", "period", "duration"),
    "repeat": ("measuring began", "ended"),
}
"""By section: the rows of its tables that are the conditions of a run, by their first cells."""
NAMES = {"in effect": "preemption"}
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_MORE = re.compile(r"\(\d[\d,]* more sentences?\)$")
_DOUBT = re.compile(r"(?:Warning|INVALID): (.*) \([^()]*\)")
ADVICE = "What to do: "
NOT_CAUTIONS = "forecast"
"""Its doubts are about the forecast, which this page does not have."""
STYLE = HtmlMarkup("""
@page { size: A4; margin: 14mm }
body { font: 9.5pt/1.35 sans-serif; color: #1b2430; max-width: 182mm; margin: 0 auto }
h1 { font-size: 10pt; font-weight: normal; color: #56616f; margin: 0 0 3mm; overflow-wrap: anywhere }
h2 { font-size: 11pt; margin: 4mm 0 1mm; border-bottom: .3mm solid #dddddd }
p, ul, dl { margin: 1mm 0 }
ul { padding-left: 5mm }
.headline { font-size: 26pt; font-weight: bold; line-height: 1.1 }
.good { color: #1d6b2f } .bad { color: #a61b1b } .doubt { color: #8a5a00 }
.says { font-size: 13pt }
dl { display: grid; grid-template-columns: 1fr 1fr; gap: .5mm 6mm }
dl div { display: flex; gap: 2mm; overflow-wrap: anywhere }
dt { color: #56616f; flex: 0 0 27mm } dd { margin: 0 }
svg { width: 100%; height: 50mm }
""")


@dataclass(frozen=True)
class _Piece:
    """A part of the page, and how high it is. more: whether it says that something is left out."""

    markup: HtmlMarkup
    height_mm: float
    more: bool = False


def draw(title: str, sections: list[Section]) -> bytes:
    """The page as a whole HTML document in UTF-8. UserError without matplotlib, if there is a plot to draw."""
    head, answers = _claim(sections)
    picture, conditions = list(_picture(sections)), _conditions(sections)
    name = _short(title)
    cautions = [_piece("li", _whole_sentences(each)) for each in _cautions(sections)]
    headings = sum(map(bool, (picture, conditions, cautions)))
    fixed_mm = BODY.height_mm(name) + BODY.height_mm(LEFT_OUT) + headings * HEADING_MM
    room_mm = PAGE_MM - fixed_mm - sum(piece.height_mm for piece in (*head, *picture, *conditions))
    least = _fitting(cautions, 0, 1, "li", "caution")
    answers = _fitting(answers, room_mm - sum(piece.height_mm for piece in least), 0, "p", "answer")
    room_mm -= sum(piece.height_mm for piece in answers)
    cautions = _fitting(cautions, room_mm, 1, "li", "caution")
    shown = [*head, *answers, *cautions]
    listed = [html_element("ul", *(piece.markup for piece in cautions))] if cautions else []
    body = html_element(
        "body",
        html_element("h1", name),
        *(piece.markup for piece in (*head, *answers)),
        *_part("Picture", [piece.markup for piece in picture]),
        *_part("Conditions", [piece.markup for piece in conditions]),
        *_part("Cautions", listed),
        *([html_element("p", LEFT_OUT)] if any(piece.more for piece in shown) else []),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    about = html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", http_equiv="Content-Security-Policy", content=policy),
        html_element("title", title),
        html_element("style", STYLE),
    )
    return f"<!doctype html>\n{html_element('html', about, body, lang='en')}\n".encode()


def _fitting(pieces: Sequence[_Piece], room_mm: float, least: int, tag: str, noun: str) -> list[_Piece]:
    """The first pieces that fit, MOST_PIECES at most and so many at least, and how many more there are."""
    for kept in range(min(len(pieces), MOST_PIECES), -1, -1):
        left = len(pieces) - kept
        counted = [_piece(tag, f"and {quantity(left, f'more {noun}')}", more=True)] if left else []
        shown = [*pieces[:kept], *counted]
        if kept <= least or sum(piece.height_mm for piece in shown) <= room_mm:
            break
    return shown


def _short(text: str) -> str:
    return textwrap.shorten(text, CUT_AT, placeholder=" ...")


def _piece(tag: str, text: str, letters: _Letters = BODY, *, more: bool = False, **attributes: str) -> _Piece:
    told = more or bool(_MORE.search(text))
    return _Piece(html_element(tag, text, **attributes), letters.height_mm(text), told)


def _whole_sentences(text: str) -> str:
    """The first sentences of a text that are short together, at least one, and how many more there are."""
    first, *more = _SENTENCE_END.split(" ".join(text.split()))
    kept = [_short(first)]
    while more and len(" ".join((*kept, more[0]))) <= LONGEST:
        kept.append(more.pop(0))
    return " ".join((*kept, f"({quantity(len(more), 'more sentence')})")) if more else " ".join(kept)


def _part(name: str, children: Sequence[HtmlMarkup]) -> list[HtmlMarkup]:
    return [html_element("section", html_element("h2", name), *children)] if children else []


def _texts(sections: Sequence[Section]) -> Iterator[tuple[Section, Text]]:
    return ((section, block) for section in sections for block in section.blocks if isinstance(block, Text))


def _claim(sections: Sequence[Section]) -> tuple[list[_Piece], list[_Piece]]:
    """The headline with its first sentence, and the other sentences and answers; of another page the first headline."""
    found = [text for _, text in _texts(sections) if text.headline]
    claim = next((text for text in found if text.terms), found[0] if found else None)
    if claim is None:
        return [], []
    headline = _short(claim.headline)
    large = len(headline) <= LONGEST_HEADLINE
    letters, size = (HEADLINE, "headline") if large else (SAYS, "says")
    says = [_piece("p", _whole_sentences(each), SAYS, class_="says") for each in claim.paragraphs]
    terms = [_piece("p", f"{asked}: {_whole_sentences(answer)}") for asked, answer in claim.terms]
    return [_piece("p", headline, letters, class_=f"{size} {claim.kind}"), *says[:1]], [*says[1:], *terms]


def _picture(sections: Sequence[Section]) -> Iterator[_Piece]:
    """The first plot that a page shows first, or else the first with points."""
    plots = [block for section in sections for block in section.blocks if isinstance(block, Plot)]
    filled = [plot for plot in plots if any(curve.x for curve in plot.curves)]
    if filled:
        plot = next((each for each in filled if each.foremost), filled[0])
        drawn = figure_file("", [Section("picture", plot.title, (plot,))], "svg", {"Date": None, "Creator": "rtproof"})
        yield _Piece(HtmlMarkup(drawn[drawn.index(b"<svg") :].decode()), PICTURE_MM)
        yield _piece("p", plot.says)


def _conditions(sections: Sequence[Section]) -> list[_Piece]:
    rows = []
    for section in sections:
        tables = [block for block in section.blocks if isinstance(block, Table)]
        cells = {row[0]: row[1] for table in tables for row in table.rows if len(row) > 1}
        rows += [
            (NAMES.get(name, name), _short(cells[name])) for name in CONDITIONS.get(section.name, ()) if cells.get(name)
        ]
        if section.name == "loads":
            rows.append(("load", _short(_loads(section))))
    items = (html_element("div", html_element("dt", name), html_element("dd", value)) for name, value in rows)
    heights = [VALUE.height_mm(value) for _, value in rows]
    height_mm = sum(max(heights[at : at + 2]) for at in range(0, len(heights), 2))
    return [_Piece(html_element("dl", *items), height_mm)] if rows else []


def _loads(section: Section) -> str:
    """The names of the loads that ran, or the sentence that none did."""
    tables = [block for block in section.blocks if isinstance(block, Table) and block.header[0] == "counter"]
    said = [" ".join(block.paragraphs) for block in section.blocks if isinstance(block, Text)]
    names = dict.fromkeys(row[0].removeprefix("load.") for table in tables for row in table.rows if row[0])
    return ", ".join(names) or " ".join(said)


def _cautions(sections: Sequence[Section]) -> list[str]:
    """The fact of each doubt and what to do, once. The verdict and its own short list of them are left out."""
    doubts = [text for section, text in _texts(sections) if text.kind == "doubt" and section.name != NOT_CAUTIONS]
    return list(
        dict.fromkeys(_caution(text) for text in doubts if text.paragraphs and not (text.terms or text.foremost))
    )


def _caution(doubt: Text) -> str:
    named = _DOUBT.fullmatch(doubt.headline)
    fact = named[1] if named else doubt.paragraphs[0]
    advice = next((each.removeprefix(ADVICE) for each in doubt.paragraphs if each.startswith(ADVICE)), "")
    return f"{fact.rstrip('.')}. {ADVICE}{advice.rstrip('.')}." if advice else fact
