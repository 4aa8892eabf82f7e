# SPDX-License-Identifier: Apache-2.0

import pytest
from report_cases import CASES, normal

from rtproof import report
from rtproof.report.blocks import Section, Text
from rtproof.report.formats import text


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
    assert "\n? perhaps\n" in drawn
    assert f"\n    ls  -l {'x' * 200}\n" in drawn


def test_answers_stand_beside_their_questions() -> None:
    block = Text(("it broke",), "bad", "Broken", (("How sure", "90 %"), ("By whom", "nobody " * 20)))
    lines = text.block_text(block).splitlines()
    assert lines[:4] == ["Broken", "! it broke", "How sure  90 %", "By whom   " + ("nobody " * 13).strip()]
    assert lines[4].startswith(" " * 10 + "nobody")


def test_what_is_no_block_is_refused() -> None:
    with pytest.raises(TypeError, match="no way to draw int as text"):
        text.block_text(5)  # type: ignore[arg-type]
