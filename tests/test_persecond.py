# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import SECOND, SERIES, array, block

from rtproof.record.contents import Seconds
from rtproof.summary import per_second

SLOW = replace(SERIES, period_ns=400_000_000, first_due_ns=-400_000_000)


def as_lists(seconds: Seconds) -> list[tuple[int, int, int, int]]:
    columns = (seconds.second, seconds.obtained, seconds.missed, seconds.max)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_an_activation_belongs_to_the_second_of_its_due_time() -> None:
    """Due at -0.4, 0, 0.4, 0.8, 1.2 and 1.6 s."""
    found = per_second.seconds_of_block(SLOW, block([9, 1, 7, 5, -3, -4], series=SLOW))
    assert as_lists(found) == [(-1, 1, 0, 9), (0, 3, 0, 7), (1, 2, 0, -3)]


def test_seconds_in_which_nothing_ran_have_their_missed_ones() -> None:
    """-0.4 ran; 0 to 1.6 were missed; 2.0 ran; 2.4 was missed; 2.8 ran, and 3.2 to 4.4 were missed."""
    found = per_second.seconds_of_block(
        SLOW, block([2_000_000_001, 400_000_001, 1_600_000_001], {0: 5, 1: 1, 2: 4}, series=SLOW)
    )
    assert as_lists(found) == [
        (-1, 1, 0, 2_000_000_001),
        (0, 0, 3, 0),
        (1, 0, 2, 0),
        (2, 2, 1, 1_600_000_001),
        (3, 0, 2, 0),
        (4, 0, 2, 0),
    ]


def test_parts_of_the_same_second_add_up() -> None:
    a = Seconds(array(4, 5), array(1, 0), array(0, 2), array(-7, 0))
    b = Seconds(array(5, 9), array(3, 1), array(1, 0), array(-2, 6))
    assert as_lists(per_second.merge_seconds((b, a))) == [(4, 1, 0, -7), (5, 3, 3, -2), (9, 1, 0, 6)]


def test_two_sources_on_the_same_activations_are_joined_not_added() -> None:
    torn = Seconds(array(4, 5), array(1000, 400), array(0, 2), array(70, 30))
    whole = Seconds(array(4, 5, 6), array(1000, 998, 10), array(0, 2, 0), array(70, 90, 5))
    assert as_lists(per_second.join_seconds(torn, whole)) == as_lists(whole)


def test_nothing_is_nothing() -> None:
    assert (
        as_lists(per_second.merge_seconds(()))
        == as_lists(per_second.join_seconds(per_second.NO_SECONDS, per_second.NO_SECONDS))
        == []
    )


def test_the_edge_of_a_second_belongs_to_the_next() -> None:
    found = per_second.seconds_of_block(SERIES, block([1, 2], first_index=SECOND // SERIES.period_ns - 1))
    assert as_lists(found) == [(0, 1, 0, 1), (1, 1, 0, 2)]
