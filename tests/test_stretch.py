# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from analysis_records import MS, SERIES, array, block

from rtproof.summary import per_second
from rtproof.summary.per_second import SampleStretch, sample_stretches


def test_blocks_that_follow_on_are_joined_with_their_gaps_and_cuts() -> None:
    blocks = [block([1, 2], {1: 3}), block([3], first_index=5), block([4, 5], {0: 1}, first_index=6)]
    (found,) = sample_stretches(blocks, array(0, 6 * MS, 99 * MS))
    assert found.block.values.tolist() == [1, 2, 3, 4, 5]
    assert found.block.gap_position.tolist() == [1, 3]
    assert found.block.gap_missed.tolist() == [3, 1]
    assert found.cuts.tolist() == [0, 3]
    assert found.tail is None


def test_a_hole_ends_a_stretch_and_leaves_no_tail() -> None:
    found = list(sample_stretches([block([1, 2]), block([3, 4], first_index=3)], array()))
    assert [s.block.first_index for s in found] == [0, 3]
    assert [s.tail for s in found] == [None, None]


def values_of(one: SampleStretch | None) -> list[int] | None:
    return one.block.values.tolist() if one else None


def test_a_long_stretch_is_handed_on_with_its_last_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_second, "LONGEST", 3)
    blocks = [block([1, 2, 3], {2: 1}), block([4], first_index=4), block([5, 6, 7], first_index=5)]
    first, second = sample_stretches(blocks, array(4 * MS))
    assert (values_of(first), values_of(first.tail)) == ([1, 2, 3], None)
    assert (values_of(second), values_of(second.tail)) == ([4, 5, 6, 7], [1, 2, 3])
    assert second.cuts.tolist() == [0]
    assert second.tail is not None
    assert (second.tail.block.gap_position.tolist(), second.tail.block.gap_missed.tolist()) == ([2], [1])


def test_leading_blocks_are_a_tail_only() -> None:
    blocks = [block([1]), block([2], first_index=1), block([3, 4], first_index=2)]
    (found,) = sample_stretches(blocks, array(), lead=2)
    assert (values_of(found), values_of(found.tail)) == ([3, 4], [1, 2])


def test_no_blocks_no_stretches() -> None:
    assert list(sample_stretches([])) == []


def test_what_the_blocks_told_of_their_due_times_is_kept() -> None:
    loose = replace(SERIES, on_grid=False)
    first = block([5, 7], series=loose)
    drifted = replace(block([11], first_index=2, series=loose), first_due_ns=9 * MS)
    (found,) = sample_stretches([first, drifted])
    assert found.told is not None
    assert (found.told.positions.tolist(), found.told.due_ns.tolist()) == ([0, 2], [0, 9 * MS])


def test_a_tail_keeps_what_was_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_second, "LONGEST", 4)
    blocks = [block([at], first_index=at) for at in range(3)] + [
        block([3, 4], first_index=3),
        block([5], first_index=5),
    ]
    told = [replace(one, first_due_ns=one.first_index * MS + 7) for one in blocks]
    _, last = sample_stretches(told)
    assert last.tail is not None
    assert last.tail.told is not None
    whole = per_second.join_blocks(last.tail, last)
    assert whole.told is not None
    assert (values_of(last.tail), values_of(whole)) == ([3, 4], [3, 4, 5])
    assert (whole.told.positions.tolist(), whole.told.due_ns.tolist()) == ([0, 2], [3 * MS + 7, 5 * MS + 7])
