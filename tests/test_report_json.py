# SPDX-License-Identifier: Apache-2.0

import json

import pytest
from report_cases import CASES, HOSTILE, hostile, normal

from rtproof import report
from rtproof.report.formats import json as json_format


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
