# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from analysis_records import MS, SERIES, array, block

from rtproof.analysis import stretch
from rtproof.analysis.stretch import Stretch, stretches


def test_blocks_that_follow_on_are_joined_with_their_gaps_and_cuts() -> None:
    blocks = [block([1, 2], {1: 3}), block([3], first_index=5), block([4, 5], {0: 1}, first_index=6)]
    (found,) = stretches(SERIES, blocks, array(0, 6 * MS, 99 * MS))
    assert found.block.values.tolist() == [1, 2, 3, 4, 5]
    assert found.block.gap_position.tolist() == [1, 3]
    assert found.block.gap_missed.tolist() == [3, 1]
    assert found.cuts.tolist() == [0, 3]
    assert found.tail is None


def test_a_hole_ends_a_stretch_and_leaves_no_tail() -> None:
    found = list(stretches(SERIES, [block([1, 2]), block([3, 4], first_index=3)], array()))
    assert [s.block.first_index for s in found] == [0, 3]
    assert [s.tail for s in found] == [None, None]


def values_of(one: Stretch | None) -> list[int] | None:
    return one.block.values.tolist() if one else None


def test_a_long_stretch_is_handed_on_with_its_last_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch, "LONGEST", 3)
    blocks = [block([1, 2, 3], {2: 1}), block([4], first_index=4), block([5, 6, 7], first_index=5)]
    first, second = stretches(SERIES, blocks, array(4 * MS))
    assert (values_of(first), values_of(first.tail)) == ([1, 2, 3], None)
    assert (values_of(second), values_of(second.tail)) == ([4, 5, 6, 7], [2, 3])
    assert second.cuts.tolist() == [0]
    assert second.tail is not None
    assert (second.tail.block.gap_position.tolist(), second.tail.block.gap_missed.tolist()) == ([1], [1])


def test_leading_blocks_are_a_tail_only() -> None:
    blocks = [block([1]), block([2], first_index=1), block([3, 4], first_index=2)]
    (found,) = stretches(SERIES, blocks, array(), lead=2)
    assert (values_of(found), values_of(found.tail)) == ([3, 4], [1, 2])


def test_no_blocks_no_stretches() -> None:
    assert list(stretches(SERIES, [])) == []


def test_off_the_grid_a_block_may_tell_its_due_time_anew() -> None:
    loose = replace(SERIES, on_grid=False)
    first = block([5, 7], series=loose)
    derived = replace(block([9], first_index=2, series=loose), first_due_ns=2 * MS + 12)
    drifted = replace(block([11], first_index=3, series=loose), first_due_ns=9 * MS)
    found = list(stretches(loose, [first, derived, drifted]))
    assert [(each.block.first_due_ns, values_of(each)) for each in found] == [(0, [5, 7, 9]), (9 * MS, [11])]
    assert values_of(found[1].tail) == [7, 9]
