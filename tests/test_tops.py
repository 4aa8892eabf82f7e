# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
from analysis_records import SERIES, array, block
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.contents import Block, Top
from rtproof.summary import per_second


@given(st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=9), max_size=6), st.integers(1, 7))
def test_the_largest_of_all_blocks_the_earlier_first(pieces: list[list[int]], k: int) -> None:
    top, index = per_second.empty_top(k), 0
    for values in pieces:
        top = per_second.top_of_block(SERIES, block(values, first_index=index), top)
        index += len(values)
    flat = [value for values in pieces for value in values]
    expected = sorted((-value, at) for at, value in enumerate(flat))[:k]
    assert list(zip((-top.value).tolist(), top.index.tolist(), strict=True)) == expected


def test_places_behind_gaps() -> None:
    late = block([1, 2, 3, 4], {0: 3, 2: 5}, first_index=10)
    index, due = per_second.place_of_activation(SERIES, late, array(0, 1, 2, 3))
    assert index.tolist() == [10, 14, 15, 21]
    assert due.tolist() == [1_000_000 * i for i in (10, 14, 15, 21)]


def test_off_the_grid_each_due_time_follows_from_the_one_before() -> None:
    free = replace(SERIES, on_grid=False)
    _, due = per_second.place_of_activation(free, Block(0, 7, 100, array(5, 6, 7), array(), array()), array(0, 2))
    assert due.tolist() == [100, 100 + 2_000_011]


def test_an_activation_named_twice_counts_once() -> None:
    a = Top(2, array(1, 2), array(10, 20), array(9, 8))
    merged = per_second.merge_tops((a, a, Top(2, array(3), array(30), array(8))))
    assert (merged.index.tolist(), merged.value.tolist()) == ([1, 2], [9, 8])


def test_only_the_smallest_k_is_exact_over_all() -> None:
    long = Top(3, array(1, 2, 3), array(1, 2, 3), array(9, 8, 7))
    assert per_second.merge_tops((long, Top(2, array(4, 5), array(4, 5), array(6, 5)), per_second.NO_TOP)).k == 2


def test_of_several_series() -> None:
    found = per_second.top_of_series(
        {4: Top(2, array(1), array(30), array(9)), 0: Top(2, array(1, 2), array(20, 40), array(9, 3))}
    )
    assert found.series is not None
    assert (found.value.tolist(), found.series.tolist()) == ([9, 9], [0, 4])
    assert np.array_equal(found.due_ns, [20, 30])
