# SPDX-License-Identifier: Apache-2.0
"""Each state's sentences, in the terminal, on the page, in JUnit, Markdown and JSON, of one limit and of three."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from analysis_records import MS, SECOND
from verdict_cases import invalid, measured

from rtproof import report
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.record.contents import Record
from rtproof.report.pages.ci_verdicts import ci_junit, ci_markdown, run_row
from rtproof.schema.analysis_json import analysis_dict

ONE = Requirement(500_000, SECOND)
MINUTELY = Requirement(500_000, 60 * SECOND)
FORBIDDEN = ("worst case is", "guaranteed", "proven that", "of runs would be called PROVEN")
ASSUMED = "Wrong in at most {} of runs, if episodes come independently of one another and at a steady rate"

RUNS: dict[str, tuple[Callable[[], Analysis], State, tuple[str, ...]]] = {
    "proven": (
        lambda: analyse(measured(), ONE, 1),
        State.PROVEN,
        (
            "Not exceeded in 6.0 s (1 thread; 6,000 activations)",
            "Episodes above 500 us come less often than once per 1.7 s (95 %); once per 1.0 s was asked",
            ASSUMED.format("5 %"),
            "No episode tells of bunches; the proof would hold for bunches of up to 1.7 episodes on average",
        ),
    ),
    "refuted by rate": (
        lambda: analyse(measured(0, 2_000, 4_000), replace(MINUTELY, gap_ns=SECOND, longest_ns=15 * SECOND), 1),
        State.REFUTED,
        (
            "Exceeded in 3 episodes in 6.0 s (1 thread; 6,000 activations): more often than once per 22.0 s (95 %); "
            "once per 1 min was asked",
            ASSUMED.format("5 %"),
        ),
    ),
    "refuted by duration": (
        lambda: analyse(measured(*range(3_000, 6_000, 40)), replace(MINUTELY, gap_ns=100 * MS, longest_ns=SECOND), 1),
        State.REFUTED,
        ("Above 500 us without 100 ms of quiet for 2.9 s; at most 1.0 s was asked",),
    ),
    "undecided": (
        lambda: analyse(measured(*range(1_000, 6_000)), MINUTELY, 1),
        State.UNDECIDED,
        (
            "Exceeded in 5 of 6 s (1 episode, not over) (1 thread; 6,000 activations)",
            "Too short to say more: REFUTED if it goes on until 16.0 s; PROVEN after 6 min 51 s more of quiet",
        ),
    ),
}
THREE = (ONE, replace(ONE, limit_ns=2_000_000), replace(ONE, limit_ns=3_000_000, at_most_ns=2 * SECOND))


def told(analysis: Analysis) -> dict[str, str]:
    """What every output says, without its line breaks, tags and marks."""
    rows, sections = [run_row("run", analysis)], report.compose(analysis)
    plain = {
        "terminal": report.render("text", "run", sections),
        "page": report.render("html", "run", sections),
        "report in Markdown": report.render("markdown", "run", sections),
        "JUnit": ci_junit(rows),
        "Markdown": ci_markdown(rows),
    }
    found = {}
    for name, text in plain.items():
        bare = re.sub(r"<[^>]+>", " ", text.decode()) if name in ("page", "JUnit") else text.decode()
        found[name] = " ".join(html.unescape(bare.replace("\\", "")).split())
    sentences = [each["text"] for verdict in analysis_dict(analysis)["verdicts"] for each in verdict["sentences"]]
    return {**found, "JSON": " ".join(json.loads(json.dumps(sentences)))}


@pytest.mark.parametrize("case", RUNS)
def test_every_output_says_the_sentences_of_the_state(case: str) -> None:
    make, state, sentences = RUNS[case]
    analysis = make()
    assert analysis.verdict.state is state
    assert analysis.verdict.reasons[: len(sentences)] == sentences
    for output, text in told(analysis).items():
        missing = [each for each in sentences if each not in text]
        assert not missing, output
        assert not [word for word in FORBIDDEN if word in text], output


@pytest.mark.parametrize("case", RUNS)
def test_the_assumption_stands_where_a_bet_decided_and_nowhere_else(case: str) -> None:
    analysis = RUNS[case][0]()
    by_bet = case in ("proven", "refuted by rate")
    assert (analysis_dict(analysis)["verdict"]["assumption"] == ASSUMED.format("5 %")) is by_bet
    for output, text in told(analysis).items():
        assert ("Wrong in at most" in text) is by_bet, output


def test_three_limits_share_the_error_and_each_says_its_own() -> None:
    analysis = analyse(measured(), THREE, 1)
    assert [verdict.state for verdict in analysis.verdicts] == [State.PROVEN, State.PROVEN, State.UNDECIDED]
    for output, text in told(analysis).items():
        assert ASSUMED.format("1.67 %") in text, output
        assert "98.33 %" in text, output


EASY = replace(ONE, limit_ns=1_000_000, gap_ns=100 * MS)
HARD = replace(MINUTELY, limit_ns=2_000_000, gap_ns=100 * MS)
OF_THREE: dict[str, tuple[Callable[..., Record], tuple[Requirement, Requirement, Requirement], str]] = {
    "one of each": (
        lambda: measured(0, 2_000, 4_000),
        (replace(MINUTELY, gap_ns=SECOND, longest_ns=15 * SECOND), EASY, HARD),
        "REFUTED PROVEN UNDECIDED",
    ),
    "all proven": (measured, (EASY, replace(EASY, limit_ns=2_000_000), ONE), "PROVEN PROVEN PROVEN"),
    "one too long": (
        lambda: measured(*range(3_000, 6_000, 40)),
        (HARD, replace(MINUTELY, gap_ns=100 * MS, longest_ns=SECOND), EASY),
        "UNDECIDED REFUTED PROVEN",
    ),
    "one goes on": (lambda: measured(*range(1_000, 6_000)), (EASY, MINUTELY, HARD), "PROVEN UNDECIDED UNDECIDED"),
}


@pytest.mark.parametrize("case", OF_THREE)
def test_every_output_says_the_sentences_of_each_of_three_limits(case: str) -> None:
    make, asked, states = OF_THREE[case]
    analysis = analyse(make(), asked, 1)
    assert [verdict.state.value for verdict in analysis.verdicts] == states.split()
    for output, text in told(analysis).items():
        for verdict in analysis.verdicts:
            assert verdict.reasons
            assert not [reason for reason in verdict.reasons if reason not in text], output
        assert "98.33 %" in text, output
        assert not [word for word in FORBIDDEN if word in text], output


def test_what_makes_a_run_invalid_is_said_once_for_three_limits() -> None:
    wrong = replace(measured(0), facts=invalid().record.facts)
    analysis = analyse(wrong, THREE, 1)
    assert {verdict.state for verdict in analysis.verdicts} == {State.INVALID}
    for output, text in told(analysis).items():
        assert analysis.verdict.reasons[0] in text, output
        assert "PROVEN" not in text, output
        assert "What was seen of the other limits" not in text, output


def test_all_outputs_tell_the_same_time_of_a_decision_at_the_very_start() -> None:
    analysis = analyse(measured(0), replace(ONE, at_most_ns=100 * SECOND), 1)
    at = re.search(r"Decided after (\S+ \S+), with 1 episode by then", " ".join(analysis.verdict.reasons))
    assert at
    outputs = told(analysis)
    for output in ("terminal", "page", "report in Markdown"):
        assert f"the result was clear after {at[1]}." in outputs[output]


def test_the_row_of_ci_tells_the_same_time_of_a_decision_by_the_first_part() -> None:
    analysis = analyse(measured(0), replace(ONE, at_most_ns=100 * SECOND), 1)
    assert analysis.verdict.decided_at_ns == 0
    assert "decided by the first 351 ms, all of it would not be REFUTED" in told(analysis)["Markdown"]


def test_json_tells_both_kinds_and_both_times() -> None:
    late = analyse(measured(*range(5_000, 6_000, 40)), replace(ONE, gap_ns=50 * MS, longest_ns=400 * MS), 1)
    verdict = analysis_dict(late)["verdict"]
    assert (verdict["state"], verdict["kind"], verdict["assumption"]) == ("REFUTED", "duration", None)
    assert verdict["proven_at_ns"] < verdict["decided_at_ns"] == 5_400_000_000
    assert verdict["requirement"]["longest_ns"] == 400 * MS
    assert "The first 3.5 s alone would have been PROVEN" in verdict["reasons"]


def test_what_only_the_first_part_of_a_run_shows_is_said_of_that_part_everywhere() -> None:
    """PROVEN by the first seconds; then come more episodes than a proof of all of the run allows."""
    analysis = analyse(measured(4_500, 5_000, 5_500), replace(ONE, gap_ns=100 * MS), 1)
    assert analysis.verdict.state is State.PROVEN
    assert (analysis.verdict.rate_high or 0) > 1 > (analysis.verdict.rate_low or 0)
    outputs = told(analysis)
    for output, text in outputs.items():
        assert "Not exceeded in the first 3." in text, output
        assert "All of it alone would be UNDECIDED, as it shows only less often than once per" in text, output
        assert "less often than once per" in text.split("All of it alone")[1].split("quiet")[0], f"{output}: RATE"
    for output in ("terminal", "page", "report in Markdown"):
        assert (
            "episodes above 500 us came less often than once per 1.0 s; all of the run would not be PROVEN"
            in (outputs[output])
        )
    assert "3 episodes in 6.0 s; decided by the first 3." in outputs["Markdown"]
    assert "all of it would not be PROVEN" in outputs["Markdown"]


def test_a_run_that_is_late_most_of_the_time_says_so_in_the_row_of_ci() -> None:
    late = analyse(measured(*range(1_000, 6_000)), MINUTELY, 1)
    assert "exceeded in 5 of 6 s: 1 episode in 6.0 s" in told(late)["Markdown"]


def test_a_row_of_ci_has_the_confidence_of_its_own_test() -> None:
    text = told(analyse(measured(), THREE, 1))["Markdown"]
    assert "98.33 % (95 % for all limits)" in text
    assert "none longer than 250 ms, 95 % |" not in text
