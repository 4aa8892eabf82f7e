# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from analyses_by_verdict import FIRST, proven
from forecast_cases import analysed, smooth
from report_cases import CASES, FORMATS_WITH_WORDS, several_fields, words

from rtproof import report
from rtproof.judge.analysis_model import Analysis, State
from rtproof.report.blocks import Text
from rtproof.report.sections import distribution, verdict
from rtproof.report.sections.verdict import EXACTLY, SURE
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE


def first(analysis: Analysis) -> Text:
    found = verdict.verdict_section(analysis)[0]
    assert isinstance(found, Text)
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_state_comes_first_and_every_reason_is_told(name: str) -> None:
    analysis = CASES[name]()
    said = first(analysis)
    assert said.headline == analysis.verdict.state.word
    terms = dict(said.terms)
    reasons = analysis.verdict.reasons
    for reason in reasons[:1] if analysis.verdict.state is State.NOT_ASKED else reasons:
        assert reason[1:] in " ".join((*said.paragraphs, terms.get(EXACTLY, ""), terms.get(SURE, "")))


def test_the_worst_cautions_are_shown_and_the_others_are_counted() -> None:
    doubt = FIRST["simulated"]().doubts[0]
    several = tuple(replace(doubt, code=f"code-{n}", what=f"what {n}", remedy="act") for n in range(7))
    told = verdict.doubt_answers(replace(proven(), doubts=several))
    assert told is not None
    shown = verdict.SHOWN_DOUBTS
    assert told.paragraphs == (*(f"what {n}: act" for n in range(shown)), f"and {7 - shown} more cautions, below")
    few = verdict.doubt_answers(replace(proven(), doubts=several[: shown + 1]))
    assert few is not None
    assert len(few.paragraphs) == shown + 1


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("form", FORMATS_WITH_WORDS)
def test_every_form_of_the_report_begins_with_it(form: str, short: bool) -> None:
    analysis = several_fields()
    drawn = report.render(form, report.title(analysis), report.compose(analysis, short=short)).decode()
    plain = " ".join(drawn.replace("&#x27;", "'").replace("\n", " ").split())
    words = f"{VIRTUAL_TIME_SENTENCE[:1].upper()}{VIRTUAL_TIME_SENTENCE[1:]}"
    assert words in plain
    assert plain.index(words) < plain.index("What the verdict rests on")


def test_a_refused_one_is_told_only_to_who_asked() -> None:
    short = smooth()[:100]
    unasked = analysed(short)
    assert unasked.forecast is not None
    assert unasked.forecast.refusals
    assert distribution.forecast_section(unasked) == []
    assert "FORECAST" not in [label for label, _ in unasked.verdict.sentences]
    asked = analysed(short, None, 60 * 10**9)
    (said,) = distribution.forecast_section(asked)
    assert "FEW: 10 tail events in " in words([said])
    assert "FORECAST" in [label for label, _ in asked.verdict.sentences]
