# SPDX-License-Identifier: Apache-2.0
"""What a maximum, a threshold and a length are worth, against published figures and simulation."""

import numpy as np
import pytest

from rtproof.judge import planning

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
    again, later, bound = planning.largest_value_sentences(1_106_000, LONG)
    assert again == (
        "a second, equally long run will exceed this with a probability of at most 50 %, if it is alike "
        "(an equal maximum does not exceed it)"
    )
    assert later == (
        "within the next 2 h 52 min it is exceeded with a probability of at most 5 %, if conditions stay alike; "
        "at most m/(n+m) for m more after n"
    )
    assert bound == "> 1,106 us: less often than once per 18 h 11 min (95 %, fixed-time)"
    assert planning.unseen_event_sentences(LONG) == (
        "anything rarer than once per 18 h 11 min may be missing from this run "
        "(95 %, fixed-time; once per 15 h 38 min if it could have ended at any time)",
        "1 boot cannot show what differs from boot to boot",
    )
    assert planning.unseen_event_sentences(HOUR // 2)[1] == "a run of 30 min cannot have seen what comes once a day"


def test_a_length_that_was_not_fixed_is_said() -> None:
    bound = planning.largest_value_sentences(5_000, HOUR, length_was_fixed=False)[2]
    assert bound.endswith("fixed-time, had the length been fixed beforehand, which it was not)")


def test_a_published_threshold() -> None:
    found = planning.share_threshold(1e-5, 1_500_000)
    assert (found.exceeding, found.rank) == (15, 9)
    assert [found.low, found.high] == pytest.approx([5.597e-6, 1.6494e-5], rel=1e-3)
    text = planning.threshold_rank_sentence(found)
    assert "the 99.999 % threshold of 1,500,000 activations (15 above it): between 5.6e-06 and 1.65e-05" in text
    assert text.endswith("(95 %): the 9th largest value")


def test_too_few_values_have_no_upper_limit_for_the_threshold() -> None:
    assert planning.share_threshold(1e-5, 299_000).rank is None
    assert planning.share_threshold(1e-5, 300_000).rank == 1
    assert planning.threshold_rank_sentence(planning.share_threshold(1e-5, 1000)).endswith("none: n is too small")


@pytest.mark.parametrize(
    ("rank", "ordinal"),
    [(1, "1st"), (2, "2nd"), (13, "13th"), (23, "23rd"), (30, "30th"), (111, "111th"), (121, "121st")],
)
def test_ranks_have_their_endings(rank: int, ordinal: str) -> None:
    text = planning.threshold_rank_sentence(planning.ShareThreshold(0.1, 10, 1, 0.0, 0.2, rank, 0.95))
    assert text.endswith(f"the {ordinal} largest value")


def test_the_upper_limit_of_a_threshold_covers_it() -> None:
    """Of 2000 uniform values the true 99 % threshold is 0.99."""
    rank = planning.share_threshold(0.01, 2000).rank
    assert rank is not None
    values = np.sort(np.random.default_rng(1).random((3000, 2000)), axis=1)
    assert 0.94 < np.mean(values[:, -rank] >= 0.99) < 0.985
    assert np.mean(values[:, -rank - 1] >= 0.99) < 0.95
