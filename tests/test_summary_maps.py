# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, Counted, block, record, slice_of
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.contents import Block, Int64Array, Record, Seconds, Series, Slice, View
from rtproof.summary import series
from rtproof.summary.density import COLUMNS, LatencyDensity, latency_density
from rtproof.summary.loops import Envelope

PER_BLOCK = 500
"""Samples in a block of the records below; 20 blocks are a slice of 10 s."""
LATENCIES = np.random.default_rng(3).gamma(2, 900, 60_000).astype(np.int64) + 3_000


def of(whole: Record, **options: int) -> LatencyDensity | None:
    """As a report asks for it."""
    return latency_density(whole, series.pooled(series.summarise(whole, 1)).seconds, **options)


def found(whole: Record, **options: int) -> LatencyDensity:
    result = of(whole, **options)
    assert result is not None
    return result


def observed(whole: Record) -> int:
    return series.pooled(series.summarise(whole, 1)).observed.count


def by_hand(dues: Sequence[int], values: Sequence[int], made: LatencyDensity) -> dict[tuple[int, int], int]:
    """(first time, lowest latency) of each filled cell, and how many lie in it."""
    cells: dict[tuple[int, int], int] = {}
    for due, value in zip(dues, values, strict=True):
        row = int(np.searchsorted(made.latency_edges, value, side="right")) - 1
        cell = due // made.column_ns * made.column_ns, int(made.latency_edges[row])
        cells[cell] = cells.get(cell, 0) + 1
    return cells


def cells(made: LatencyDensity) -> dict[tuple[int, int], int]:
    filled = zip(*np.nonzero(made.counts), strict=True)
    return {(int(made.time_edges_ns[c]), int(made.latency_edges[r])): int(made.counts[r, c]) for r, c in filled}


def blocks_of(values: Int64Array, series: Series = SERIES) -> list[Block]:
    return [
        block(values[at : at + PER_BLOCK], first_index=at, series=series) for at in range(0, values.size, PER_BLOCK)
    ]


def slices_of(values: Int64Array, series: Series = SERIES) -> list[Slice]:
    """As the agent writes them, every 10 s."""
    parts = []
    for at in range(0, values.size, 20 * PER_BLOCK):
        part = values[at : at + 20 * PER_BLOCK].tolist()
        dues = [series.first_due_ns + (at + number) * series.period_ns for number in range(len(part))]
        parts.append(slice_of(series, View.OBSERVED, part, dues, Counted()))
    return parts


def long_record(drop_blocks: Sequence[int] = (), drop_slices: Sequence[int] = (), series: Series = SERIES) -> Record:
    """A minute of samples and six slices, of which some are gone."""
    blocks = [each for at, each in enumerate(blocks_of(LATENCIES, series)) if at not in drop_blocks]
    slices = [each for at, each in enumerate(slices_of(LATENCIES, series)) if at not in drop_slices]
    return record(blocks, (series,), slices=tuple(slices))


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=50), st.integers(0, 3_000))
def test_samples_on_the_grid_with_gaps(values: list[int], gap: int) -> None:
    behind = len(values) // 2
    made = found(record([block(values, {behind: gap} if gap else None)]))
    dues = [(at + (gap if at > behind else 0)) * MS for at in range(len(values))]
    assert cells(made) == by_hand(dues, values, made)
    assert made.what == "samples"


def test_columns_are_few_whole_seconds_and_cover_everything() -> None:
    hours = Seconds(np.arange(40_000), *(np.ones(40_000, np.int64) for _ in range(3)))
    made = found(record([block([5_000])], seconds={0: hours}))
    assert made.counts.shape[1] == made.time_edges_ns.size - 1 <= COLUMNS
    assert made.column_ns == 200 * SECOND
    assert (made.time_edges_ns[0], made.time_edges_ns[-1]) == (0, 40_000 * SECOND)


def test_many_samples_are_counted_from_slices_and_few_from_samples() -> None:
    whole = long_record()
    few, many = found(whole), found(whole, most_samples=1_000)
    assert (few.what, few.column_ns, few.slice_ns) == ("samples", SECOND, 0)
    assert (many.what, many.column_ns, many.slice_ns) == ("slices", 10 * SECOND, 10 * SECOND)
    assert np.array_equal(few.counts.reshape(-1, 6, 10).sum(axis=2), many.counts)
    assert np.array_equal(few.latency_edges, many.latency_edges)


@pytest.mark.parametrize("most_samples", [0, 10**9], ids=["many", "few"])
@pytest.mark.parametrize(
    ("drop_blocks", "drop_slices"),
    [((), (5,)), ((), (2,)), ((), (0, 3, 5)), ((119,), ()), ((3, 40), ()), ((3, 119), (2, 5)), ((1,), (0,))],
    ids=["torn", "slice gone", "slices gone", "last block", "blocks", "both", "both in the same slice"],
)
def test_damaged_records_are_counted_like_the_analysis_counts_them(
    drop_blocks: tuple[int, ...], drop_slices: tuple[int, ...], most_samples: int
) -> None:
    damaged = long_record(drop_blocks, drop_slices)
    assert found(damaged, most_samples=most_samples).counts.sum() == observed(damaged) > 0


def drawn(values: list[int], most: int, cut: int = 0) -> Envelope:
    envelope = Envelope(len(values), most)
    whole = np.array(values, np.int64)
    for part in (slice(cut), slice(cut, None)):
        envelope.add(np.arange(whole.size)[part], whole[part])
    return envelope


@given(st.lists(st.integers(-(2**62), 2**62), max_size=200), st.integers(2, 20), st.integers(0, 200))
def test_no_extreme_is_lost_and_no_more_points_are_drawn_than_allowed(values: list[int], most: int, cut: int) -> None:
    found = drawn(values, most, cut)
    points = [each.tolist() for each in found.points]
    assert len(points[0]) * (1 if found.width == 1 else 2) <= most + 1
    for at, low, high in zip(*points, strict=True):
        some = values[at : at + found.width]
        assert (low, high) == (min(some), max(some))
    assert sum(len(values[at : at + found.width]) for at in points[0]) == len(values)


@given(st.lists(st.integers(-(2**63), 2**63 - 2), min_size=1, max_size=20))
def test_every_value_lies_between_the_edges_of_its_row(values: list[int]) -> None:
    for value in values:
        made = found(record([block([value])]))
        low, end = made.latency_edges.tolist()
        assert low <= value < end


def test_a_power_of_two_has_eight_rows() -> None:
    made = found(record([block([4_096, 8_191])]))
    assert made.latency_edges.tolist() == list(range(4_096, 8_193, 512))
