# SPDX-License-Identifier: Apache-2.0

from analysis_records import MS, array, block, fact, record

from rtproof.judge import verdict_sentences
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement
from rtproof.record.contents import Counter, Moment


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
        "anything rarer than once per 667 ms may be missing from this run "
        "(95 %, fixed-time; once per 574 ms if it could have ended at any time)"
    )
    texts = [text for _, text in lines]
    assert "a run of 2.0 s cannot have seen what comes once a day" in texts
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
