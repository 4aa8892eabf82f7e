# SPDX-License-Identifier: Apache-2.0

from analysis_records import SERIES, array, block

from rtproof.summary import series
from rtproof.summary.series import SeriesPart, SeriesReach, add_parts, hull_of_reaches


def test_parts_add_up() -> None:
    whole = series.part_of_samples(SERIES, [block([1, 2_000_007, 3], {1: 2})], array(), 5)
    parts = [
        series.part_of_samples(SERIES, [one], array(), 5)
        for one in (block([1, 2_000_007], {1: 2}), block([3], None, 4))
    ]
    added = add_parts(parts)
    assert (added.observed.moments, added.charged.moments) == (whole.observed.moments, whole.charged.moments)
    assert (added.reach, added.top.value.tolist()) == (whole.reach, whole.top.value.tolist())
    assert added.seconds.missed.tolist() == [2]


def test_no_part_is_an_empty_one() -> None:
    added = add_parts([])
    assert (added.observed.counts.total, added.reach, added.lost) == (0, None, 0)
    assert add_parts([SeriesPart(lost=2), SeriesPart(lost=3)]).lost == 5


def test_reaches_span_what_is_between_them() -> None:
    assert hull_of_reaches([SeriesReach(5, 9), None, SeriesReach(-1, 6)]) == SeriesReach(-1, 9)
    assert hull_of_reaches([None]) is None
