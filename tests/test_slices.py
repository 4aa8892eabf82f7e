# SPDX-License-Identifier: Apache-2.0

import numpy as np
from analysis_records import MS, SERIES, Counted, count, slice_of
from analysis_records import block as block_of
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import histogram_bins
from rtproof.record.contents import View
from rtproof.summary import series
from rtproof.summary.series import SeriesReach

VALUES = st.lists(st.integers(-1000, 10**9), min_size=1, max_size=30)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_slices_add_up_to_the_run(pieces: list[list[int]]) -> None:
    made, due = [], 0
    for values in pieces:
        counted = count(SERIES, [block_of(values)])
        made.append(slice_of(SERIES, View.OBSERVED, values, range(due, due + len(values) * MS, MS), counted))
        due += len(values) * MS
    flat = [value for values in pieces for value in values]
    part = series.part_of_slices(made)
    cells, n = np.unique(histogram_bins.bin_of(np.array(flat)), return_counts=True)
    lo, hi = histogram_bins.bin_edges(cells)
    assert part.observed.counts.lo.tolist() == lo.tolist()
    assert part.observed.counts.hi.tolist() == hi.tolist()
    assert part.observed.counts.n.tolist() == n.tolist()
    assert (part.observed.moments.sum, part.observed.moments.max) == (sum(flat), max(flat))
    assert part.observed.moments.sum_squares == sum(v * v for v in flat)
    assert part.lag.pairs == len(flat) - len(pieces)
    assert part.reach == SeriesReach(0, due - MS)


def test_the_views_are_kept_apart() -> None:
    observed = slice_of(SERIES, View.OBSERVED, [5, 2_500_000], [0, MS], Counted(pairs=1))
    charged = slice_of(SERIES, View.CHARGED, [1_500_000, 500_000], [2 * MS, 3 * MS], Counted())
    part = series.part_of_slices([observed, charged])
    assert (part.observed.moments.count, part.charged.moments.sum, part.lag.pairs) == (2, 2_000_000, 1)
    assert part.reach == SeriesReach(0, 3 * MS)


def test_many_slices_are_added_up_in_little_memory() -> None:
    one = slice_of(SERIES, View.OBSERVED, list(range(500)), [0], Counted())
    part = series.part_of_slices([one] * 3000)
    assert part.observed.counts.n.tolist() == [3000] * 500
    assert part.observed.counts.total == 1_500_000


def test_no_slice() -> None:
    assert series.part_of_slices([]).observed.counts.total == 0
    assert series.reach_of_slices([]) is None
