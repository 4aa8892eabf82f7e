# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace

import numpy as np
import pytest
from analyses_by_verdict import FIRST, lost_values, proven, several, undecided
from doubt_cases import clean
from forecast_cases import analysed, smooth
from report_cases import CASES, FORMATS_WITH_WORDS, normal, nothing, plots, sections_of, several_fields, tables, words

from rtproof import report
from rtproof.core.phrases import value
from rtproof.judge import verdict_sentences
from rtproof.judge.analyse import LOSS_CODES, analyse
from rtproof.judge.analysis_model import Analysis, State
from rtproof.record.contents import WHOLE_RUN, Event
from rtproof.report import render
from rtproof.report.blocks import Text
from rtproof.report.sections import forecast, verdict
from rtproof.report.sections.verdict import EXACTLY, LONGER, LOOP, SURE, VALID
from rtproof.schema.published import analysis_dict
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE
from rtproof.tail.forecast_model import ForecastHorizon


def first(analysis: Analysis) -> Text:
    found = verdict.verdict_section(analysis)[0]
    assert isinstance(found, Text)
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_state_comes_first_and_every_reason_is_told(name: str) -> None:
    analysis = CASES[name]()
    said = first(analysis)
    assert said.headline == analysis.verdict.state.value
    terms = dict(said.terms)
    for reason in analysis.verdict.reasons:
        assert reason[1:] in terms[EXACTLY] + terms[SURE]


@pytest.mark.parametrize(
    ("name", "state", "kind", "claim"),
    [
        ("proven", State.PROVEN, "good", "Episodes above 500 us come less often than once per 1.0 s."),
        ("refuted", State.REFUTED, "bad", "Episodes above 500 us come more often than once per 1 min 40 s."),
        (
            "undecided",
            State.UNDECIDED,
            "doubt",
            "This run cannot say whether episodes above 500 us come at most once per 10.0 s.",
        ),
        (
            "invalid",
            State.INVALID,
            "bad",
            "The run did not measure what was asked, so it says nothing about latencies above 500 us.",
        ),
        ("not_asked", State.NOT_ASKED, "normal", "The run was measured; no limit was given to judge it by."),
        (
            "chosen_after",
            State.UNDECIDED,
            "doubt",
            "This run cannot say whether episodes above 500 us come at most once per 1.0 s.",
        ),
        ("simulated", State.PROVEN, "good", "Episodes above 500 us come less often than once per 1.0 s."),
    ],
)
def test_the_claim_is_one_sentence(name: str, state: State, kind: str, claim: str) -> None:
    analysis = FIRST[name]()
    assert analysis.verdict.state is state
    assert (first(analysis).kind, first(analysis).paragraphs) == (kind, (claim,))


@pytest.mark.parametrize(
    ("name", "question", "words"),
    [
        ("proven", EXACTLY, "Not exceeded in 6.0 s (1 thread; 6,000 activations). Episodes above 500 us"),
        (
            "proven",
            SURE,
            "95 %, valid at any stopping time. A system that breaks this claim is called PROVEN in at most 5 % of "
            "runs, if episodes come independently and at a steady rate.",
        ),
        ("proven", LONGER, "No more time needed: the result was clear after 3.5 s."),
        (
            "refuted",
            SURE,
            "95 %, valid at any stopping time. A system that keeps this claim is called REFUTED in at most 5 % of "
            "runs, if episodes come independently and at a steady rate.",
        ),
        ("refuted", LONGER, "No more time needed: the result was clear after 351 ms."),
        ("undecided", SURE, "Nothing is decided; 95 % was asked for."),
        (
            "undecided",
            LONGER,
            "1 min 04 s more if nothing exceeds 500 us, 1 min 28 s more if one more episode comes. "
            "Estimated chance to be PROVEN within these times: 2 % and 3 %.",
        ),
        ("invalid", EXACTLY, "Policy fifo was asked for, but effective was"),
        ("invalid", SURE, "It has no confidence: the run is INVALID for the reason above."),
        (
            "invalid",
            LONGER,
            "A longer run does not help: correct what makes the run INVALID, and measure again.",
        ),
        ("not_asked", EXACTLY, "9 us on thread 0"),
        ("not_asked", SURE, "> 9 us: less often than once per"),
        ("not_asked", LONGER, "A run with --limit given before it starts takes 3 h 29 min to prove"),
        ("chosen_after", SURE, "A limit that was chosen after the data has no confidence. 0 episodes above 500 us"),
        ("chosen_after", LONGER, "A run with --limit 500us given before it starts takes 3.5 s to prove"),
        ("simulated", VALID, "no machine: a seeded process was played"),
        ("proven", VALID, "this kernel (6.1.0-rt)"),
        ("several", SURE, "95 % was asked for all limits together, which takes 97.5 % for this one."),
    ],
)
def test_the_other_questions_are_answered(name: str, question: str, words: str) -> None:
    assert words in dict(first(FIRST[name]()).terms)[question]


@pytest.mark.parametrize("name", FIRST)
def test_every_first_screen_answers_everything(name: str) -> None:
    assert [question for question, _ in first(FIRST[name]()).terms] == [EXACTLY, SURE, LONGER, VALID]


def test_lost_values_are_no_matter_of_time() -> None:
    analysis = lost_values()
    assert analysis.verdict.state is State.UNDECIDED
    assert verdict_sentences.longer_run_answer(analysis.verdict) == (
        "A longer run does not help: values are missing from this run. Measure again."
    )


def test_every_state_has_words_of_its_own_and_a_kind() -> None:
    assert set(verdict.MEANINGS) == set(verdict.KINDS) == set(State)
    assert all(words.startswith(f"{state.value}: ") for state, words in verdict.MEANINGS.items())


def test_the_other_sentences_follow() -> None:
    (table,) = tables(verdict.verdict_section(undecided())).values()
    assert [row[0] for row in table.rows if row[0]] == ["LIMIT", "RATE", "EXCEEDED", "MAX", "UNSEEN", "FORECAST"]


def test_of_several_limits_each_has_a_row_and_a_word_above() -> None:
    analysis = several()
    assert first(analysis).paragraphs[1].startswith("2 limits: ")
    (rows,) = (
        each.rows
        for title, each in tables(verdict.verdict_section(analysis)).items()
        if title.startswith("Every limit")
    )
    assert [row[:4] for row in rows] == [("500 us", "1.0 s", "PROVEN", "0"), ("500 us", "10.0 s", "UNDECIDED", "0")]
    assert rows[0][4].startswith("none, decided after 4.3 s")
    assert rows[1][4] == "36.4 s more if nothing exceeds 500 us, 1 min 12 s more if one more episode comes"


def test_one_limit_needs_no_table_and_no_doubt_no_box() -> None:
    blocks = verdict.verdict_section(proven())
    assert list(tables(blocks)) == ["What the verdict rests on"]
    assert [block for block in blocks if isinstance(block, Text)] == [first(proven())]


def test_doubts_are_on_the_first_screen() -> None:
    _, doubts, *_ = verdict.verdict_section(FIRST["simulated"]())
    assert isinstance(doubts, Text)
    assert (doubts.kind, doubts.headline) == ("doubt", "1 doubt: read all figures with this in mind")
    assert doubts.paragraphs[0].startswith("simulated: no figure is of any machine")


def test_many_doubts_are_counted() -> None:
    doubt = FIRST["simulated"]().doubts[0]
    told = verdict.doubt_answers(replace(proven(), doubts=tuple(replace(doubt, code=f"d{at}") for at in range(5))))
    assert told is not None
    assert (told.headline[:8], len(told.paragraphs), told.paragraphs[-1]) == ("5 doubts", 4, "and 2 more doubts, below")


def test_no_loss_is_among_those_below_and_a_record_that_is_not_whole_is_in_the_heading() -> None:
    doubt = FIRST["simulated"]().doubts[0]
    losses = tuple(replace(doubt, code=code, what=f"the {code}") for code in LOSS_CODES)
    told = verdict.doubt_answers(replace(proven(), doubts=(*losses, doubt, doubt)))
    assert told is not None
    below = [f"the {code}" for code in LOSS_CODES if code != "truncated"]
    assert told.paragraphs == (*below, "and 2 more doubts, below")
    every = len(LOSS_CODES) + 2
    assert told.headline == f"The truncated; {every} doubts in all: read all figures with this in mind"


def test_a_record_that_is_not_whole_is_told_where_nothing_else_is() -> None:
    doubt = replace(FIRST["simulated"]().doubts[0], code="truncated", what="the record was cut off")
    told = verdict.doubt_answers(replace(proven(), doubts=(doubt,)))
    assert told is not None
    assert told.paragraphs == ()
    assert told.headline == "The record was cut off; 1 doubt in all: read all figures with this in mind"


def test_a_doubt_about_each_thread_hides_no_other() -> None:
    """Only the first of each kind is told; of the others, how many there are."""
    doubt = FIRST["simulated"]().doubts[0]
    each = tuple(replace(doubt, code="drift", what=f"thread {at}") for at in range(8))
    told = verdict.doubt_answers(replace(proven(), doubts=(*each, doubt)))
    assert told is not None
    assert told.headline == "9 doubts: read all figures with this in mind"
    assert told.paragraphs == ("thread 0", doubt.what, "and 7 more doubts, below")


def test_objections_are_announced_on_the_first_screen() -> None:
    log = Event(5, WHOLE_RUN, "kernel", "BUG: scheduling while atomic: swapper/0/0/0x00010000")
    told = verdict.doubt_answers(analyse(clean(events=(log,)), workers=1))
    assert told is not None
    assert told.headline == "1 objection: read all figures with this in mind"
    assert told.paragraphs == ("objections to the run's own figures are below: kernel-log",)
    assert verdict.doubt_answers(analyse(clean(), workers=1)) is None


def test_of_a_few_limits_each_has_its_verdict_on_the_first_screen() -> None:
    said = first(several()).paragraphs[1]
    assert said == (
        "2 limits: 500 us once per 1.0 s PROVEN, 500 us once per 10.0 s UNDECIDED. "
        "The next lines are about the worst one, 500 us once per 10.0 s:"
    )
    many = replace(several(), verdicts=several().verdicts * 3)
    assert first(many).paragraphs[1].startswith("6 limits: 3 PROVEN, 3 UNDECIDED.")


def test_a_loop_is_answered_by_its_cycles_and_an_application_by_its_loops() -> None:
    cycles = dict(first(CASES["loop"]()).terms)[LOOP]
    assert "cycles were out of the band. That leaves a share of up to" in cycles
    assert cycles.endswith("STALLED for 30.0 s.")
    analysis = CASES["application"]()
    told = dict(first(analysis).terms)[LOOP]
    top, _, end = analysis.stages
    assert told.startswith(f"Of {top.observed.count:,} loops the top was late by ")
    assert f"on average and {value(top.observed.max)} at most;" in told
    assert told.endswith(f"the work was done {value(end.observed.max)} after its target at the latest.")
    assert LOOP not in dict(first(undecided()).terms)


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("form", FORMATS_WITH_WORDS)
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


def two_mechanisms() -> Analysis:
    largest, generator = smooth(), np.random.default_rng(3)
    at = generator.random(largest.size) < 0.01
    largest[at] = generator.normal(8e6, 2e5, int(at.sum())).astype(np.int64)
    return analysed(largest, 400_000)


@pytest.fixture(scope="module")
def given() -> Analysis:
    return analysed(smooth(), 400_000)


@pytest.fixture(scope="module")
def refused() -> Analysis:
    return two_mechanisms()


def test_what_is_given_says_what_it_is_not_and_what_holds_without_it(given: Analysis) -> None:
    said, free, *_ = forecast.forecast_section(given)
    assert isinstance(said, Text)
    assert isinstance(free, Text)
    assert said.headline.startswith("once-per-80-h level <= ")
    assert "not a proof" in said.headline
    assert any("cannot know of a mechanism" in line for line in said.paragraphs)
    assert "> 400 us: less often than once per 80 h (95 %, model-based)" in said.paragraphs
    assert free.headline == "What holds without a model"
    assert free.paragraphs[0].startswith("> 245.822 us: less often than once per")
    assert any("may be missing from this run" in line for line in free.paragraphs)


def test_a_refusal_gives_every_reason_and_what_holds_without_it(refused: Analysis) -> None:
    said, free, *_ = forecast.forecast_section(refused)
    assert isinstance(said, Text)
    assert isinstance(free, Text)
    assert said.kind == "doubt"
    assert said.headline.startswith("There is no forecast")
    assert said.paragraphs[0].startswith("FIT: the tail is not one smooth distribution")
    assert free.paragraphs[0].startswith("> ")


def test_the_plots_of_a_given_one(given: Analysis) -> None:
    levels, excess, fit = plots(forecast.forecast_section(given))
    names = [curve.name for curve in levels.curves]
    assert names == ["measured", "fitted", "upper limit, 95 %", "lower limit, 95 %"]
    assert [marker.name for marker in levels.markers] == ["limit 400 us", "measured until here"]
    assert "refused" not in levels.title
    assert max(levels.curves[2].x) == pytest.approx(80)
    assert [marker.name for marker in excess.markers] == ["fits begin here"]
    assert "Anderson-Darling p = " in fit.says


def test_a_refused_one_is_drawn_and_marked_as_refused(refused: Analysis) -> None:
    levels = plots(forecast.forecast_section(refused))[0]
    assert levels.title.endswith("(refused: FIT)")
    assert [marker.name for marker in levels.markers][1] == "refused beyond here: FIT"
    assert "must not be read as a forecast" in levels.says


def test_the_table_has_every_fit_and_whether_it_holds(given: Analysis) -> None:
    table = tables(forecast.forecast_section(given))["Fits of the tail by number of values; limit"]
    assert given.forecast is not None
    assert given.forecast.ladder is not None
    assert [row[0].replace(",", "") for row in table.rows] == [str(rung.k) for rung in given.forecast.ladder.rungs]
    assert {row[-1] for row in table.rows} <= {"yes", "no"}
    assert table.rows[0][-1] == "yes"


def test_a_short_run_has_its_reason_and_no_plot() -> None:
    blocks = forecast.forecast_section(analysed(smooth(0.2)))
    assert plots(blocks) == []
    assert "FEW: 72 tail events" in words(blocks)


def test_nothing_measured_has_no_section() -> None:
    assert "forecast" not in sections_of(nothing())


@pytest.mark.parametrize("horizon_ns", [1, 60 * 10**9, 3600 * 10**9])
def test_a_horizon_within_the_run_is_drawn_to_the_end_of_the_run(given: Analysis, horizon_ns: int) -> None:
    near = analysed(smooth(), 400_000, ForecastHorizon(horizon_ns))
    assert near.forecast is not None
    assert near.forecast.limit_ns == smooth().max() + 1
    levels, *_ = plots(forecast.forecast_section(near))
    assert max(levels.curves[2].x) == pytest.approx(8)
    assert "no less than the largest latency measured" in levels.says
    assert "limit_ns" in analysis_dict(near)["forecast"]["ladder"][0]


def test_latencies_below_0_are_drawn_too() -> None:
    below, above = (plots(forecast.forecast_section(analysed(smooth(3) - shift)))[0] for shift in (10**6, 0))
    assert not below.log_y
    assert above.log_y
    assert max(below.curves[0].y) == pytest.approx(int(smooth(3).max()) / 1000 - 1000)


def test_a_warning_stands_with_a_far_one() -> None:
    far = analysed(smooth(), horizon=ForecastHorizon(400 * 3600 * 10**9, far=True))
    assert "50 times as far" in words(forecast.forecast_section(far))


@pytest.mark.parametrize("form", ["html", "markdown", "text", "json"])
def test_every_format_draws_both(given: Analysis, refused: Analysis, form: str) -> None:
    for analysis in (given, refused):
        drawn = render(form, "t", [sections_of(analysis)["forecast"]]).decode()
        assert "What holds without a model" in drawn
        assert "nan" not in drawn.replace("nanosleep", "").lower()
