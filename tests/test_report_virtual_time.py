# SPDX-License-Identifier: Apache-2.0

import json

import pytest
from report_cases import normal, several_fields

from rtproof import report
from rtproof.core import plugins
from rtproof.report import formats
from rtproof.report.sections import verdict
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("form", plugins.plugin_names(formats))
def test_every_form_of_the_report_begins_with_it(form: str, short: bool) -> None:
    analysis = several_fields()
    drawn = report.render(form, report.title(analysis), report.compose(analysis, short=short)).decode()
    plain = " ".join(drawn.replace("&#x27;", "'").replace("\n", " ").split())
    words = f"{VIRTUAL_TIME_SENTENCE[:1].upper()}{VIRTUAL_TIME_SENTENCE[1:]}"
    assert words in plain
    assert plain.index(words) < plain.index("What the verdict rests on")


def test_it_is_the_first_section_and_in_the_title() -> None:
    analysis = several_fields()
    drawn = json.loads(report.render("json", report.title(analysis), report.compose(analysis)))
    assert drawn["title"].endswith(", virtual time")
    assert drawn["sections"][0]["name"] == "virtual_time"
    assert "qemu icount shift=0" in drawn["sections"][0]["blocks"][0]["paragraphs"][0]


def test_a_clock_that_shows_time_is_not_mentioned() -> None:
    assert verdict.virtual_time_section(normal()) == []
    assert "virtual" not in report.title(normal())
