# SPDX-License-Identifier: Apache-2.0

import pytest
from report_cases import HOSTILE, hostile, normal

from rtproof import report
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.formats import markdown


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
