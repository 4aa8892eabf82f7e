# SPDX-License-Identifier: Apache-2.0
"""A map of latency over time, of all threads and the judged field: from samples, or from SUMMARY slices if many."""

from dataclasses import dataclass
from itertools import count

import numpy as np

from rtproof.record import histogram_bins
from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Int64Array, Record, Seconds, Slice, View
from rtproof.record.histogram_bins import unpack_histograms
from rtproof.summary.fields import judged_series
from rtproof.summary.per_second import SECOND_NS, stretches
from rtproof.summary.series import by_series

ROW_BITS = 6
"""A row is 64 neighbouring bins of the record's scale: an eighth of a power of two, or 64 values below 1,024."""
ZERO_ROW = histogram_bins.LAST_BIN + 1 >> ROW_BITS
"""The place of row 0 in an array of all rows. Bins of negative values have negative numbers, and so have their rows."""
ROW_COUNT = 2 * ZERO_ROW
COLUMNS = 300
MOST_SAMPLES = 8_000_000
"""If a record has more samples, its slices are counted."""
TOGETHER = 64
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
    """The map of a record; None if nothing ran. seconds: of all threads together. columns: at most so many."""
    refs = by_series(record.chunk_refs)
    by_slice = by_series(part for part in record.slices if part.view is View.OBSERVED)
    wanted = judged_series(record)
    few = sum(ref.count for series in wanted for ref in refs[series.id]) <= most_samples
    sampled, slices = [], []
    for series in wanted:
        samples, summarised = (sum(each.count for each in some[series.id]) for some in (refs, by_slice))
        # Slices are better if they hold more than the samples, or as much where the samples are not few.
        if samples < summarised or (not few and samples == summarised):
            slices += by_slice[series.id]
        else:
            sampled.append(series)
    middles = [(part.first_due_ns + part.last_due_ns) // 2 for part in slices]
    slice_ns = _usual_length(slices)
    edges = _time_edges(seconds, middles, max(SECOND_NS, slice_ns), columns)
    begin_ns, column_ns = int(edges[0]), int(edges[1] - edges[0])
    # A line is a column of time, so that neighbours in time are neighbours in memory.
    grid = np.zeros((edges.size - 1, ROW_COUNT), np.int64)

    def add(due_ns: Int64Array, bins: Int64Array, counts: Int64Array | int) -> None:
        column = np.clip((due_ns - begin_ns) // column_ns, 0, len(grid) - 1)
        np.add.at(grid.reshape(-1), column * ROW_COUNT + (bins >> ROW_BITS) + ZERO_ROW, counts)

    for series in sampled:
        for some, _ in stretches(series, record.blocks(series.id)):
            add(some.due_ns, histogram_bins.bin_of(some.value), 1)
    for at in range(0, len(slices), TOGETHER):
        sizes, places, counts = unpack_histograms([(part.stored, part.count) for part in slices[at : at + TOGETHER]])
        add(np.repeat(np.array(middles[at : at + TOGETHER], np.int64), sizes), places, counts)
    rows = np.flatnonzero(grid.any(axis=0))
    if not rows.size:
        return None
    low, high = int(rows[0]), int(rows[-1])
    counts = np.ascontiguousarray(grid[:, low : high + 1].T)
    first_bins = (np.arange(low, high + 1) - ZERO_ROW) << ROW_BITS
    lowest, highest = histogram_bins.bin_edges(first_bins)[0], histogram_bins.bin_edges(first_bins[-1:] + 63)[1]
    latency = np.append(lowest, np.minimum(highest, LARGEST_VALUE - 1) + 1)
    return LatencyDensity(edges, latency, counts, "slices" if slices else "samples", column_ns, slice_ns)


def _usual_length(slices: list[Slice]) -> int:
    """The length that one in twenty slices exceeds, in whole seconds, so that a single stall decides nothing; or 0."""
    lengths = sorted(part.last_due_ns - part.first_due_ns for part in slices if part.count)
    return max(round(lengths[-1 - len(lengths) // 20] / SECOND_NS), 1) * SECOND_NS if lengths else 0


def _time_edges(seconds: Seconds, middles: list[int], unit_ns: int, most: int) -> Int64Array:
    """The edges of columns of 1, 2, 5, 10, 20, ... units that cover the seconds and the middles of the slices."""
    known = [int(second) * SECOND_NS for second in (*seconds.second[:1], *seconds.second[-1:])] + middles
    first, last = min(known, default=0), max(known, default=0)
    widths = (unit_ns * 10**power * factor for power in count() for factor in (1, 2, 5))
    width: int = next(width for width in widths if last // width - first // width < most)
    return np.arange(first // width, last // width + 2, dtype=np.int64) * width
