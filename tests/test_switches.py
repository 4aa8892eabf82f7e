# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import block, record
from hypothesis import given
from hypothesis import strategies as st
from stage_records import KERNEL, fields_of, staged

from rtproof.record.contents import Block, Record
from rtproof.summary import per_second
from rtproof.summary.fields import series_by_field, stage_switches
from rtproof.summary.summary_model import Switch


def of(made: Record) -> tuple[Switch, ...]:
    return stage_switches(made, series_by_field(made))


def test_the_difference_is_taken_activation_by_activation() -> None:
    (found,) = of(staged({"irq": [1_000, 5_000, 2_000], "task": [4_000, 9_000, 2_500]}))
    assert (found.earlier, found.later) == ("irq", "task")
    assert (found.moments.count, found.moments.min, found.moments.max, found.moments.sum) == (3, 500, 4_000, 7_500)
    assert found.counts.lo.tolist() == [500, 3_000, 4_000]
    assert (found.backwards, found.unpaired) == (0, 0)


def test_three_stages_have_two_differences() -> None:
    found = of(staged({"irq": [1], "thread": [3], "user": [8]}))
    assert [(each.earlier, each.later, each.moments.max) for each in found] == [
        ("irq", "thread", 2),
        ("thread", "user", 5),
    ]


def test_threads_are_added_up() -> None:
    (found,) = of(staged({"irq": [1, 2], "task": [5, 6]}, {"irq": [10], "task": [11]}))
    assert (found.moments.count, found.moments.min, found.moments.max) == (3, 1, 4)


def test_a_later_stage_that_came_first_is_counted() -> None:
    (found,) = of(staged({"irq": [5, 5, 5_000_000], "task": [5, 4, 1]}))
    assert (found.backwards, found.moments.min) == (2, -4_999_999)


def test_one_field_has_no_differences_and_neither_has_a_summary() -> None:
    assert of(staged({"latency": [1, 2]})) == ()
    made = staged({"irq": [1], "task": [2]})
    bare = replace(made, series=tuple(replace(each, has_samples=False) for each in made.series))
    assert of(bare) == ()


@given(st.data())
def test_partners_are_found_by_their_activation_whatever_is_missing(data: st.DataObject) -> None:
    earlier, later = fields_of(KERNEL, 0, ("irq", "task"))
    size = data.draw(st.integers(1, 40))
    kept = [data.draw(st.lists(st.integers(0, size - 1), unique=True).map(sorted)) for _ in range(2)]
    blocks: list[Block] = []
    for series, some, factor in ((earlier, kept[0], 1), (later, kept[1], 3)):
        for run in _runs(some, data.draw(st.integers(1, 9))):
            blocks.append(block([factor * at for at in run], first_index=run[0], series=series))
    (found,) = of(record(blocks, (earlier, later)))
    both = sorted(set(kept[0]) & set(kept[1]))
    assert np.repeat(found.counts.lo, found.counts.n).tolist() == [2 * at for at in both]
    assert found.unpaired == len(kept[0]) + len(kept[1]) - 2 * len(both)


def _runs(places: list[int], most: int) -> list[list[int]]:
    """Runs of neighbours, none longer than ``most``."""
    found: list[list[int]] = []
    for at in places:
        if found and at == found[-1][-1] + 1 and len(found[-1]) < most:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def test_long_series_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_second, "LONGEST", 7)
    earlier, later = fields_of(KERNEL, 0, ("irq", "task"))
    blocks = [block(range(at, at + 5), first_index=at, series=earlier) for at in range(0, 100, 5)]
    blocks += [block(range(at + 9, at + 13), first_index=at, series=later) for at in range(0, 100, 4)]
    (found,) = of(record(blocks, (earlier, later)))
    assert (found.moments.count, found.moments.min, found.moments.max, found.unpaired) == (100, 9, 9, 0)
