# SPDX-License-Identifier: Apache-2.0
"""In virtual time a verdict tells what was seen: it is never PROVEN, and nothing has a probability or an interval."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analysis_records import MS, SECOND, block
from doubt_cases import clean, facts
from report_cases import system_file
from stage_records import VIRTUAL

from rtproof import report
from rtproof.core import plugins
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.judge.verdict import chosen_after_the_data
from rtproof.record.contents import Moment, Record
from rtproof.report import formats
from rtproof.report.pages import ci_verdicts
from rtproof.report.sections import verdict
from rtproof.schema.analysis_json import analysis_dict

LENGTH = 6_000
LIMIT = Requirement(500_000, 60 * SECOND)
PROBABLE = re.compile(r"\bprobab|\bchance\b|\d ?% (sure|confidence|interval)|\(95 %|confidence 95|PROVEN (in|after)")


def virtual(*late: int, seconds: int = 6) -> Record:
    """So many seconds of a millisecond each in virtual time; late: those above the limit."""
    values = np.full(seconds * 1_000, 9_000)
    values[list(late)] = 900_000
    changes = {("duration_ns", Moment.ASKED): str(seconds * 1_000 * MS)}
    return clean((block(values.tolist()),), facts=(*facts(changes), VIRTUAL))


def judged(*late: int, requirement: Requirement | tuple[Requirement, ...] = LIMIT) -> Analysis:
    return analyse(virtual(*late), requirement, 1)


def texts(analysis: Analysis) -> str:
    """All that any output says of it, without line breaks, but for the sentence that says that there is none."""
    blocks = report.compose(analysis)
    drawn = [report.render(form, report.title(analysis), blocks).decode() for form in plugins.plugin_names(formats)]
    row = ci_verdicts.run_row("run", analysis)
    said = " ".join([*drawn, ci_verdicts.ci_junit([row]).decode(), json.dumps(analysis_dict(analysis))])
    return " ".join(said.split()).replace("nothing has a probability", "nothing has one")


def test_a_limit_that_nothing_exceeded_is_not_proven_however_long_the_run() -> None:
    """The same record with a clock that shows time is PROVEN, which this test would see."""
    easy = Requirement(500_000, SECOND)
    found = judged(requirement=easy).verdict
    assert (found.state, found.state.exit_code) == (State.UNDECIDED, 4)
    assert found.reasons[0] == (
        "not exceeded in this deterministic run: none of 6,000 activations in 6.0 s was above 500 us"
    )
    record = virtual()
    real = replace(record, facts=tuple(each for each in record.facts if each.key != "virtual_time"))
    assert analyse(real, easy, 1).verdict.state is State.PROVEN


@pytest.mark.parametrize("late", [(3_000,), (1_000, 3_000, 5_000), tuple(range(0, 6_000, 7))])
def test_what_was_seen_more_often_than_asked_is_refuted_as_a_fact(late: tuple[int, ...]) -> None:
    found = judged(*late).verdict
    assert (found.state, found.state.exit_code) == (State.REFUTED, 1)
    times = "once" if len(late) == 1 else f"{len(late):,} times"
    assert found.reasons[0].startswith(f"exceeded {times} in this deterministic run: ")
    assert found.reasons[0].endswith("at most once per 1 min was asked")


def test_exceeded_no_more_often_than_asked_is_undecided() -> None:
    found = judged(3_000, requirement=Requirement(500_000, 2 * SECOND)).verdict
    assert found.state is State.UNDECIDED
    assert "which is no more often than was asked" in found.reasons[0]


def test_an_episode_longer_than_asked_is_refuted_however_seldom() -> None:
    late = tuple(range(0, 5_000, 100))
    found = judged(*late, requirement=Requirement(500_000, 5 * SECOND, gap_ns=SECOND, longest_ns=SECOND)).verdict
    assert found.state is State.REFUTED
    assert "one of at least 3.0 s, and at most 1.0 s was asked" in found.reasons[0]


@pytest.mark.parametrize("late", [(), (3_000,), (1_000, 3_000)])
def test_no_output_has_a_probability_or_an_interval(late: tuple[int, ...]) -> None:
    said = texts(judged(*late))
    assert "deterministic run" in said
    assert [found[0] for found in PROBABLE.finditer(said)] == []
    assert "in virtual time nothing is PROVEN and nothing has one" in said


def test_several_limits_are_each_told_as_seen() -> None:
    limits = (LIMIT, Requirement(2_000_000, 60 * SECOND))
    found = judged(3_000, requirement=limits)
    assert [each.state for each in found.verdicts] == [State.REFUTED, State.UNDECIDED]
    assert found.verdict.state is State.REFUTED
    assert [found[0] for found in PROBABLE.finditer(texts(found))] == []


def test_as_json_whatever_needs_a_probability_is_null() -> None:
    given = analysis_dict(judged())
    assert given["verdict"]["deterministic"] is True
    for key in (
        "alpha_ratio",
        "rate_low_per_s",
        "rate_high_per_s",
        "rate_high_fixed_per_s",
        "chance_ratio",
        "needed_ns",
    ):
        assert given["verdict"][key] is None, key
    assert given["forecast"] is None
    found = list(_quantiles(given))
    assert len(found) > 10
    assert {each["confidence_ratio"] for each in found} == {None}
    assert {each["low_ns"] for each in found} | {each["high_ns"] for each in found} == {None}
    assert any(each["value_ns"] for each in found)


def _quantiles(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "share_ratio" in found and "values_count" in found and "confidence_ratio" in found:
            yield found
        found = list(found.values())
    for each in found if isinstance(found, list) else ():
        yield from _quantiles(each)


def test_the_first_screen_says_it_in_one_sentence() -> None:
    assert verdict.claim_answer(judged().verdict) == "500 us was not exceeded in this deterministic run."
    assert verdict.claim_answer(judged(3_000).verdict) == (
        "500 us was exceeded in this deterministic run more often than was asked."
    )
    assert verdict.longer_run_answer(judged().verdict).startswith("No length of virtual time proves a limit")


def test_junit_skips_what_was_not_exceeded_and_fails_what_was() -> None:
    quiet, late = (
        ci_verdicts.ci_junit([ci_verdicts.run_row("run", judged(*each))]).decode() for each in ((), (3_000,))
    )
    assert '<skipped message="UNDECIDED: not exceeded in this deterministic run: ' in quiet
    assert '<failure message="REFUTED: exceeded once in this deterministic run: ' in late
    assert 'name="above 500 us at most once per 1 min, virtual time"' in quiet


def test_a_limit_chosen_afterwards_is_judged_too_since_nothing_is_tested() -> None:
    for late, state in (((), State.UNDECIDED), ((3_000,), State.REFUTED)):
        found = chosen_after_the_data(judged(*late))
        assert found.verdict.state is state
        assert "limit-after-data" not in {doubt.code for doubt in found.doubts}


def test_a_run_that_measured_something_else_stays_invalid() -> None:
    record, online = virtual(3_000), system_file("/sys/devices/system/cpu/online", "0-1\n")
    found = analyse(replace(record, files=(*record.files, online)), LIMIT, 1).verdict
    assert (found.state, found.deterministic) == (State.INVALID, True)
    assert "2 processors share one stream of instructions" in found.reasons[0]


def test_without_a_limit_nothing_is_asked_and_nothing_said_of_other_runs() -> None:
    found = analyse(virtual(3_000), None, 1)
    assert found.verdict.state is State.NOT_ASKED
    labels = {label for label, _ in found.verdict.sentences}
    assert labels.isdisjoint({"UNSEEN", "FORECAST", "RATE", "NEEDED"})
    assert [found[0] for found in PROBABLE.finditer(texts(found))] == []
