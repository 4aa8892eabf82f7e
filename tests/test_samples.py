# SPDX-License-Identifier: Apache-2.0
"""Everything that is read off samples, against counting activation by activation."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, count
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.core.errors import RecordError
from rtproof.record.contents import Block, Series
from rtproof.summary import series
from rtproof.summary.series import SeriesPart, add_parts

PERIOD = 100 * MS
GRID = replace(SERIES, period_ns=PERIOD, first_due_ns=35 * MS)
FREE = replace(GRID, on_grid=False)
LATENCY = st.integers(-1000, 60_000) | st.integers(0, 3 * PERIOD)


@st.composite
def grid_blocks(draw: st.DrawFn) -> list[Block]:
    """Blocks with missed activations behind late ones, and now and then a hole between blocks."""
    blocks, index = [], draw(st.integers(0, 3))
    for values in draw(st.lists(st.lists(LATENCY, min_size=1, max_size=12), min_size=1, max_size=6)):
        gaps = {at: v // PERIOD for at, v in enumerate(values) if v >= PERIOD}
        blocks.append(block(values, gaps, index, GRID))
        index += len(values) + sum(gaps.values()) + draw(st.sampled_from((0, 0, 0, 5)))
    return blocks


def free_blocks(values: list[list[int]]) -> list[Block]:
    blocks, index, due = [], 0, FREE.first_due_ns
    for some in values:
        blocks.append(Block(0, index, due, np.array(some, np.int64), array(), array()))
        index += len(some)
        due += sum(some) + len(some) * PERIOD
    return blocks


def check(series: Series, blocks: list[Block], starts: list[int], part: SeriesPart) -> None:
    expected = count(series, blocks, starts)
    lo, n = part.observed.counts.lo, part.observed.counts.n
    assert np.repeat(lo, n).tolist() == sorted(expected.observed)
    assert np.repeat(part.charged.counts.lo, part.charged.counts.n).tolist() == sorted(expected.charged)
    assert part.charged.moments.count == len(expected.charged)
    assert (part.lag.pairs, part.lag.sum_products) == (expected.pairs, expected.products)
    assert part.lag.catch_up_pairs == expected.catch_up
    seconds = zip(*(getattr(part.seconds, name).tolist() for name in ("obtained", "missed", "max")), strict=True)
    assert {s: x for s, x in zip(part.seconds.second.tolist(), seconds, strict=True) if any(x)} == {
        s: x for s, x in expected.seconds.items() if any(x)
    }
    top = zip((-part.top.value).tolist(), part.top.index.tolist(), part.top.due_ns.tolist(), strict=True)
    assert list(top) == expected.top[: part.top.k]


@settings(deadline=None)
@given(grid_blocks(), st.data())
def test_on_the_grid(blocks: list[Block], data: st.DataObject) -> None:
    starts = [b.first_due_ns for b in blocks if data.draw(st.booleans())]
    check(GRID, blocks, starts, series.part_of_samples(GRID, blocks, array(*sorted(starts)), k=5))


@settings(deadline=None)
@given(st.lists(st.lists(LATENCY, min_size=1, max_size=9), min_size=1, max_size=6), st.data())
def test_off_the_grid(values: list[list[int]], data: st.DataObject) -> None:
    blocks = free_blocks(values)
    starts = sorted({b.first_due_ns for b in blocks if data.draw(st.booleans())})
    check(FREE, blocks, starts, series.part_of_samples(FREE, blocks, array(*starts), k=5))


@settings(deadline=None)
@given(grid_blocks(), st.integers(1, 40), st.integers(0, 6))
def test_long_stretches_and_parts_change_nothing(blocks: list[Block], longest: int, cut: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtproof.summary.per_second.LONGEST", longest)
        check(GRID, blocks, [], series.part_of_samples(GRID, blocks, array(), k=5))
    lead = min(cut, 2)
    parts = [series.part_of_samples(GRID, blocks[:cut], array(), 5)] if cut else []
    if blocks[cut:]:
        parts.append(series.part_of_samples(GRID, blocks[max(cut - 2, 0) :], array(), 5, lead=lead))
    check(GRID, blocks, [], add_parts(parts))


def test_activations_missed_off_the_grid_belong_to_the_second_they_were_due_in() -> None:
    late = Block(0, 0, 35 * MS, array(5, 3 * SECOND, 7), array(1), array(29))
    part = series.part_of_samples(FREE, [late], array(), 5)
    check(FREE, [late], [], part)
    assert int(part.seconds.missed.sum()) == 29


def test_a_long_gap_is_charged_without_being_spelt_out() -> None:
    missed = 3_000_000
    late = block([missed * PERIOD + 7], {0: missed}, series=GRID)
    part = series.part_of_samples(GRID, [late], array(), 5)
    assert part.charged.moments.count == part.charged.counts.total == missed
    assert (part.charged.moments.min, part.charged.moments.max) == (7, (missed - 1) * PERIOD + 7)
    assert int(part.seconds.missed.sum()) == missed


def test_a_stall_of_years_is_refused() -> None:
    with pytest.raises(RecordError, match="claims a stall of 11574 days"):
        series.part_of_samples(GRID, [block([5], {0: 10_000_000_000}, series=GRID)], array(), 5)
