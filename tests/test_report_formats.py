# SPDX-License-Identifier: Apache-2.0

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import CASES, FORMATS_WITH_WORDS, HOSTILE, hostile, normal, nothing, sections_of

from rtproof import report
from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.report.blocks import BarPart, Bars, Block, HeatMap, Plot, Section, Table, Text
from rtproof.report.formats import html, markdown, text
from rtproof.report.formats import json as json_format
from rtproof.report.formats.html import HtmlMarkup, html_element, json_script
from rtproof.report.text_table import FOLDED_ROWS, WIDTH, fitted_to_terminal, lay_out

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


def two_bars() -> Bars:
    red, blue = BarPart("red", 0.0, 30.0, "30 us of red"), BarPart("blue", 30.0, 40.0, "<b>")
    return Bars(
        "What", "they are coloured", "us", ("red", "blue"), (("first", (red, blue)), ("second one", (red,))), 50.0
    )


def test_bars_are_letters_in_text_and_pictures_on_a_page() -> None:
    assert [line.rstrip() for line in text.block_text(two_bars()).splitlines()] == [
        "What. they are coloured",
        f"first       {'A' * 30}{'B' * 10}",
        f"second one  {'A' * 30}",
        "A: red, B: blue",
    ]
    drawn = html.block_html(two_bars(), "x-1")
    assert '<rect x="0.00" width="600.00" height="18" class="part-0"><title>30 us of red</title></rect>' in drawn
    assert "<title>&lt;b&gt;</title>" in drawn
    assert markdown.block_markdown(two_bars()) == "What. they are coloured"


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_run_gives_a_report_that_begins_with_verdict_and_doubts(name: str) -> None:
    sections = [each for each in sections_of(CASES[name]()) if each != "virtual_time"]
    assert sections[:2] == ["verdict", "doubts"]
    assert sections[-1] == "repeat"


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


@pytest.mark.parametrize("form", FORMATS_WITH_WORDS)
@pytest.mark.parametrize("name", CASES)
def test_every_format_of_words_draws_every_kind_of_run(name: str, form: str) -> None:
    analysis = CASES[name]()
    assert len(report.render(form, report.title(analysis), report.compose(analysis)).decode()) > 1_000


def test_a_record_without_samples_has_no_plots_and_says_unknown() -> None:
    sections = sections_of(nothing())
    assert not {"histogram", "ccdf", "timeline", "outliers"} & set(sections)
    assert "unknown" in [cell for block in sections["numbers"].blocks for cell in strings(block)]


def test_the_short_form_is_verdict_doubts_and_numbers() -> None:
    assert [section.name for section in report.compose(normal(), short=True)] == ["verdict", "doubts", "numbers"]


def test_what_the_host_knows_is_in_the_report() -> None:
    sections = report.compose(normal(), {"target": "ssh board7", "unset": None}, "rtproof run --limit 500us")
    said = [text for section in sections for block in section.blocks for text in strings(block)]
    assert {"target", "ssh board7", "rtproof run --limit 500us"} <= set(said)
    assert "unset" not in said


def test_the_title_names_verdict_machine_and_kernel() -> None:
    analysis = normal()
    expected = f"rtproof: {analysis.verdict.state.value} - timer latency on x86_64, Linux 6.1.0-rt"
    assert report.title(analysis) == expected


def test_an_unknown_format_is_refused_with_the_list() -> None:
    with pytest.raises(UserError, match=r"no format 'pdf'; there are: html, json, markdown, png, svg, text"):
        report.render("pdf", "title", [])


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


def drawn(*blocks: Table | Text) -> list[str]:
    return markdown.draw("T", [Section("s", "S", blocks)]).decode().splitlines()


def test_a_table_is_a_table_with_its_numbers_to_the_right() -> None:
    table = Table("latencies", ("load", "max"), (("mmap", "5.1"), ("a|b", "6")), (1,))
    assert drawn(table)[4:] == ["latencies", "", "| load | max |", "| --- | ---: |", "| mmap | 5.1 |", "| a\\|b | 6 |"]


def test_commands_are_code_and_headlines_bold() -> None:
    lines = drawn(Text(("rtproof show a_b",), "code"), Text(("it broke",), "bad", "Broken"))
    assert lines[4:] == ["    rtproof show a_b", "", "**Broken**", "", "it broke"]


def test_questions_are_a_list() -> None:
    lines = drawn(Text(("it broke",), "bad", "Broken", (("How sure", "90 %"), ("By whom", "a|b"))))
    assert lines[4:] == ["**Broken**", "", "it broke", "", "- **How sure:** 90 %", "- **By whom:** a\\|b"]


def test_words_of_a_record_are_no_markup() -> None:
    lines = markdown.draw("t", report.compose(hostile())).decode().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("    "))  # what is code stays as it is
    assert "](" not in text.replace("\\](", "")
    assert "<img" not in text.replace("\\<img", "")
    assert "\x1b" not in text
    assert HOSTILE not in text


def test_a_whole_report_has_every_heading() -> None:
    sections = report.compose(normal())
    lines = markdown.draw(report.title(normal()), sections).decode().splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == [markdown.words(s.title) for s in sections]


def test_what_is_no_block_is_refused() -> None:
    with pytest.raises(TypeError, match="no way to draw int as Markdown"):
        markdown.block_markdown(5)  # type: ignore[arg-type]


CELLS = st.text(st.characters(categories=["L", "N", "P", "Zs", "Cc"]), max_size=200)


def test_numbers_stand_under_each_other() -> None:
    table = Table("Latency", ("thread", "max [us]"), (("thread 0", "5.000"), ("all", "1,250.000")), (1,))
    assert lay_out(table).splitlines() == [
        "Latency",
        "thread     max [us]",
        "--------  ---------",
        "thread 0      5.000",
        "all       1,250.000",
    ]


def test_long_words_are_wrapped_in_their_column() -> None:
    table = Table("What", ("line", "words"), (("A", "word " * 60), ("B", "x" * 250)))
    lines = lay_out(table).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lay_out(table).count("word") == 61
    assert lay_out(table).count("x") == 250
    assert [line[0] for line in lines if line[0] in "AB"] == ["A", "B"]


def test_the_path_of_a_run_stays_whole_where_another_column_can_give_way() -> None:
    table = Table("What", ("run", "a", "b"), (("runs/nightly/2026-11-26", "word " * 30, "word " * 30),))
    lines = lay_out(table).splitlines()
    assert any(line.startswith("runs/nightly/2026-11-26  ") for line in lines)
    assert max(map(len, lines)) <= WIDTH


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5))
def test_no_table_of_few_columns_is_wider_than_the_terminal(rows: list[tuple[str, ...]]) -> None:
    text = lay_out(Table("Caption", ("a", "b", "c"), tuple(rows), (1,)))
    assert all(len(line) <= WIDTH and line.isprintable() for line in text.split("\n"))


def test_text_for_a_terminal_is_as_narrow_as_the_terminal_and_text_for_a_file_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sections = [
        Section("a", "Title " * 20, (Text(("word " * 60,)), Table("Caption " * 20, ("a",), (("cell " * 40,),))))
    ]
    monkeypatch.setenv("COLUMNS", "60")
    longest = {}
    for on_terminal in (False, True):
        monkeypatch.setattr("sys.stdout.isatty", lambda told=on_terminal: told)
        with fitted_to_terminal():
            lines = text.draw("a title", sections).decode().splitlines()
        longest[on_terminal] = max(len(line) for line in lines if not line.startswith("Title"))
    assert 80 < longest[False] <= WIDTH
    assert 40 < longest[True] <= 60


def test_a_folded_table_shows_its_first_rows_and_how_many_more_there_are() -> None:
    rows = tuple((str(at), "x") for at in range(1_000, 3_500))
    lines = lay_out(Table("Long", ("n", "x"), rows, folded=True)).splitlines()
    assert lines[-2:] == [f"{1_000 + FOLDED_ROWS - 1}  x", f"... and {2_500 - FOLDED_ROWS:,} more rows"]
    assert "more rows" not in lay_out(Table("Short", ("n", "x"), rows[:FOLDED_ROWS], folded=True))


@pytest.mark.parametrize("name", CASES)
def test_lines_are_short_printable_and_without_trailing_blanks(name: str) -> None:
    analysis = CASES[name]()
    sections = [section for section in report.compose(analysis) if section.name != "repeat"]
    lines = text.draw("title", sections).decode().split("\n")
    assert lines[-1] == ""
    assert [line for line in lines if len(line) > 105 or not line.isprintable() or line != line.rstrip()] == []


def test_the_verdict_is_the_first_thing_said() -> None:
    analysis = normal()
    lines = text.draw(report.title(analysis), report.compose(analysis)).decode().splitlines()
    assert lines[0] == report.title(analysis)
    assert lines[6].startswith(analysis.verdict.state.value)


def test_kinds_of_text_are_marked_with_more_than_colour() -> None:
    blocks = (Text(("it broke",), "bad", "Broken"), Text(("perhaps",), "doubt"), Text(("ls  -l " + "x" * 200,), "code"))
    drawn = text.draw("t", [Section("s", "Title", blocks)]).decode()
    assert "Broken\n! it broke\n" in drawn
    assert "\n- perhaps\n" in drawn
    assert f"\n    ls  -l {'x' * 200}\n" in drawn


def test_answers_stand_beside_their_questions() -> None:
    block = Text(("it broke",), "bad", "Broken", (("How sure", "90 %"), ("By whom", "nobody " * 20)))
    lines = text.block_text(block).splitlines()
    assert lines[:4] == ["Broken", "! it broke", "How sure  90 %", "By whom   " + ("nobody " * 13).strip()]
    assert lines[4].startswith(" " * 10 + "nobody")


def test_what_is_no_block_is_refused_text() -> None:
    with pytest.raises(TypeError, match="no way to draw int as text"):
        text.block_text(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_every_report_is_read_back_as_it_was_composed(name: str) -> None:
    sections = report.compose(CASES[name]())
    read = json.loads(json_format.draw("A title", sections))
    assert (read["format"], read["version"], read["title"]) == ("rtproof-report", 1, "A title")
    assert [section["name"] for section in read["sections"]] == [section.name for section in sections]
    amounts = [len(section["blocks"]) for section in read["sections"]]
    assert amounts == [len(section.blocks) for section in sections]


def test_blocks_say_what_they_are() -> None:
    read = json.loads(json_format.draw("t", report.compose(normal())))
    blocks = [block for section in read["sections"] for block in section["blocks"]]
    assert {block["block"] for block in blocks} == {"text", "table", "plot", "heatmap"}
    plot = next(block for block in blocks if block["block"] == "plot")
    assert len(plot["curves"][0]["x"]) == len(plot["curves"][0]["y"]) > 10


def test_strings_are_given_back_untouched() -> None:
    read = json.loads(json_format.draw(HOSTILE, report.compose(hostile())))
    assert read["title"] == HOSTILE


def test_a_table_has_as_many_cells_in_each_row_as_in_its_header() -> None:
    with pytest.raises(ValueError, match="not as many cells"):
        Table("", ("a", "b"), (("1", "2"), ("3",)))
