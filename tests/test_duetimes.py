# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import MS, SECOND, SERIES, array, block, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof.judge.analyse import analyse
from rtproof.summary.per_second import PreviousDueTime, off_grid_due_times

LOOSE = replace(SERIES, on_grid=False)
OUTSIDE = replace(LOOSE, external=True)


def test_a_due_time_follows_from_the_wake_up_before() -> None:
    one = replace(block([5, 7, 9], series=LOOSE), first_due_ns=100)
    assert off_grid_due_times(LOOSE, one).tolist() == [100, 100 + MS + 5, 100 + 2 * MS + 12]


def test_from_outside_it_follows_from_the_due_time_before_and_what_was_missed() -> None:
    one = replace(block([5, 7, 9], {0: 2, 2: 4}, series=OUTSIDE), first_due_ns=100)
    assert off_grid_due_times(OUTSIDE, one).tolist() == [100, 100 + 3 * MS, 100 + 4 * MS]
    told = PreviousDueTime(array(0, 2), array(100, 77))
    assert off_grid_due_times(OUTSIDE, one, told).tolist() == [100, 100 + 3 * MS, 77]


def test_in_a_record_of_1_0_it_follows_from_the_wake_up_before() -> None:
    old = replace(OUTSIDE, chained=True)
    one = replace(block([5, 7, 9], series=old), first_due_ns=100)
    assert off_grid_due_times(old, one).tolist() == off_grid_due_times(LOOSE, one).tolist()


@given(st.lists(st.lists(st.integers(-50, 90_000), min_size=1, max_size=4), min_size=1, max_size=9), st.data())
def test_what_a_block_tells_holds_until_the_next_one(parts: list[list[int]], data: st.DataObject) -> None:
    told = [data.draw(st.integers(0, SECOND)) for _ in parts]
    expected = []
    for values, due in zip(parts, told, strict=True):
        expected += [due + at * MS + sum(values[:at]) for at in range(len(values))]
    places = [sum(map(len, parts[:at])) for at in range(len(parts))]
    joined = replace(block([value for part in parts for value in part], series=LOOSE), first_due_ns=told[0])
    assert off_grid_due_times(LOOSE, joined, PreviousDueTime(array(*places), array(*told))).tolist() == expected


def test_a_record_of_events_from_outside_keeps_their_due_times() -> None:
    """One event every 700 ms where 1 ms was announced: none of them may end up near the first."""
    blocks = [
        replace(block([1_000 + at], first_index=at, series=OUTSIDE), first_due_ns=at * 700 * MS) for at in range(20)
    ]
    pooled = analyse(record(blocks, [OUTSIDE])).pooled
    assert pooled.span_ns == 19 * 700 * MS + MS
    assert pooled.seconds.second.tolist() == [at * 700 // 1000 for at in range(20) if at % 10 not in (1, 4, 7)]
    assert int(pooled.top.due_ns[0]) == 19 * 700 * MS
    assert int(pooled.seconds.obtained.sum()) == 20
