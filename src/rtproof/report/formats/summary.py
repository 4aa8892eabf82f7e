# SPDX-License-Identifier: Apache-2.0
"""One page of A4 for people who decide: the verdict, one picture, the conditions and the cautions. Needs matplotlib.

It is one HTML file without scripts, made of blocks of the full report. What does not fit is counted.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence

from rtproof.core.phrases import quantity
from rtproof.report.blocks import Plot, Section, Table, Text
from rtproof.report.formats.html import HtmlMarkup, html_element
from rtproof.report.formats.svg import figure_file

SUFFIX = ".summary.html"
ONLY_PART = True

MOST_CAUTIONS = 6
LONGEST, LONGEST_NAME = 180, 80
"""The most characters of the sentences of one text, and of a name or value, which ends in "..." if it is longer."""
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


def draw(title: str, sections: list[Section]) -> bytes:
    """The page as a whole HTML document in UTF-8. UserError without matplotlib, if there is a plot to draw."""
    claim, cautions = _claim(sections), _cautions(sections)
    left_out = any(" more sentence" in part or " more caution" in part for part in (*claim, *cautions))
    body = html_element(
        "body",
        html_element("h1", _short(title, LONGEST)),
        *claim,
        *_part("Picture", list(_picture(sections))),
        *_part("Conditions", _conditions(sections)),
        *_part("Cautions", cautions),
        *([html_element("p", LEFT_OUT)] if left_out else []),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", http_equiv="Content-Security-Policy", content=policy),
        html_element("title", title),
        html_element("style", STYLE),
    )
    return f"<!doctype html>\n{html_element('html', head, body, lang='en')}\n".encode()


def _short(text: str, most: int = LONGEST_NAME) -> str:
    return textwrap.shorten(text, most, placeholder=" ...")


def _whole_sentences(text: str) -> str:
    """The first sentences of a text that fit, at least one, and how many more there are."""
    first, *more = _SENTENCE_END.split(" ".join(text.split()))
    kept = [_short(first, 2 * LONGEST)]
    while more and len(" ".join((*kept, more[0]))) <= LONGEST:
        kept.append(more.pop(0))
    return " ".join((*kept, f"({quantity(len(more), 'more sentence')})")) if more else " ".join(kept)


def _part(name: str, children: Sequence[HtmlMarkup]) -> list[HtmlMarkup]:
    return [html_element("section", html_element("h2", name), *children)] if children else []


def _texts(sections: Sequence[Section]) -> Iterator[tuple[Section, Text]]:
    return ((section, block) for section in sections for block in section.blocks if isinstance(block, Text))


def _claim(sections: Sequence[Section]) -> list[HtmlMarkup]:
    """The verdict, its sentence and its answers; of another page the first block with a headline."""
    found = [text for _, text in _texts(sections) if text.headline]
    claim = next((text for text in found if text.terms), found[0] if found else None)
    if claim is None:
        return []
    return [
        html_element("p", _short(claim.headline, LONGEST), class_=f"headline {claim.kind}"),
        *(html_element("p", _whole_sentences(each), class_="says") for each in claim.paragraphs[:2]),
        *(html_element("p", f"{asked}: {_whole_sentences(answer)}") for asked, answer in claim.terms[:4]),
    ]


def _picture(sections: Sequence[Section]) -> Iterator[HtmlMarkup]:
    """The first plot that a page shows first, or else the first with points."""
    plots = [block for section in sections for block in section.blocks if isinstance(block, Plot)]
    filled = [plot for plot in plots if any(curve.x for curve in plot.curves)]
    if filled:
        plot = next((each for each in filled if each.foremost), filled[0])
        drawn = figure_file("", [Section("picture", plot.title, (plot,))], "svg", {"Date": None, "Creator": "rtproof"})
        yield HtmlMarkup(drawn[drawn.index(b"<svg") :].decode())
        yield html_element("p", plot.says)


def _conditions(sections: Sequence[Section]) -> list[HtmlMarkup]:
    rows = []
    for section in sections:
        tables = [block for block in section.blocks if isinstance(block, Table)]
        cells = {row[0]: row[1] for table in tables for row in table.rows if len(row) > 1}
        rows += [(name, cells[name]) for name in CONDITIONS.get(section.name, ()) if cells.get(name)]
        if section.name == "loads":
            rows.append(("load", _loads(section)))
    items = (
        html_element("div", html_element("dt", NAMES.get(name, name)), html_element("dd", _short(value)))
        for name, value in rows
    )
    return [html_element("dl", *items)] if rows else []


def _loads(section: Section) -> str:
    """The names of the loads that ran, or the sentence that none did."""
    tables = [block for block in section.blocks if isinstance(block, Table) and block.header[0] == "counter"]
    said = [" ".join(block.paragraphs) for block in section.blocks if isinstance(block, Text)]
    names = dict.fromkeys(row[0].removeprefix("load.") for table in tables for row in table.rows if row[0])
    return ", ".join(names) or " ".join(said)


def _cautions(sections: Sequence[Section]) -> list[HtmlMarkup]:
    """The fact of each doubt and what to do, once. The verdict and its own short list of them are left out."""
    doubts = [text for section, text in _texts(sections) if text.kind == "doubt" and section.name != NOT_CAUTIONS]
    told = list(
        dict.fromkeys(_caution(text) for text in doubts if text.paragraphs and not (text.terms or text.foremost))
    )
    left = len(told) - MOST_CAUTIONS
    shown = [html_element("li", _whole_sentences(each)) for each in told[:MOST_CAUTIONS]]
    more = [html_element("li", f"and {quantity(left, 'more caution')}")] if left > 0 else []
    return [html_element("ul", *shown, *more)] if shown else []


def _caution(doubt: Text) -> str:
    named = _DOUBT.fullmatch(doubt.headline)
    fact = named[1] if named else doubt.paragraphs[0]
    advice = next((each.removeprefix(ADVICE) for each in doubt.paragraphs if each.startswith(ADVICE)), "")
    return f"{fact.rstrip('.')}. {ADVICE}{advice.rstrip('.')}." if advice else fact
