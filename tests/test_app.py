# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from analysis_records import MS, block, record
from app_cases import APP, TABLE, US, app_record, whole
from hypothesis import given
from hypothesis import strategies as st
from stage_records import fields_of, staged

from rtproof.record.contents import Record
from rtproof.summary import per_second
from rtproof.summary.loops import (
    LOOP_FIELDS,
    ApplicationLoops,
    is_app,
    loops_of_all_threads,
    loops_of_threads,
    relation_holds,
)

PERIOD_US = 5_000


def of(made: Record) -> ApplicationLoops:
    return loops_of_all_threads(loops_of_threads(made).values())


def test_times_of_a_loop_are_told_from_its_target() -> None:
    loops = whole(app_record(TABLE))
    assert loops.target_ns.tolist() == [0, 5 * MS, 10 * MS, 15 * MS, 20 * MS]
    assert (loops.error_ns // US).tolist() == [40, 1_311, 38, 41, 300]
    assert (loops.work_ns // US).tolist() == [1_000, 780, 852, 900, 15_890]
    assert loops.followed.tolist() == [True] * 4 + [False]


def test_a_late_top_makes_one_loop_longer_and_the_next_shorter() -> None:
    """Article 3's own relation: 6271 - 5000 is 5000 - 3727, to a microsecond or two."""
    loops = whole(app_record(TABLE))
    assert (loops.loop_ns[:2] // US).tolist() == [PERIOD_US + 1_271, PERIOD_US - 1_273]


def test_slack_is_from_the_end_of_the_work_to_the_next_target() -> None:
    late = [(0, 0, 4_999), (0, 0, 5_000), (1, 1, 5_001), (2, 2, 3)]
    found = of(app_record(late))
    assert (whole(app_record(late)).slack_ns[:3] // US).tolist() == [1, 0, -1]
    assert (found.slack.min, found.slack.count, found.no_sleep) == (-US, 3, 2)


def test_moments_are_those_of_the_columns() -> None:
    found, loops = of(app_record(TABLE)), whole(app_record(TABLE))
    assert (found.work.count, found.loop.count, found.error.count) == (5, 4, 5)
    assert (found.work.min, found.work.max) == (780 * US, 15_890 * US)
    assert found.loop.deviation == pytest.approx(np.std(loops.loop_ns[:4], ddof=1))
    assert found.error.mean == pytest.approx(np.mean(loops.error_ns))


def test_loop_times_add_up_to_what_passed() -> None:
    made = app_record(TABLE, [(7, 8, 9)] * 4)
    assert {thread: (each.elapsed_ns // US, each.apart) for thread, each in loops_of_threads(made).items()} == {
        0: (4 * PERIOD_US + 260, 0),
        1: (3 * PERIOD_US, 0),
    }
    assert of(made).elapsed_ns == of(made).loop.sum


def test_loops_that_are_not_all_known_do_not_add_up() -> None:
    found = of(app_record(TABLE, gaps={1: 3}))
    assert (found.loop.count, found.apart) == (3, 1)
    assert not relation_holds(found.loop.count, found.loop.sum, found.elapsed_ns)


@pytest.mark.parametrize(
    ("off_ns", "holds"), [(0, True), (3_000, True), (-3_000, True), (3_001, False), (-3_001, False)]
)
def test_the_relation_allows_a_microsecond_for_each_loop(off_ns: int, holds: bool) -> None:
    assert relation_holds(3, 15 * MS + off_ns, 15 * MS) is holds


def test_the_fields_make_it_an_app_whatever_the_probe_is_called() -> None:
    assert is_app(app_record(TABLE))
    assert is_app(staged({"top": [1], "start": [2], "end": [3]}))
    assert not is_app(staged({"irq": [1], "task": [2]}))
    assert not is_app(staged({"start": [1], "top": [2], "end": [3]}))
    assert not is_app(record([]))


def test_a_thread_that_lacks_a_field_is_left_out() -> None:
    made = app_record(TABLE, TABLE)
    without = replace(made, series=tuple(each for each in made.series if (each.thread, each.field) != (0, "start")))
    assert list(loops_of_threads(without)) == [1]


def test_one_loop_is_followed_by_none() -> None:
    found = of(app_record(TABLE[:1]))
    assert (found.work.count, found.loop.count, found.slack.count, found.elapsed_ns, found.apart) == (1, 0, 0, 0, 0)


def test_nothing_at_all_is_an_app_without_loops() -> None:
    series = fields_of(APP, 0, LOOP_FIELDS)
    assert loops_of_threads(record([], series)) == {}
    assert loops_of_all_threads([]) == ApplicationLoops()


@given(
    st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 50), st.integers(0, 9_000)), min_size=1, max_size=60),
    st.integers(1, 7),
    st.sets(st.integers(1, 59), max_size=6),
)
def test_pieces_and_holes_change_no_loop(drawn: list[tuple[int, int, int]], longest: int, holes: set[int]) -> None:
    """Whatever the lengths of stretches and blocks, and wherever the record lacks activations."""
    rows = [(top, top + wait, top + wait + work) for top, wait, work in drawn]
    starts = sorted({0, *(hole for hole in holes if hole < len(rows))})
    blocks = []
    for at, series in enumerate(fields_of(APP, 0, LOOP_FIELDS)):
        for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
            blocks.append(block([US * row[at] for row in rows[start:stop]], None, start + 2 * number, series))
    made = record(sorted(blocks, key=lambda each: each.first_index), fields_of(APP, 0, LOOP_FIELDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", longest)
        loops = whole(made)
    index = [at + 2 * sum(start <= at for start in starts[1:]) for at in range(len(rows))]
    tops = [PERIOD_US * number + row[0] for number, row in zip(index, rows, strict=True)]
    assert loops.index.tolist() == index
    assert (loops.top_ns // US).tolist() == tops
    followed = [after - before == 1 for before, after in pairwise(index)]
    assert loops.followed.tolist() == [*followed, False]
    expected = [b - a if near else 0 for a, b, near in zip(tops, tops[1:], followed, strict=False)]
    assert (loops.loop_ns // US).tolist() == [*expected, 0]
