# SPDX-License-Identifier: Apache-2.0
"""One self-contained page for a browser: nothing is loaded from anywhere, light or dark as the reader's system is."""

from base64 import b64encode
from functools import singledispatch
from hashlib import sha256
from importlib import resources
from urllib.parse import quote

from rtproof import report
from rtproof.analysis.phrases import quantity
from rtproof.report import plotdata
from rtproof.report.blocks import Block, HeatMap, Link, Plot, Section, Table, Text
from rtproof.report.markup import Markup, element, join, json_script

SUFFIX = ".html"

STYLES = ("vendor/uplot/uPlot.min.css", "report.css")
SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "report.js")
FAVICON = "data:,"
LONG = 32
"""A cell of a table with more characters may be broken into lines, and is not squeezed between short ones."""
HEAT_STEPS = 8
"""Shades of a cell of a table, besides none; report.css has them."""
NO_SCRIPT = (
    "The plots are drawn by a script, which this viewer does not run. The data of each plot is in the table below it."
)


def draw(title: str, sections: list[Section]) -> bytes:
    """A whole document in UTF-8."""
    scripts = [_packaged(name) for name in SCRIPTS]
    plots = [block for section in sections for block in section.blocks if isinstance(block, Plot | HeatMap)]
    body = element(
        "body",
        element("a", "Skip to the report", href="#main", class_="skip"),
        element("header", element("h1", title)),
        _navigation(sections),
        element("main", *(_section(section) for section in sections), id="main"),
        _footer(),
        json_script("plots", [plotdata.script_data(plot) for plot in plots]),
        *(element("script", script) for script in scripts),
    )
    page = element("html", _head(title, scripts), body, lang="en")
    return f"<!doctype html>\n{page}\n".encode()


def _packaged(name: str) -> Markup:
    return Markup(resources.files(report).joinpath(name).read_text(encoding="utf-8"))


def _head(title: str, scripts: list[Markup]) -> Markup:
    style = Markup("\n".join(_packaged(name) for name in STYLES))
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy([style], scripts)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href=FAVICON),
        element("style", style),
    )


def _policy(styles: list[Markup], scripts: list[Markup]) -> str:
    """Nothing may be loaded and nothing may run but these very styles and scripts, named by their hashes."""
    sources = {"style-src": _hashes(styles), "script-src": _hashes(scripts), "img-src": "data:"}
    allowed = "; ".join(f"{name} {source}" for name, source in sources.items())
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hashes(texts: list[Markup]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)


def _navigation(sections: list[Section]) -> Markup:
    links = [element("li", element("a", section.title, href=f"#{section.name}")) for section in sections]
    return element("nav", element("ul", *links), aria_label="Sections of the report")


def _footer() -> Markup:
    return element("footer", element("noscript", element("p", NO_SCRIPT)), element("p", "Made by rtproof."))


def _section(section: Section) -> Markup:
    heading = f"{section.name}-title"
    blocks = (block_html(block, f"{section.name}-{at}") for at, block in enumerate(section.blocks, 1))
    return element(
        "section", element("h2", section.title, id=heading), *blocks, id=section.name, aria_labelledby=heading
    )


@singledispatch
def block_html(block: Block, identity: str) -> Markup:
    """One block; ``identity`` is unique on the page."""
    raise TypeError(f"no way to draw {type(block).__name__} as HTML")


@block_html.register
def _(block: Text, identity: str) -> Markup:
    if block.kind == "code":
        lines = Markup("\n".join(join([line]) for line in block.paragraphs))
        return element("pre", element("code", lines), id=identity, tabindex="0")
    headline = [element("p", block.headline, class_="headline")] if block.headline else []
    paragraphs = [element("p", line) for line in block.paragraphs]
    terms = [element("dl", *(_term(*each) for each in block.terms))] if block.terms else []
    return element("div", *headline, *paragraphs, *terms, class_=f"text {block.kind}", id=identity)


def _term(question: str, answer: str) -> Markup:
    return element("div", element("dt", question), element("dd", answer))


@block_html.register
def _(block: Table, identity: str) -> Markup:
    if not block.folded:
        return _table(block, identity)
    amount = f" ({quantity(len(block.rows), 'row')})"
    return element("details", element("summary", block.caption + amount), _table(block, identity), class_="folded")


def _table(table: Table, identity: str) -> Markup:
    head = element("tr", *(_cell("th", words, at in table.numeric, "col") for at, words in enumerate(table.header)))
    body = element("tbody", *(_row(table, at) for at in range(len(table.rows))))
    drawn = element("table", element("caption", table.caption), element("thead", head), body)
    return element("div", drawn, class_="scroll", id=identity, role="region", aria_label=table.caption)


def _row(table: Table, at: int) -> Markup:
    row = table.rows[at]
    heat = table.heat[at] if table.heat else (None,) * len(row)
    cells = [
        _cell("td", words, column in table.numeric, shade=share)
        for column, (words, share) in enumerate(zip(row, heat, strict=True))
    ]
    if table.row_headers:
        cells[:1] = [_row_header(table, at)] if row[0] or at == 0 else []
    return element("tr", *cells)


def _row_header(table: Table, at: int) -> Markup:
    """It spans the rows below that name nothing of their own."""
    following = next((n for n, row in enumerate(table.rows[at + 1 :], 1) if row[0]), len(table.rows) - at)
    name = table.rows[at][0]
    rowspan = str(following) if following > 1 else None
    return element("th", _words(name), scope="row", rowspan=rowspan, class_="long" if len(name) > LONG else None)


def _words(cell: str) -> str:
    """A link is relative and quoted, so that it can lead nowhere but to a file beside the report."""
    return element("a", cell, href=f"./{quote(cell.path)}") if isinstance(cell, Link) else cell


def _cell(kind: str, words: str, numeric: bool, scope: str | None = None, shade: float | None = None) -> Markup:
    """A shade is a class, because the page allows no style but its own sheet."""
    classes = ["n"] if numeric else ["long"] if len(words) > LONG else []
    if shade is not None:
        classes.append(f"heat-{round(shade * HEAT_STEPS)}")
    return element(kind, _words(words), scope=scope, class_=" ".join(classes) or None)


@block_html.register(Plot)
@block_html.register(HeatMap)
def _(block: Plot | HeatMap, identity: str) -> Markup:
    heading = f"{identity}-title"
    data = plotdata.table_of(block)
    return element(
        "figure",
        element("h3", block.title, id=heading),
        element("div", class_="chart", role="img", aria_label=block.title),
        element("figcaption", block.says),
        element(
            "details",
            element("summary", f"Data of this plot ({quantity(len(data.rows), 'row')})"),
            _table(data, f"{identity}-data"),
        ),
        id=identity,
        aria_labelledby=heading,
    )
