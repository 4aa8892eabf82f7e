# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from doubt_cases import clean
from report_cases import CASES, tables
from verdict_cases import FIRST, lost_values, proven, several, undecided

from rtproof.core.phrases import value
from rtproof.judge.analyse import LOSS_CODES, analyse
from rtproof.judge.analysis_model import Analysis, State
from rtproof.record.contents import WHOLE_RUN, Event
from rtproof.report.blocks import Text
from rtproof.report.sections import verdict
from rtproof.report.sections.verdict import EXACTLY, LONGER, LOOP, SURE, VALID


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
            "Whether episodes above 500 us come at most once per 10.0 s, this run cannot say.",
        ),
        (
            "invalid",
            State.INVALID,
            "bad",
            "The run did not measure what was asked, so it says nothing of latencies above 500 us.",
        ),
        ("not_asked", State.NOT_ASKED, "normal", "The run was measured; no limit was given to judge it by."),
        (
            "chosen_after",
            State.UNDECIDED,
            "doubt",
            "Whether episodes above 500 us come at most once per 1.0 s, this run cannot say.",
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
            "95 %, valid at any stopping time. Wrong in at most 5 % of runs, if episodes come independently",
        ),
        ("proven", LONGER, "No longer: the result was clear after 3.5 s."),
        ("refuted", SURE, "Wrong in at most 5 % of runs, if episodes come independently of one another"),
        ("refuted", LONGER, "No longer: the result was clear after 351 ms."),
        ("undecided", SURE, "Nothing is decided; 95 % was asked for."),
        ("undecided", LONGER, "1 min 04 s more if nothing exceeds the limit (chance"),
        ("undecided", LONGER, "if one more episode comes ("),
        ("invalid", EXACTLY, "Policy fifo was asked for, but effective was"),
        ("invalid", SURE, "Not at all"),
        ("invalid", LONGER, "mend what makes the run invalid"),
        ("not_asked", EXACTLY, "9 us on thread 0"),
        ("not_asked", SURE, "> 9 us: less often than once per"),
        ("not_asked", LONGER, "A run with --limit given before it starts takes 3 h 29 min to prove"),
        ("chosen_after", SURE, "No test of it means anything. 0 episodes above 500 us"),
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
    assert "Longer does not help this run" in verdict.longer_run_answer(analysis.verdict)


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
    assert " after one more" in rows[1][4]


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


def test_no_loss_is_among_those_below() -> None:
    doubt = FIRST["simulated"]().doubts[0]
    losses = tuple(replace(doubt, code=code, what=code) for code in LOSS_CODES)
    told = verdict.doubt_answers(replace(proven(), doubts=(*losses, doubt, doubt)))
    assert told is not None
    assert told.paragraphs == (*LOSS_CODES, "and 2 more doubts, below")


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
    assert told.paragraphs == ("what speaks against its own figures is below: kernel-log",)
    assert verdict.doubt_answers(analyse(clean(), workers=1)) is None


def test_of_a_few_limits_each_has_its_verdict_on_the_first_screen() -> None:
    said = first(several()).paragraphs[1]
    assert said == (
        "2 limits: 500 us once per 1.0 s PROVEN, 500 us once per 10.0 s UNDECIDED. "
        "What follows is of the worst one, 500 us once per 10.0 s:"
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
