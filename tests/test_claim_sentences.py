# SPDX-License-Identifier: Apache-2.0
"""Each state's sentences, in the terminal, on the page, in JUnit, Markdown and JSON, of one limit and of three."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from analyses_by_verdict import invalid, measured
from analysis_records import MS, SECOND, array, block, fact, record

from rtproof import report
from rtproof.judge import planning, verdict_sentences
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.record.contents import Counter, Moment, Record
from rtproof.report.pages.ci_verdicts import ci_junit, ci_markdown, run_row
from rtproof.schema.published import analysis_dict

ONE = Requirement(500_000, SECOND)
MINUTELY = Requirement(500_000, 60 * SECOND)
FORBIDDEN = ("worst case is", "guaranteed", "proven that", "of runs would be called PROVEN")
ASSUMED = (
    "A system that breaks this claim is called PROVEN in at most {} of runs, "
    "if episodes come independently and at a steady rate"
)
ASSUMED_REFUTED = ASSUMED.replace("breaks", "keeps").replace("PROVEN", "REFUTED")

RUNS: dict[str, tuple[Callable[[], Analysis], State, tuple[str, ...]]] = {
    "proven": (
        lambda: analyse(measured(), ONE, 1),
        State.PROVEN,
        (
            "Not exceeded in 6.0 s (1 thread; 6,000 activations)",
            "Episodes above 500 us come less often than once per 1.7 s (95 %); once per 1.0 s was asked",
            ASSUMED.format("5 %"),
            "No episode was seen, so bunches cannot be tested; "
            "PROVEN would also hold for bunches of up to 1.7 episodes on average",
        ),
    ),
    "refuted by rate": (
        lambda: analyse(measured(0, 2_000, 4_000), replace(MINUTELY, gap_ns=SECOND, longest_ns=15 * SECOND), 1),
        State.REFUTED,
        (
            "Exceeded in 3 episodes in 6.0 s (1 thread; 6,000 activations): more often than once per 22.0 s (95 %); "
            "once per 1 min was asked",
            ASSUMED_REFUTED.format("5 %"),
        ),
    ),
    "refuted by duration": (
        lambda: analyse(measured(*range(3_000, 6_000, 40)), replace(MINUTELY, gap_ns=100 * MS, longest_ns=SECOND), 1),
        State.REFUTED,
        ("An episode above 500 us lasted 2.9 s; at most 1.0 s was asked",),
    ),
    "undecided": (
        lambda: analyse(measured(*range(1_000, 6_000)), MINUTELY, 1),
        State.UNDECIDED,
        (
            "Exceeded in 5 of 6 s (1 episode, not over; 1 thread; 6,000 activations)",
            "The last episode was still open: REFUTED if it goes on until 16.0 s",
            "Too short to decide: PROVEN after 6 min 51 s more if nothing exceeds 500 us",
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
    assumed = {"proven": ASSUMED, "refuted by rate": ASSUMED_REFUTED}.get(case, "").format("5 %") or None
    assert analysis_dict(analysis)["verdict"]["assumption"] == assumed
    for output, text in told(analysis).items():
        assert assumed is None or assumed in text, output
        assert text.count("this claim is called") == (text.count(assumed) if assumed else 0), output


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
    assert "which would not decide it; decided by the first 351 ms" in told(analysis)["Markdown"]


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
        assert "The whole run would be UNDECIDED: it shows only less often than once per" in text, output
        after = text.split("The whole run would be UNDECIDED")[1].split("quiet")[0]
        assert "less often than once per" in after, f"{output}: RATE"
    for output in ("terminal", "page", "report in Markdown"):
        assert "500 us was not exceeded in the first 3.5 s; at most once per 1.0 s was asked." in outputs[output]
        assert "This decided it; 3 episodes in 6.0 s would not." in outputs[output]
    assert "3 episodes in 6.0 s, which would not decide it; decided by the first 3." in outputs["Markdown"]


def test_a_run_that_is_late_most_of_the_time_says_so_in_the_row_of_ci() -> None:
    late = analyse(measured(*range(1_000, 6_000)), MINUTELY, 1)
    assert "exceeded in 5 of 6 s: 1 episode in 6.0 s" in told(late)["Markdown"]


def test_a_row_of_ci_has_the_confidence_of_its_own_test() -> None:
    text = told(analyse(measured(), THREE, 1))["Markdown"]
    assert "98.33 % (95 % for all limits)" in text
    assert "none longer than 250 ms, 95 % |" not in text


def test_a_limit_in_words() -> None:
    assert (
        verdict_sentences.limit_sentence(Requirement(500_000))
        == "500 us, at most once per 1 h, none longer than 10 min, confidence 95 %"
    )
    half = Requirement(2_500, 43_200_000_000_000, 0.999)
    assert (
        verdict_sentences.limit_sentence(half)
        == "2.5 us, at most once per 12 h, none longer than 10 min, confidence 99.9 %"
    )


def test_the_sentences_of_a_stall() -> None:
    """Two seconds at 1 ms with one stop of 400 ms, as a reader of the report sees it."""
    values = [30_000] * 1600
    values[700] = 400_200_000
    facts = (fact("duration_ns", 2000 * MS), fact("loads", "sched"))
    work = Counter(0, True, "load.sched", "messages", array(0, 1_000_000_000), array(5, 9))
    made = record([block(values, {700: 400})], facts=facts, counters=(work,))
    lines = analyse(made, Requirement(500_000)).verdict.sentences
    assert lines[0] == (
        "VERDICT",
        "REFUTED - Exceeded in 1 episode in 2.0 s (1 thread; 1,600 activations): "
        "more often than once per 9 min 30 s (95 %); once per 1 h was asked",
    )
    assert dict(lines)["MISSED"] == (
        "400 activations of 2,000 due never ran; each counts in the schedule view with the time it was late"
    )
    assert dict(lines)["EXCEEDED"] == (
        "1 of 1,600 activations that ran (observed), 400 of 2,000 that were due (schedule)"
    )
    assert dict(lines)["MAX"].startswith(
        "400.2 ms on thread 0 (cpu 2) at 2023-11-14 22:13:20.700 UTC, the largest of 1,600"
    )
    assert dict(lines)["UNSEEN"] == (
        "events rarer than once per 667 ms may be missing from this run "
        "(95 %, fixed-time; once per 574 ms if the run could end at any time)"
    )
    texts = [text for _, text in lines]
    assert "a run of 2.0 s can miss what happens once a day" in texts
    assert "1 boot cannot show what differs from boot to boot" in texts
    assert lines[-1][1] == "this kernel (6.1.0-rt), boot, load (sched) and temperature only; 1 boot measured"


def test_no_load_is_said_too() -> None:
    lines = analyse(record([block([5])])).verdict.sentences
    assert "load (none of ours)" in lines[-1][1]


def test_lines_about_the_run_alone() -> None:
    lines = (("VERDICT", "a"), ("", "b"), ("MAX", "c"), ("", "d"), ("RATE", "e"), ("", "f"), ("UNSEEN", "g"))
    assert verdict_sentences.sentences_of_run(lines) == (("MAX", "c"), ("", "d"), ("UNSEEN", "g"))


def test_nothing_follows_from_the_maximum_of_a_run_that_is_invalid() -> None:
    """It measured something else, so a second run that measures what was asked has no reason to be like it."""
    facts = (fact("duration_ns", 100 * MS), fact("policy", "fifo"), fact("policy", "other", Moment.END, 0))
    lines = analyse(record([block([5_000] * 100)], facts=facts), Requirement(500_000)).verdict.sentences
    assert lines[0][1].startswith("INVALID")
    (largest,) = verdict_sentences.texts_under_labels(lines, "MAX")
    assert largest.startswith("5 us on thread 0")
    assert largest.endswith("the largest of 100 activations; the run is INVALID, so that nothing follows from it")
    assert "probability" not in " ".join(text for _, text in lines)


# What a maximum, a threshold and a length are worth, against published figures and simulation.


HOUR = 3600 * 10**9
LONG = 54 * HOUR + 29 * 60 * 10**9


def test_chance_that_the_maximum_is_exceeded() -> None:
    assert (planning.chance_exceeded(1, 1), planning.chance_exceeded(1, 3)) == (0.5, 0.75)
    assert planning.predicted_until(19) == pytest.approx(1)
    assert planning.chance_exceeded(19, planning.predicted_until(19)) == pytest.approx(0.05)


def test_what_a_run_shows_at_least_once() -> None:
    assert 30 / planning.rarest_ns(30) == pytest.approx(2.9957, abs=1e-4)
    assert 30 / planning.rarest_ns(30, anytime=True) == pytest.approx(3.4819, abs=1e-4)


def test_the_sentences_of_a_published_run() -> None:
    """196,190,335 samples in 54 h 29 min, 1106 us at most."""
    again, later, bound = verdict_sentences.largest_value_sentences(1_106_000, LONG)
    assert again == (
        "an equally long run under the same conditions exceeds this with a probability of at most 50 % "
        "(an equal maximum does not exceed it)"
    )
    assert later == (
        "the next 2 h 52 min under the same conditions exceed it with a probability of at most 5 % "
        "(m/(n+m) for the next m after n)"
    )
    assert bound == "> 1,106 us: less often than once per 18 h 11 min (95 %, fixed-time)"
    assert verdict_sentences.unseen_event_sentences(LONG) == (
        "events rarer than once per 18 h 11 min may be missing from this run "
        "(95 %, fixed-time; once per 15 h 38 min if the run could end at any time)",
        "1 boot cannot show what differs from boot to boot",
    )
    assert verdict_sentences.unseen_event_sentences(HOUR // 2)[1] == "a run of 30 min can miss what happens once a day"


def test_a_length_that_was_not_fixed_is_said() -> None:
    bound = verdict_sentences.largest_value_sentences(5_000, HOUR, length_was_fixed=False)[2]
    assert bound.endswith("fixed-time; this holds only if the length of the run was fixed beforehand, and it was not)")


def test_a_published_threshold() -> None:
    found = planning.share_threshold(1e-5, 1_500_000)
    assert (found.exceeding, found.rank) == (15, 9)
    assert [found.low, found.high] == pytest.approx([5.597e-6, 1.6494e-5], rel=1e-3)
    text = verdict_sentences.threshold_rank_sentence(found)
    assert "the 99.999 % threshold of 1,500,000 activations (15 above it): between 5.6e-06 and 1.65e-05" in text
    assert text.endswith("(95 %): the 9th largest value")


def test_too_few_values_have_no_upper_limit_for_the_threshold() -> None:
    assert planning.share_threshold(1e-5, 299_000).rank is None
    assert planning.share_threshold(1e-5, 300_000).rank == 1
    few = planning.share_threshold(1e-5, 1000)
    assert verdict_sentences.threshold_rank_sentence(few).endswith("none: n is too small")


@pytest.mark.parametrize(
    ("rank", "ordinal"),
    [(1, "1st"), (2, "2nd"), (13, "13th"), (23, "23rd"), (30, "30th"), (111, "111th"), (121, "121st")],
)
def test_ranks_have_their_endings(rank: int, ordinal: str) -> None:
    text = verdict_sentences.threshold_rank_sentence(planning.ShareThreshold(0.1, 10, 1, 0.0, 0.2, rank, 0.95))
    assert text.endswith(f"the {ordinal} largest value")


def test_the_upper_limit_of_a_threshold_covers_it() -> None:
    """Of 2000 uniform values the true 99 % threshold is 0.99."""
    rank = planning.share_threshold(0.01, 2000).rank
    assert rank is not None
    values = np.sort(np.random.default_rng(1).random((3000, 2000)), axis=1)
    assert 0.94 < np.mean(values[:, -rank] >= 0.99) < 0.985
    assert np.mean(values[:, -rank - 1] >= 0.99) < 0.95
