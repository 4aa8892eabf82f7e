# SPDX-License-Identifier: Apache-2.0
"""A map of latency over time: how many activations ran in each stretch of time with each latency.

The map takes all threads together and the field that is judged. It counts samples if they are few, or if the SUMMARY
slices of the record lack some. Otherwise it counts the slices: they are read much faster, but are only as fine as one
slice. So the map counts what ``series.summarise`` counts. Missed activations never ran and are not in the map.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.record import histogram_bins
from rtproof.record.contents import ChunkRef, Int64Array, Record, Seconds, Series, Slice, View
from rtproof.record.histogram_bins import unpack_histograms
from rtproof.summary.fields import judged_series
from rtproof.summary.per_second import stretches
from rtproof.summary.series import by_series, samples_tell_all

# The rows of the map: eight for each power of two, each made of whole bins of the record's scale.
#
# Rows are numbered like those bins (docs/record-format.md, SUMMARY), with 8 steps in a power of two in place of 512.
# Each of the values 0 to 15 has a row of its own. Negative values have rows too: row -1 - r holds -1 - v for each value
# v of row r. So zero and negative values have rows of their own.


ROWS_PER_POWER = 8
LAST_ROW = (63 - 3) * ROWS_PER_POWER + ROWS_PER_POWER - 1
"""The row of the largest 64-bit value."""
ROW_COUNT = 2 * (LAST_ROW + 1)
ZERO_ROW = LAST_ROW + 1
"""The place of row 0 in an array of all rows."""
_LARGEST = np.iinfo(np.int64).max


def rows_of_values(values: Int64Array) -> Int64Array:
    """The row of each value."""
    return rows_of_bins(histogram_bins.bin_of(values))


def rows_of_bins(places: Int64Array) -> Int64Array:
    """The row of each bin of the record's scale."""
    rows: Int64Array = _ROW[places]
    return rows


def row_edges(first: int, last: int) -> Int64Array:
    """The smallest value of each row from first to last, and at the end the smallest value above the last row.

    The end is at most the largest 64-bit value.
    """
    low = np.array([smallest_of_row(row) for row in range(first, last + 1)], np.int64)
    return np.append(low, min(smallest_of_row(last + 1), _LARGEST)).astype(np.int64)


def smallest_of_row(row: int) -> int:
    """The smallest value of a row."""
    if row < 0:
        return -smallest_of_row(-row)
    octave = max(row // ROWS_PER_POWER - 1, 0)
    return (row - octave * ROWS_PER_POWER) << octave


def _row_of_each_bin() -> Int64Array:
    low = histogram_bins.bin_edges(np.arange(histogram_bins.LAST_BIN + 1))[0]
    begins = np.array([smallest_of_row(row) for row in range(LAST_ROW + 1)], np.int64)
    rows = np.searchsorted(begins, low, side="right") - 1
    return np.concatenate((rows, -1 - rows[::-1])).astype(np.int64)


_ROW = _row_of_each_bin()
"""The row of each bin. The index of a negative bin counts from the end of the array."""


SECOND_NS = 1_000_000_000
COLUMNS = 300
MOST_SAMPLES = 8_000_000
"""If a record has more samples, its slices are counted."""
ALL_THREADS_TOGETHER = 64
"""How many slices are unpacked at once."""


@dataclass(frozen=True)
class LatencyDensity:
    """How many activations ran, by due time and latency: counts[r][c] for row r of latencies and column c of time.

    time_edges_ns, latency_edges: one element more than there are columns or rows, lowest first.
    what: "samples", or "slices" if any slice was counted. A slice is counted in the column of its middle.
    column_ns: the width of all columns.
    slice_ns: the usual length of a slice.
    """

    time_edges_ns: Int64Array
    latency_edges: Int64Array
    counts: Int64Array
    what: str
    column_ns: int
    slice_ns: int = 0


def latency_density(
    record: Record, seconds: Seconds, columns: int = COLUMNS, most_samples: int = MOST_SAMPLES
) -> LatencyDensity | None:
    """The map of a record, with at most ``columns`` columns; None if nothing ran.

    seconds: those of all threads together. most_samples: a test sets it to a smaller number.
    """
    sources = _sources(record, most_samples)
    slices = [part for _, _, parts in sources for part in parts]
    slice_ns = _usual_length(slices)
    edges = _time_edges(seconds, slices, max(SECOND_NS, slice_ns), columns)
    grid = _Grid(edges)
    for series, refs, parts in sources:
        _add_samples(grid, record, series, refs)
        _add_slices(grid, parts)
    rows = np.flatnonzero(grid.counts.any(axis=0))
    if not rows.size:
        return None
    low, high = int(rows[0]), int(rows[-1])
    counts = np.ascontiguousarray(grid.counts[:, low : high + 1].T)
    latency = row_edges(low - ZERO_ROW, high - ZERO_ROW)
    return LatencyDensity(edges, latency, counts, "slices" if slices else "samples", int(edges[1] - edges[0]), slice_ns)


class _Grid:
    """The counts while they are added up.

    A line is a column of time, so that neighbours in time are neighbours in memory.
    """

    def __init__(self, edges: Int64Array) -> None:
        self._edges = edges
        self.counts = np.zeros((edges.size - 1, ROW_COUNT), np.int64)

    def columns(self, due_ns: Int64Array) -> Int64Array:
        start, width = int(self._edges[0]), int(self._edges[1] - self._edges[0])
        return np.clip((due_ns - start) // width, 0, len(self.counts) - 1)

    def add(self, columns: Int64Array, rows: Int64Array, counts: Int64Array | int) -> None:
        np.add.at(self.counts.reshape(-1), columns * ROW_COUNT + (rows + ZERO_ROW), counts)


def _sources(record: Record, most_samples: int) -> list[tuple[Series, list[ChunkRef], list[Slice]]]:
    """What is counted of each series: its chunks of samples, or its slices."""
    refs = by_series(record.chunk_refs)
    slices = by_series(part for part in record.slices if part.view is View.OBSERVED)
    wanted = judged_series(record)
    few = sum(ref.count for series in wanted for ref in refs[series.id]) <= most_samples
    return [
        (series, [], slices[series.id])
        if _slices_are_better(refs[series.id], slices[series.id], few)
        else (series, refs[series.id], [])
        for series in wanted
    ]


def _slices_are_better(refs: list[ChunkRef], slices: list[Slice], few: bool) -> bool:
    """Whether slices hold more than the samples, or as much where the samples are not few."""
    samples, summarised = sum(ref.count for ref in refs), sum(part.count for part in slices)
    return not samples_tell_all(refs, slices) or (not few and samples == summarised)


def _usual_length(slices: list[Slice]) -> int:
    """The length that one in twenty slices exceeds, in whole seconds; 0 without slices.

    Slices grow with the run. A column must be long enough that long slices leave no empty columns beside them. A single
    slice that a stall made long says nothing about the others.
    """
    lengths = sorted(part.last_due_ns - part.first_due_ns for part in slices if part.count)
    return max(round(lengths[-1 - len(lengths) // 20] / SECOND_NS), 1) * SECOND_NS if lengths else 0


def _time_edges(seconds: Seconds, slices: list[Slice], unit_ns: int, most: int) -> Int64Array:
    """The edges of columns of 1, 2, 5, 10, 20, ... units that cover the seconds and the middles of the slices."""
    known = [int(second) * SECOND_NS for second in (*seconds.second[:1], *seconds.second[-1:])]
    known += [_middle(part) for part in slices]
    first, last = min(known, default=0), max(known, default=0)
    width = next(width for width in _widths(unit_ns) if last // width - first // width < most)
    return np.arange(first // width, last // width + 2, dtype=np.int64) * width


def _widths(unit_ns: int) -> Iterator[int]:
    while True:
        yield from (unit_ns, 2 * unit_ns, 5 * unit_ns)
        unit_ns *= 10


def _middle(part: Slice) -> int:
    return (part.first_due_ns + part.last_due_ns) // 2


def _add_samples(grid: _Grid, record: Record, series: Series, refs: list[ChunkRef]) -> None:
    for some, _ in stretches(series, record.read_blocks(tuple(refs))):
        grid.add(grid.columns(some.due_ns), rows_of_values(some.value), 1)


def _add_slices(grid: _Grid, slices: list[Slice]) -> None:
    columns = grid.columns(np.array([_middle(part) for part in slices], np.int64))
    for at in range(0, len(slices), ALL_THREADS_TOGETHER):
        sizes, places, counts = unpack_histograms(slices[at : at + ALL_THREADS_TOGETHER])
        rows = rows_of_bins(places)
        begins = _row_begins(rows, sizes)
        number = np.searchsorted(np.cumsum(sizes), begins, side="right")
        grid.add(columns[at + number], rows[begins], np.add.reduceat(counts, begins))


def _row_begins(rows: Int64Array, sizes: Int64Array) -> Int64Array:
    """The places at which a new row or a new slice begins in ``rows``. sizes: the number of bins of each slice.

    Adding up from these places saves most additions.
    """
    begins = np.ones(rows.size, np.bool_)
    begins[1:] = rows[1:] != rows[:-1]
    ends = np.cumsum(sizes)
    begins[ends[ends < rows.size]] = True
    return np.flatnonzero(begins)
