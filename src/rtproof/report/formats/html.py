# SPDX-License-Identifier: Apache-2.0
"""One self-contained page for a browser. It loads nothing, and is light or dark as the reader's system is."""

import html
import json
import math
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch
from hashlib import sha256
from importlib import resources
from urllib.parse import quote

from rtproof import report
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.report import plot_data
from rtproof.report.blocks import BarPart, Bars, Block, HeatMap, Link, Plot, Section, Table, Text
from rtproof.report.section_list import GROUPS

# The next functions build HTML into which no text can be injected: they escape every string but ``HtmlMarkup``.


VOID = {"meta", "link", "br", "hr", "img", "col"}


class HtmlMarkup(str):
    """Text that is HTML already, so that it is not escaped."""

    __slots__ = ()


def html_element(kind: str, /, *children: str, **attributes: str | bool | None) -> HtmlMarkup:
    """One element with its children and attributes.

    Attributes are written class_ for class and aria_label for aria-label. True makes an attribute without a value; None
    and False leave it out.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if kind in VOID:
        return HtmlMarkup(f"<{kind}{given}>")
    return HtmlMarkup(f"<{kind}{given}>{join_markup(children)}</{kind}>")


def join_markup(children: Iterable[str]) -> HtmlMarkup:
    """The children one after the other, with the plain strings escaped."""
    return HtmlMarkup("".join(child if isinstance(child, HtmlMarkup) else escape_html(child) for child in children))


def escape_html(words: str) -> HtmlMarkup:
    """Plain text as HTML, without the characters that no document should hold."""
    return HtmlMarkup(html.escape(clean(words)))


def json_script(identity: str, data: object) -> HtmlMarkup:
    """An element with data for the page's script. < > & become \\u003c and so on: no string can end the element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return html_element("script", HtmlMarkup(text), type="application/json", id=identity)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape_html(value)}"'


SUFFIX = ".html"

STYLES = ("vendor/uplot/uPlot.min.css", "report.css")
SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "report.js")
FAVICON = "data:,"
RESTS_ON = "What the verdict rests on, how sure it is, and for what it is valid"
LONG = 32
"""A cell with more characters may be broken into lines and gets room between short cells."""
NO_SCRIPT = (
    "The plots are drawn by a script, which this viewer does not run. The data of each plot is in the table below it."
)


FirstScreen = tuple[str, dict[str, Block]]
"""The id of the block that says what the page claims, and what stands below it by ids: plots and reasons."""


def draw(title: str, sections: list[Section]) -> bytes:
    """The report as a whole HTML document in UTF-8."""
    scripts = [_packaged(name) for name in SCRIPTS]
    blocks = [each for section in sections for each in _identified(section)]
    plots = {identity: plot_data.plot_script_data(one) for identity, one in blocks if isinstance(one, Plot | HeatMap)}
    first = _first_screen(blocks)
    left = [section for section in sections if not all(identity in first[1] for identity, _ in _identified(section))]
    groups = _groups(left, first)
    shown = [_section(section, first) for section in left if section.group not in groups]
    folded = [_group(name, some, first) for name, some in groups.items()]
    links = [html_element("li", html_element("a", section.title, href=f"#{section.name}")) for section in left]
    amount = html_element("summary", f"{quantity(len(links), 'section')} on this page")
    listed = html_element("details", amount, html_element("ul", *links))
    navigation = html_element("nav", listed, aria_label="Sections of the report")
    no_script = html_element("noscript", html_element("p", NO_SCRIPT))
    body = html_element(
        "body",
        html_element("a", "Skip to the report", href="#main", class_="skip"),
        html_element("header", html_element("h1", title)),
        *([] if folded else [navigation]),
        html_element("main", *shown, *([navigation] if folded else []), *folded, id="main"),
        html_element("footer", no_script, html_element("p", "Made by rtproof.")),
        json_script("plots", plots),
        *(html_element("script", script) for script in scripts),
    )
    page = html_element("html", _head(title, scripts), body, lang="en")
    return f"<!doctype html>\n{page}\n".encode()


def _groups(sections: list[Section], first: FirstScreen) -> dict[str, list[Section]]:
    """The sections that are folded, by group in the order of GROUPS: all but those beside the claim."""
    beside = [section.group for section in sections if any(each == first[0] for each, _ in _identified(section))]
    stand_open = {"", *beside}
    names = [group for group in GROUPS if group not in stand_open]
    found = {name: [section for section in sections if section.group == name] for name in names}
    return {name: some for name, some in found.items() if some}


def _group(name: str, sections: list[Section], first: FirstScreen) -> HtmlMarkup:
    """Folded sections under their heading, which tells their titles. A link to anything in them unfolds them."""
    titles = [section.title for section in sections]
    told = [] if titles == [name] else [html_element("span", ", ".join(titles))]
    summary = html_element("summary", html_element("h2", name), *told)
    return html_element("details", summary, *(_section(section, first, "h3") for section in sections), class_="group")


def _first_screen(blocks: list[tuple[str, Block]]) -> FirstScreen:
    """The claim, the reasons and the plots. Without a claim and a plot nothing leaves its section.

    The claim is the first block with answers, which then stand below the plots; without any, the first with a headline.
    """
    texts = [(identity, block) for identity, block in blocks if isinstance(block, Text)]
    answered = [identity for identity, block in texts if block.terms]
    claim = next(iter(answered or [identity for identity, block in texts if block.headline]), "")
    moved: dict[str, Block] = {
        identity: block for identity, block in blocks if isinstance(block, Plot | Text | Table) and block.foremost
    }
    return claim, moved if claim and any(isinstance(block, Plot) for block in moved.values()) else {}


def _identified(section: Section) -> list[tuple[str, Block]]:
    """The blocks of a section with their ids, which are unique on the page."""
    return [(f"{section.name}-{at}", block) for at, block in enumerate(section.blocks, 1)]


def _packaged(name: str) -> HtmlMarkup:
    """The text of a file, without indentation, and without the lines that are only a comment, but for the licence."""
    lines = resources.files(report).joinpath(name).read_text(encoding="utf-8").splitlines()
    kept = (line.strip() for line in lines if not line.lstrip().startswith("//") or "SPDX" in line)
    return HtmlMarkup("\n".join(line for line in kept if line) + "\n")


def _head(title: str, scripts: list[HtmlMarkup]) -> HtmlMarkup:
    """The browser loads nothing and runs only these styles and scripts, which it knows by hash."""
    style = HtmlMarkup("\n".join(_packaged(name) for name in STYLES))
    hashes = [
        " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
        for texts in ([style], scripts)
    ]
    policy = (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", http_equiv="Content-Security-Policy", content=policy),
        html_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_element("meta", name="color-scheme", content="light dark"),
        html_element("title", title),
        html_element("link", rel="icon", href=FAVICON),
        html_element("style", style),
    )


def _section(section: Section, first: FirstScreen, level: str = "h2") -> HtmlMarkup:
    heading, (claim, moved) = f"{section.name}-title", first
    blocks = {identity: block for identity, block in _identified(section) if identity not in moved}
    if claim in blocks and moved:
        drawn = _with_first_screen(section, blocks, first)
    else:
        drawn = [block_html(block, identity) for identity, block in blocks.items()]
    return html_element(
        "section", html_element(level, section.title, id=heading), *drawn, id=section.name, aria_labelledby=heading
    )


def _with_first_screen(section: Section, blocks: dict[str, Block], first: FirstScreen) -> list[HtmlMarkup]:
    """The blocks of the section with the claim, and the first screen. In a group all that follows it is folded."""
    claim, at = blocks[first[0]], list(blocks).index(first[0])
    assert isinstance(claim, Text)
    drawn = [block_html(block, identity) for identity, block in blocks.items() if identity != first[0]]
    before, after = drawn[:at], drawn[at:]
    if claim.headline and claim.terms:
        after.insert(0, block_html(replace(claim, paragraphs=(), headline="", kind="normal"), f"{first[0]}-answers"))
        claim = replace(claim, terms=())
    if after and section.group:
        after = [html_element("details", html_element("summary", RESTS_ON), *after, class_="rest")]
    return [*before, block_html(claim, first[0]), *_below_claim(section, first), *after]


def _below_claim(section: Section, first: FirstScreen) -> list[HtmlMarkup]:
    """A link to the section's first doubt, the plots, and the reasons with the doubts as the last of them."""
    claim, moved = first
    texts = [(at, block) for at, block in _identified(section) if isinstance(block, Text) and at != claim]
    doubts = [(at, block.headline) for at, block in texts if block.kind == "doubt" and block.headline][:1]
    links = [html_element("p", html_element("a", words, href=f"#{at}"), class_="warning") for at, words in doubts]
    pictures = [
        _figure(plot, at, [html_element("figcaption", _data(plot, at, html_element("p", plot.says)))])
        for at, plot in moved.items()
        if isinstance(plot, Plot)
    ]
    reasons = [(at, block) for at, block in moved.items() if not isinstance(block, Plot)]
    reasons.sort(key=lambda each: isinstance(each[1], Text) and each[1].kind == "doubt")
    told = [block_html(block, at) for at, block in reasons]
    below = [html_element("div", *told, class_="reasons")] if told else []
    return [*links, html_element("div", *pictures, class_="pictures"), *below]


@singledispatch
def block_html(block: Block, identity: str) -> HtmlMarkup:
    """One block as HTML. ``identity`` is its id, which is unique on the page."""
    raise TypeError(f"no way to draw {type(block).__name__} as HTML")


@block_html.register
def _(block: Text, identity: str) -> HtmlMarkup:
    if block.kind == "code":
        lines = HtmlMarkup("\n".join(join_markup([line]) for line in block.paragraphs))
        return html_element("pre", html_element("code", lines), id=identity, tabindex="0")
    headline = [html_element("p", block.headline, class_="headline")] if block.headline else []
    paragraphs = [html_element("p", line) for line in block.paragraphs]
    terms = [
        html_element("div", html_element("dt", question), html_element("dd", answer))
        for question, answer in block.terms
    ]
    answers = [html_element("dl", *terms)] if terms else []
    return html_element("div", *headline, *paragraphs, *answers, class_=f"text {block.kind}", id=identity)


@block_html.register
def _(block: Table, identity: str) -> HtmlMarkup:
    if not block.folded:
        return _table(block, identity)
    amount = f" ({quantity(len(block.rows), 'row')})"
    return html_element(
        "details", html_element("summary", block.caption + amount), _table(block, identity), class_="folded"
    )


def _table(table: Table, identity: str) -> HtmlMarkup:
    only = _is_all_numbers(table)
    head = html_element(
        "tr", *(_cell("th", words, at in table.numeric and not only, "col") for at, words in enumerate(table.header))
    )
    body = html_element("tbody", *(_row(table, at) for at in range(len(table.rows))))
    caption = html_element("caption", table.caption)
    drawn = html_element("table", caption, html_element("thead", head), body, class_="n" if only else None)
    return html_element("div", drawn, class_="scroll", id=identity, role="region", aria_label=table.caption)


def _is_all_numbers(table: Table) -> bool:
    """Whether one class of the whole table aligns its cells, which keeps a page with long tables small."""
    return set(table.numeric) == set(range(len(table.header)))


def _row(table: Table, at: int) -> HtmlMarkup:
    row, only = table.rows[at], _is_all_numbers(table)
    cells = [_cell("td", words, column in table.numeric and not only) for column, words in enumerate(row)]
    if table.row_headers:
        cells[:1] = [_row_header(table, at)] if row[0] or at == 0 else []
    return html_element("tr", *cells)


def _row_header(table: Table, at: int) -> HtmlMarkup:
    """The header cell of a row. It spans the following rows whose first cell is empty."""
    following = next((n for n, row in enumerate(table.rows[at + 1 :], 1) if row[0]), len(table.rows) - at)
    name = table.rows[at][0]
    rowspan = str(following) if following > 1 else None
    return html_element("th", _words(name), scope="row", rowspan=rowspan, class_="long" if len(name) > LONG else None)


def _words(cell: str) -> str:
    """The content of a cell. A link is relative and quoted, so that it can only lead to a file beside the report."""
    return html_element("a", cell, href=f"./{quote(cell.path)}") if isinstance(cell, Link) else cell


def _cell(kind: str, words: str, numeric: bool, scope: str | None = None) -> HtmlMarkup:
    return html_element(
        kind, _words(words), scope=scope, class_="n" if numeric else "long" if len(words) > LONG else None
    )


@block_html.register(Plot)
@block_html.register(HeatMap)
def _(block: Plot | HeatMap, identity: str) -> HtmlMarkup:
    return _figure(block, identity, [html_element("figcaption", block.says), _data(block, identity)])


def _figure(block: Plot | HeatMap, identity: str, below: list[HtmlMarkup]) -> HtmlMarkup:
    heading = f"{identity}-title"
    return html_element(
        "figure",
        html_element("h3", block.title, id=heading),
        html_element("div", class_="chart", role="img", aria_label=block.title),
        *below,
        id=identity,
        aria_labelledby=heading,
    )


def _data(block: Plot | HeatMap, identity: str, *before: HtmlMarkup) -> HtmlMarkup:
    """The points of a plot, folded. before: what stands above them."""
    data = plot_data.plot_table(block)
    amount = f"Data of this plot ({quantity(len(data.rows), 'row')})"
    return html_element("details", html_element("summary", amount), *before, _table(data, f"{identity}-data"))


BAR_UNITS = 1_000
"""The width of a bar's picture in its own units; the page scales it."""
BAR_COLOURS = 12
"""report.css has a class for each."""
BAR_TICKS = 5


def bar_ticks(bars: Bars) -> tuple[float, ...]:
    """Whole numbers from 0 on, or decades, equally far apart on the axis, which begins and ends at one of them."""
    if bars.log:
        first, last = math.floor(math.log10(bars.begin)), math.ceil(math.log10(bars.end))
        return tuple(10.0**exponent for exponent in range(first, max(last, first + 1) + 1))
    step = plot_data.nice_width(bars.end / BAR_TICKS)
    return tuple(range(0, max(math.ceil(bars.end / step), 1) * step + 1, step))


def bar_place(bars: Bars, at: float) -> float:
    """Where on the axis of the bars a value lies, from 0 to 1. A value before its begin lies at 0."""
    ticks = bar_ticks(bars)
    ends = (ticks[0], max(at, ticks[0]), ticks[-1])
    low, place, high = (math.log10(each) if bars.log else each for each in ends)
    return (place - low) / (high - low)


@block_html.register
def _(block: Bars, identity: str) -> HtmlMarkup:
    heading = f"{identity}-title"
    classes = {kind: f"part-{at % BAR_COLOURS}" for at, kind in enumerate(block.kinds)}
    rows = [
        html_element(
            "div",
            html_element("dt", label),
            html_element("dd", _bar(label, parts, block, classes)),
            *([html_element("dd", value, class_="value")] if value else []),
        )
        for (label, parts), value in zip(block.bars, block.values or [""] * len(block.bars), strict=True)
    ]
    ticks = [part for at in bar_ticks(block) for part in (html_element("span", f"{at:,.10g}"), " ")]
    squares = {kind: html_element("rect", width="12", height="12", class_=name) for kind, name in classes.items()}
    legend = [
        html_element("li", html_element("svg", square, viewBox="0 0 12 12", aria_hidden="true"), kind)
        for kind, square in squares.items()
    ]
    return html_element(
        "figure",
        html_element("h3", block.title, id=heading),
        html_element("dl", *rows),
        html_element("div", html_element("span", block.x_label), html_element("div", *ticks), class_="axis"),
        html_element("ul", *legend, class_="legend"),
        html_element("figcaption", block.says),
        id=identity,
        class_="bars valued" if block.values else "bars",
        aria_labelledby=heading,
    )


def _bar(label: str, parts: tuple[BarPart, ...], bars: Bars, classes: dict[str, str]) -> HtmlMarkup:
    """The picture of one bar. The words of each part come up when the pointer rests on it."""
    drawn = [
        html_element(
            "rect",
            html_element("title", part.words),
            x=f"{BAR_UNITS * bar_place(bars, part.begin):.2f}",
            width=f"{BAR_UNITS * (bar_place(bars, part.end) - bar_place(bars, part.begin)):.2f}",
            height="18",
            class_=classes[part.kind],
        )
        for part in parts
    ]
    lines = "".join(f"M{BAR_UNITS * bar_place(bars, at):.0f} 0V18" for at in bar_ticks(bars))
    decades = [html_element("path", d=lines, class_="decade")] if bars.log else []
    return html_element(
        "svg", *decades, *drawn, viewBox=f"0 0 {BAR_UNITS} 18", preserveAspectRatio="none", role="img", aria_label=label
    )
