# SPDX-License-Identifier: Apache-2.0

import json
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from rtproof.core.printable import clean
from rtproof.report.formats.html import HtmlMarkup, html_element, json_script


class Reader(HTMLParser):
    """Tags, attributes and text as a browser would take them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


@given(st.text(), st.text())
def test_no_string_gets_out_of_its_place(words: str, attribute: str) -> None:
    read = Reader(html_element("p", words, title=attribute))
    assert read.tags == ["p"]
    assert read.attributes == [("title", clean(attribute))]
    assert read.words == clean(words)


@given(st.text())
def test_data_come_back_whole_and_cannot_end_their_element(words: str) -> None:
    script = json_script("data", {"words": words + "</script><!--"})
    assert script.count("<") == 2
    assert json.loads(script.partition(">")[2].rpartition("<")[0]) == {"words": words + "</script><!--"}


def test_elements_nest_and_attributes_may_be_bare_or_left_out() -> None:
    inner = html_element("b", "1 < 2")
    assert html_element("p", "so: ", inner, class_="n", hidden=True, lang=None, aria_label="x") == (
        '<p class="n" hidden aria-label="x">so: <b>1 &lt; 2</b></p>'
    )
    assert html_element("br") == "<br>"
    assert isinstance(inner, HtmlMarkup)
