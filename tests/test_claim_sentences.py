# SPDX-License-Identifier: Apache-2.0
"""Each state's sentences, in the terminal, on the page, in JUnit, Markdown and JSON, of one limit and of three."""

from dataclasses import replace

import numpy as np
import pytest
from analyses_by_verdict import measured
from analysis_records import MS, SECOND, block, fact, record

from rtproof.judge import planning, verdict_sentences
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement
from rtproof.record.contents import Moment
from rtproof.schema.published import analysis_dict

ONE = Requirement(500_000, SECOND)


def test_json_tells_both_kinds_and_both_times() -> None:
    late = analyse(measured(*range(5_000, 6_000, 40)), replace(ONE, gap_ns=50 * MS, longest_ns=400 * MS), 1)
    verdict = analysis_dict(late)["verdict"]
    assert (verdict["state"], verdict["kind"], verdict["assumption"]) == ("REFUTED", "duration", None)
    assert verdict["proven_at_ns"] < verdict["decided_at_ns"] == 5_400_000_000
    assert verdict["requirement"]["longest_ns"] == 400 * MS
    assert "The first 3.5 s alone would have been PROVEN" in verdict["reasons"]


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


def test_chance_that_the_maximum_is_exceeded() -> None:
    assert (planning.chance_exceeded(1, 1), planning.chance_exceeded(1, 3)) == (0.5, 0.75)
    assert planning.predicted_until(19) == pytest.approx(1)
    assert planning.chance_exceeded(19, planning.predicted_until(19)) == pytest.approx(0.05)


def test_what_a_run_shows_at_least_once() -> None:
    assert 30 / planning.rarest_ns(30) == pytest.approx(2.9957, abs=1e-4)
    assert 30 / planning.rarest_ns(30, anytime=True) == pytest.approx(3.4819, abs=1e-4)


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


def test_the_upper_limit_of_a_threshold_covers_it() -> None:
    """Of 2000 uniform values the true 99 % threshold is 0.99."""
    rank = planning.share_threshold(0.01, 2000).rank
    assert rank is not None
    values = np.sort(np.random.default_rng(1).random((3000, 2000)), axis=1)
    assert 0.94 < np.mean(values[:, -rank] >= 0.99) < 0.985
    assert np.mean(values[:, -rank - 1] >= 0.99) < 0.95
