# SPDX-License-Identifier: Apache-2.0

import re
from collections.abc import Iterator

import pytest
from report_cases import CASES, normal, nothing, sections_of

from rtproof import report
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.report import formats
from rtproof.report.blocks import Block, HeatMap, Plot, Table, Text

NEVER = re.compile(r"(?i:worst case is|guarantee|\bsafe\b|\bnan\b|\binf\b)|\bNone\b[^ ]")


def strings(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield from (block.headline, *block.paragraphs)
        case Table():
            yield from (block.caption, *block.header, *(cell for row in block.rows for cell in row))
        case Plot() | HeatMap():
            yield from (block.title, block.says, block.x_label, block.y_label, *(curve.name for curve in block.curves))


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


@pytest.mark.parametrize("form", plugins.plugin_names(formats))
@pytest.mark.parametrize("name", CASES)
def test_every_format_draws_every_kind_of_run(name: str, form: str) -> None:
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
    with pytest.raises(UserError, match=r"no 'pdf' in formats; there are: html, json, markdown, text"):
        report.render("pdf", "title", [])
