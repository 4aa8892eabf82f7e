# SPDX-License-Identifier: Apache-2.0
"""The page as text: well formed, labelled, sealed. test_report_browser.py has what only a browser can tell."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import resources

import pytest
from report_cases import CASES, HOSTILE, hostile

from rtproof import report
from rtproof.core.printable import clean
from rtproof.judge.analysis_model import Analysis
from rtproof.report.formats.html import VOID

LOADING = ("src", "href", "data", "action", "poster", "srcset", "background", "formaction", "cite", "ping")


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    path: tuple[str, ...]
    words: str = ""
    children: list["Node"] = field(default_factory=list)


class Document(HTMLParser):
    """A tree that insists on every element being closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.open: list[Node] = []
        self.faults: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{node.tag} is never closed" for node in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs), tuple(each.tag for each in self.open))
        if len(node.attributes) != len(attrs):
            self.faults.append(f"{tag} has an attribute twice")
        self.nodes.append(node)
        if self.open:
            self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1].tag == tag:
            self.open.pop()
        else:
            self.faults.append(f"{tag} is closed in {self.open[-1].tag if self.open else 'nothing'}")

    def handle_data(self, data: str) -> None:
        for node in self.open:
            node.words += data

    def every(self, *tags: str) -> list[Node]:
        return [node for node in self.nodes if node.tag in tags]


def page(analysis: Analysis) -> str:
    return report.render("html", report.title(analysis), report.compose(analysis, None, HOSTILE)).decode()


@pytest.fixture(scope="module", params=list(CASES))
def document(request: pytest.FixtureRequest) -> Document:
    return Document(page(CASES[request.param]()))


def test_elements_are_balanced_and_ids_unique(document: Document) -> None:
    assert document.faults == []
    ids = [node.attributes["id"] for node in document.nodes if "id" in node.attributes]
    assert len(ids) > 10
    assert sorted(ids, key=str) == sorted(set(ids), key=str)


def test_nothing_is_loaded_from_outside(document: Document) -> None:
    loads = [node.attributes[name] or "" for node in document.nodes for name in LOADING if name in node.attributes]
    assert "data:," in loads
    assert [address for address in loads if not address.startswith(("#", "data:"))] == []
    assert not document.every("iframe", "object", "embed", "base", "form", "img", "image")
    styles = "".join(node.words for node in document.every("style"))
    assert "@import" not in styles
    assert "url(" not in styles


def test_the_page_has_language_title_and_landmarks(document: Document) -> None:
    assert document.every("html")[0].attributes["lang"] == "en"
    assert document.every("title")[0].words.startswith("rtproof: ")
    assert [len(document.every(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    links = [node.attributes["href"] for node in document.every("a")]
    assert {f"#{node.attributes['id']}" for node in document.every("section")} <= set(links)


def test_every_figure_has_a_caption_a_label_and_its_data(document: Document) -> None:
    for figure in document.every("figure"):
        children = {child.tag: child for child in figure.children}
        assert len(children["figcaption"].words) > 20
        assert figure.attributes["aria-labelledby"] == children["h3"].attributes["id"]
        assert "Data of this plot" in figure.words
        assert any(node.tag == "td" and "figure" in node.path for node in document.nodes)


def test_every_table_has_a_caption_and_headers_with_a_scope(document: Document) -> None:
    assert document.every("table")
    assert all(table.children[0].tag == "caption" and table.children[0].words for table in document.every("table"))
    assert {node.attributes.get("scope") for node in document.every("th")} <= {"col", "row"}


def test_only_these_very_styles_and_scripts_may_run(document: Document) -> None:
    policy = document.every("meta")[1].attributes["content"] or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    inline = [node for node in document.every("style", "script") if node.attributes.get("type") is None]
    assert len(inline) == 3
    for node in inline:
        digest = base64.b64encode(hashlib.sha256(node.words.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not any(name.startswith("on") or name == "style" for node in document.nodes for name in node.attributes)


def test_hostile_strings_are_words_and_nothing_else() -> None:
    read = Document(page(hostile()))
    assert not [node for node in read.nodes if "onerror" in node.attributes or node.tag == "img"]
    assert len(read.every("script")) == 3
    shown = [node.words for node in read.every("td", "th", "code", "title")]
    assert sum(clean(HOSTILE) in words for words in shown) > 10
    assert HOSTILE not in page(hostile())


# Contrast as WCAG 2 defines it: (L1 + 0.05) / (L2 + 0.05) of the relative luminances.
def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def schemes() -> list[dict[str, str]]:
    text = resources.files(report).joinpath("report.css").read_text()
    return [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", rules)) for rules in text.split("@media")[:2]]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_is_enough_in_both_schemes(scheme: int) -> None:
    colours = schemes()[scheme]
    assert len(colours) > 20
    pairs = [(ink, paper) for ink in ("ink", "soft", "link") for paper in ("page", "paper", "stripe")]
    pairs += [(kind, f"{kind}-paper") for kind in ("good", "bad", "doubt")] + [("limit", "paper")]
    pairs += [("ink", f"{kind}-paper") for kind in ("good", "bad", "doubt")]
    assert [(one, other) for one, other in pairs if contrast(colours[one], colours[other]) < 4.5] == []
    curves = [name for name in colours if name.startswith("curve-")] + ["whole", "other"]
    assert len(curves) == 10
    assert [name for name in curves if contrast(colours[name], colours["paper"]) < 3] == []
