# SPDX-License-Identifier: Apache-2.0
from analysis_records import SERIES, array, block

from rtproof.analysis import samples
from rtproof.analysis.part import Part, Reach, add_up, hull


def test_parts_add_up() -> None:
    whole = samples.part_of(SERIES, [block([1, 2_000_007, 3], {1: 2})], array(), 5)
    parts = [samples.part_of(SERIES, [one], array(), 5) for one in (block([1, 2_000_007], {1: 2}), block([3], None, 4))]
    added = add_up(parts)
    assert (added.observed.moments, added.charged.moments) == (whole.observed.moments, whole.charged.moments)
    assert (added.reach, added.top.value.tolist()) == (whole.reach, whole.top.value.tolist())
    assert added.seconds.missed.tolist() == [2]


def test_no_part_is_an_empty_one() -> None:
    added = add_up([])
    assert (added.observed.counts.total, added.reach, added.lost) == (0, None, 0)
    assert add_up([Part(lost=2), Part(lost=3)]).lost == 5


def test_reaches_span_what_is_between_them() -> None:
    assert hull([Reach(5, 9), None, Reach(-1, 6)]) == Reach(-1, 9)
    assert hull([None]) is None
