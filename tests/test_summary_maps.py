# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, Counted, array, block, record, slice_of
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import histogram_bins
from rtproof.record.contents import Block, ChunkRef, Int64Array, Record, Seconds, Series, Slice, View
from rtproof.summary import density, series
from rtproof.summary.counts import NO_COUNTS, Counts, DominantBin, counts_of_values, dominant_bin
from rtproof.summary.density import COLUMNS, LatencyDensity, latency_density, rows_of_values, smallest_of_row
from rtproof.summary.loops import DrawnPoints, Envelope

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
        row = int(rows_of_values(array(value))[0])
        cell = due // made.column_ns * made.column_ns, smallest_of_row(row)
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


def test_samples_off_the_grid() -> None:
    series = replace(SERIES, on_grid=False, period_ns=300 * MS)
    values = [5_000, 2 * SECOND, 7_000, 8_000, 3 * SECOND, 9_000]
    dues = [0, 300_005_000, 2_600_005_000, 2_900_012_000, 3_200_020_000, 6_500_020_000]
    made = found(record([block(values, series=series)], (series,)))
    assert cells(made) == by_hand(dues, values, made)


def test_all_threads_together() -> None:
    other = replace(SERIES, id=1, thread=1, first_due_ns=MS // 4)
    made = found(record([block([5_000] * 10), block([5_001] * 20, series=other)], (SERIES, other)))
    assert cells(made) == {(0, 4_608): 30}


def test_columns_are_few_whole_seconds_and_cover_everything() -> None:
    hours = Seconds(np.arange(40_000), *(np.ones(40_000, np.int64) for _ in range(3)))
    made = found(record([block([5_000])], seconds={0: hours}))
    assert made.counts.shape[1] == made.time_edges_ns.size - 1 <= COLUMNS
    assert made.column_ns == 200 * SECOND
    assert (made.time_edges_ns[0], made.time_edges_ns[-1]) == (0, 40_000 * SECOND)


def test_rows_begin_and_end_where_something_lies() -> None:
    made = found(record([block([-5, 0, 5_000, 70_000])]))
    assert min(made.counts[0].sum(), made.counts[-1].sum()) > 0
    assert made.latency_edges.size == made.counts.shape[0] + 1
    assert made.latency_edges[0] == -5
    assert made.counts.dtype == np.dtype(np.int64)


def test_many_samples_are_counted_from_slices_and_few_from_samples() -> None:
    whole = long_record()
    few, many = found(whole), found(whole, most_samples=1_000)
    assert (few.what, few.column_ns, few.slice_ns) == ("samples", SECOND, 0)
    assert (many.what, many.column_ns, many.slice_ns) == ("slices", 10 * SECOND, 10 * SECOND)
    assert np.array_equal(few.counts.reshape(-1, 6, 10).sum(axis=2), many.counts)
    assert np.array_equal(few.latency_edges, many.latency_edges)


def test_a_record_without_samples() -> None:
    series = replace(SERIES, has_samples=False)
    made = found(record([], (series,), slices=tuple(slices_of(LATENCIES, series))))
    assert made.counts.sum() == LATENCIES.size
    assert np.array_equal(made.counts, found(long_record(), most_samples=0).counts)


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


def test_a_torn_record_without_a_grid_is_read_whole() -> None:
    series = replace(SERIES, on_grid=False)
    torn = long_record(drop_slices=(5,), series=series)
    made = found(torn, most_samples=0)
    assert (made.what, made.counts.sum()) == ("samples", LATENCIES.size)


def test_slices_that_are_there_are_not_read_from_samples() -> None:
    torn = long_record(drop_slices=(5,))
    read: list[int] = []

    def counting(refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        read.extend(ref.count for ref in refs)
        return torn.read_blocks(refs)

    seconds = series.pooled(series.summarise(torn, 1)).seconds
    made = latency_density(replace(torn, read_blocks=counting), seconds, most_samples=0)
    assert made is not None
    assert (made.what, made.counts.sum(), sum(read)) == ("slices", LATENCIES.size, 10_000)


def test_charged_slices_are_not_counted() -> None:
    charged = slice_of(SERIES, View.CHARGED, [400 * MS], [3 * MS], Counted())
    made = found(record([], slices=(*slices_of(LATENCIES), charged)))
    assert made.counts.sum() == LATENCIES.size


def test_nothing_ran() -> None:
    assert of(record([], ())) is None
    assert of(record([])) is None
    assert of(record([], (SERIES,), slices=(slice_of(SERIES, View.CHARGED, [-MS], [3 * MS], Counted()),))) is None


def drawn(values: list[int], most: int, cut: int = 0) -> DrawnPoints:
    envelope = Envelope(len(values), most)
    whole = np.array(values, np.int64)
    for part in (slice(cut), slice(cut, None)):
        envelope.add(np.arange(whole.size)[part], whole[part])
    return envelope.result()


def test_few_values_are_drawn_as_they_are() -> None:
    found = drawn([5, -1, 7], 3)
    assert (found.width, found.at.tolist()) == (1, [0, 1, 2])
    assert found.low.tolist() == found.high.tolist() == [5, -1, 7]


@given(st.lists(st.integers(-(2**62), 2**62), max_size=200), st.integers(2, 20), st.integers(0, 200))
def test_no_extreme_is_lost_and_no_more_points_are_drawn_than_allowed(values: list[int], most: int, cut: int) -> None:
    found = drawn(values, most, cut)
    assert found.at.size * (1 if found.width == 1 else 2) <= most + 1
    for at, low, high in zip(found.at.tolist(), found.low.tolist(), found.high.tolist(), strict=True):
        some = values[at : at + found.width]
        assert (low, high) == (min(some), max(some))
    assert sum(len(values[at : at + found.width]) for at in found.at.tolist()) == len(values)


def test_stretches_without_a_value_are_left_out() -> None:
    envelope = Envelope(4, 100)
    envelope.add(np.array([1, 3]), np.array([10, 30]))
    assert envelope.result().at.tolist() == [1, 3]
    assert Envelope(0).result().at.size == 0


VALUES = st.one_of(st.integers(-40, 40), st.integers(-(10**7), 10**7), st.integers(-(2**63), 2**63 - 2))


@given(st.lists(VALUES, min_size=1))
def test_every_value_lies_between_the_edges_of_its_row(values: list[int]) -> None:
    for value, row in zip(values, density.rows_of_values(np.array(values)).tolist(), strict=True):
        low, end = density.row_edges(row, row).tolist()
        assert low <= value < end


def test_no_bin_of_the_record_is_cut() -> None:
    every = np.arange(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN + 1)
    low, high = histogram_bins.bin_edges(every)
    rows = density.rows_of_bins(every)
    assert np.array_equal(rows, density.rows_of_values(low))
    assert np.array_equal(rows, density.rows_of_values(high))


def test_a_power_of_two_has_eight_rows_and_small_values_one_each() -> None:
    assert density.row_edges(0, 15).tolist() == list(range(17))
    first = int(density.rows_of_values(np.array([4_096]))[0])
    assert density.row_edges(first, first + 7).tolist() == list(range(4_096, 8_193, 512))


def test_zero_and_negative_values_have_rows_of_their_own() -> None:
    assert density.rows_of_values(np.array([-2, -1, 0, 1])).tolist() == [-2, -1, 0, 1]
    assert density.row_edges(-3, 0).tolist() == [-3, -2, -1, 0, 1]


def test_rows_reach_to_the_ends_of_64_bits() -> None:
    last = density.LAST_ROW
    ends = np.array([-(2**63), 2**63 - 1])
    assert density.rows_of_values(ends).tolist() == [-1 - last, last]
    assert (density.row_edges(-1 - last, last)[[0, -1]] == ends).all()
    assert density.row_edges(-1 - last, last).size == density.ROW_COUNT + 1


def of_dominant(*values: int, width: int = 2_000) -> DominantBin | None:
    return dominant_bin(counts_of_values(np.array(values, np.int64)), width)


def test_the_fullest_bin_begins_at_a_multiple_of_its_width() -> None:
    assert of_dominant(8_000, 9_999, 10_000, 500_000_000) == DominantBin(8_000, 10_000, 2, 4)


def test_bins_lie_below_zero_too() -> None:
    assert of_dominant(-1, -2_000, 0) == DominantBin(-2_000, 0, 2, 3)


def test_of_equally_full_bins_it_is_the_first() -> None:
    assert of_dominant(1, 5_000) == DominantBin(0, 2_000, 1, 2)


def test_a_wide_bin_of_the_record_stands_where_its_middle_lies() -> None:
    wide = Counts(np.array([1_000]), np.array([4_000]), np.array([7]))
    assert dominant_bin(wide, 2_000) == DominantBin(2_000, 4_000, 7, 7)


def test_nothing_has_none() -> None:
    assert dominant_bin(NO_COUNTS, 2_000) is None
