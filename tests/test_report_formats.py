# SPDX-License-Identifier: Apache-2.0

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import CASES, HOSTILE, hostile, sections_of

from rtproof import report
from rtproof.core.printable import clean
from rtproof.report.blocks import Bars, Block, HeatMap, Plot, Section, Table, Text
from rtproof.report.formats import markdown, text
from rtproof.report.formats.html import html_element, json_script
from rtproof.report.pages.comparison_page import for_terminal
from rtproof.report.text_table import WIDTH, lay_out

NEVER = re.compile(r"(?i:worst case is|guarantee|\bsafe\b|\bnan\b|\binf\b)|\bNone\b[^ ]")


def strings(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield from (block.headline, *block.paragraphs)
        case Table():
            yield from (block.caption, *block.header, *(cell for row in block.rows for cell in row))
        case Plot() | HeatMap():
            yield from (block.title, block.says, block.x_label, block.y_label, *(curve.name for curve in block.curves))
        case Bars():
            yield from (block.title, block.says, block.x_label, *block.kinds, *(label for label, _ in block.bars))


@pytest.mark.parametrize("name", CASES)
def test_no_cell_holds_a_number_that_is_none_and_no_sentence_promises_too_much(name: str) -> None:
    sections = sections_of(CASES[name]()).values()
    found = [text for section in sections for block in section.blocks for text in strings(block)]
    assert len(found) > 20
    assert [text for text in found if NEVER.search(text)] == []


@pytest.mark.parametrize("name", CASES)
def test_coordinates_can_be_drawn(name: str) -> None:
    for section in sections_of(CASES[name]()).values():
        for block in section.blocks:
            if isinstance(block, Plot):
                assert block.curves
                assert all(0 < len(curve.x) <= 700 and list(curve.x) == sorted(set(curve.x)) for curve in block.curves)
                assert not block.log_x or min(x for curve in block.curves for x in curve.x) > 0
                assert not block.log_y or min(y for curve in block.curves for y in curve.y) >= 0
            if isinstance(block, HeatMap):
                assert list(block.y_edges) == sorted(set(block.y_edges))
                assert not block.log_y or block.y_edges[0] > 0


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


def test_words_of_a_record_are_no_markup() -> None:
    lines = markdown.draw("t", report.compose(hostile())).decode().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("    "))  # what is code stays as it is
    assert "](" not in text.replace("\\](", "")
    assert "<img" not in text.replace("\\<img", "")
    assert "\x1b" not in text
    assert HOSTILE not in text


CELLS = st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"]), max_size=200)


def test_long_words_are_wrapped_in_their_column() -> None:
    table = Table("What", ("line", "words"), (("A", "word " * 60), ("B", "x" * 250)))
    lines = lay_out(table).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lay_out(table).count("word") == 61
    assert lay_out(table).count("x") == 250
    assert [line[0] for line in lines if line[0] in "AB"] == ["A", "B"]


def test_headings_of_numbers_take_two_lines_before_words_are_wrapped() -> None:
    rows = (("word " * 12, "1", "2,000.0"),)
    wide = Table(
        "What", ("words", "how often this was the main one", "largest of all times that were [us]"), rows, (1, 2)
    )
    _, first, second, _, row = lay_out(wide).splitlines()
    assert row.split()[:12] == ["word"] * 12
    assert (first.split()[0], second.endswith("that were [us]")) == ("words", True)
    fits = Table("What", ("words", "how often", "largest [us]"), rows, (1, 2))
    assert lay_out(fits).splitlines()[1].endswith("how often  largest [us]")


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5))
def test_no_table_of_few_columns_is_wider_than_the_terminal(rows: list[tuple[str, ...]]) -> None:
    text = lay_out(Table("Caption", ("a", "b", "c"), tuple(rows), (1,)))
    assert all(len(line) <= WIDTH and line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("name", CASES)
def test_lines_are_short_printable_and_without_trailing_blanks(name: str) -> None:
    analysis = CASES[name]()
    sections = [section for section in report.compose(analysis) if section.name != "repeat"]
    lines = text.draw("title", sections).decode().split("\n")
    assert lines[-1] == ""
    assert [line for line in lines if len(line) > 105 or not line.isprintable() or line != line.rstrip()] == []


def test_words_are_broken_only_if_the_line_fits_then() -> None:
    first = ["cell", "stress+flood, article2-stress, pingflood"]
    fits = lay_out(Table("Caption", (first[0], "text"), ((first[1], "word " * 40),)))
    assert max(map(len, fits.splitlines())) <= WIDTH
    wide = lay_out(Table("Caption", (first[0], *("x" * 9,) * 10), ((first[1], *("0" * 9,) * 10),)))
    assert any(line.startswith("article2-stress,") for line in wide.splitlines())


def test_a_terminal_gets_short_folded_tables_and_the_way_to_long_ones() -> None:
    short, long = (Table(name, ("n",), (("1",),) * n, folded=True) for name, n in (("Short", 5), ("Long", 6)))
    (section,) = for_terminal([Section("runs", "The runs", (short, long))])
    assert section.blocks == (short, Text(("Long: 6 rows; the page and --format text have them.",)))
