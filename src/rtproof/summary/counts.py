# SPDX-License-Identifier: Apache-2.0
"""How often each value occurred, as sorted bins [lo, hi] with counts. A bin with lo == hi is exact.

``merge_counts`` adds the parts of a run. Bins that overlap become one bin, their union. So an exact value that lies
inside another part's wide bin is counted in that wide bin. The merged bins are the connected groups of all bins of the
parts. They do not depend on the order or the grouping of the parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Int64Array


@dataclass(frozen=True)
class FixedBins:
    """Counts in bins [start + k * width, start + (k + 1) * width).

    Values outside the scale are kept in ``below`` and ``above``.

    straddling: how many of the counts came from a source bin that an edge cuts. They are counted where the middle of
        the source bin lies.
    """

    start: int
    width: int
    below: int
    counts: Int64Array
    above: int
    straddling: int


@dataclass(frozen=True)
class Counts:
    """Three arrays of equal length: the bins from lo to hi, both ends inclusive, with n > 0 values each.

    The bins increase and do not overlap.
    """

    lo: Int64Array
    hi: Int64Array
    n: Int64Array

    @property
    def total(self) -> int:
        return int(self.n.sum())

    @property
    def exact(self) -> bool:
        """Whether every bin holds one value only."""
        return bool(np.array_equal(self.lo, self.hi))

    def value_at_rank(self, rank: int) -> tuple[int, int]:
        """The bin (lo, hi) of the rank-th smallest value, for rank 1 to total; IndexError outside."""
        if not 1 <= rank <= self.total:
            raise IndexError(f"rank {rank} of {self.total} values")
        at = int(np.searchsorted(np.cumsum(self.n), rank))
        return int(self.lo[at]), int(self.hi[at])

    def exceedances(self, limit: int) -> tuple[int, int]:
        """How many values are larger than limit, at least and at most: unlike only if a wide bin holds the limit."""
        return int(self.n[self.lo > limit].sum()), int(self.n[self.hi > limit].sum())

    def fixed_bins(self, start: int, width: int, count: int) -> FixedBins:
        """The same counts in ``count`` bins of equal width, and the counts below and above these bins."""
        if width < 1 or count < 1:
            raise ValueError("a histogram needs at least one bin of width 1")
        first, last = _bin_number(self.lo, start, width, count), _bin_number(self.hi, start, width, count)
        middle = _bin_number(self.lo + (self.hi - self.lo) // 2, start, width, count)
        sums = np.zeros(count + 2, np.int64)
        np.add.at(sums, middle, self.n)
        straddling = int(self.n[first != last].sum())
        return FixedBins(start, width, int(sums[0]), sums[1:-1], int(sums[-1]), straddling)

    def bins_between(self, edges: Int64Array) -> Int64Array:
        """The counts in the bins [edges[k], edges[k + 1]). A source bin that an edge cuts counts at its middle."""
        place = np.searchsorted(edges, self.lo + (self.hi - self.lo) // 2, side="right") - 1
        inside = (place >= 0) & (place < edges.size - 1)
        sums = np.zeros(edges.size - 1, np.int64)
        np.add.at(sums, place[inside], self.n[inside])
        return sums

    def ccdf(self) -> tuple[Int64Array, NDArray[np.float64]]:
        """The upper ends of the bins, and the share of all counts that is larger than each, exact for any bins."""
        larger = self.n[::-1].cumsum()[::-1] - self.n
        return self.hi, larger / max(self.total, 1)


def _bin_number(values: Int64Array, start: int, width: int, count: int) -> Int64Array:
    """The bin of each value: 0 below the scale, 1 to count on it, count + 1 above; without an overflow of 63 bits."""
    end = start + width * count
    if max(-start, end, end - start) > LARGEST_VALUE:
        numbers = [min(max((value - start) // width, -1), count) + 1 for value in values.tolist()]
        return np.array(numbers, np.int64)
    on_scale = (np.clip(values, start, end) - start) // width + 1
    return np.where(values < start, 0, np.where(values >= end, count + 1, on_scale))


NO_COUNTS = Counts(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def counts_of_values(values: Int64Array) -> Counts:
    """Exact counts of an array of values in any order."""
    distinct, n = np.unique(values, return_counts=True)
    return Counts(distinct, distinct, n.astype(np.int64))


def counts_of_dense_bins(counts: Int64Array) -> Counts:
    """Exact counts from an array whose element v says how often v occurred."""
    values = np.flatnonzero(counts).astype(np.int64)
    return Counts(values, values, counts[values])


def merge_counts(parts: Iterable[Counts]) -> Counts:
    """The sum of parts, in any order. Bins that overlap become one bin."""
    arrays = [(part.lo, part.hi, part.n) for part in parts if part.n.size]
    if not arrays:
        return NO_COUNTS
    lo, hi, n = (np.concatenate(each) for each in zip(*arrays, strict=True))
    order = np.argsort(lo, kind="stable")  # It merges parts that are sorted.
    lo, reach, n = lo[order], np.maximum.accumulate(hi[order]), n[order]
    starts = np.flatnonzero(np.concatenate(([True], lo[1:] > reach[:-1])))
    ends = np.append(starts[1:], lo.size) - 1
    return Counts(lo[starts], reach[ends], np.add.reduceat(n, starts))


@dataclass(frozen=True)
class DominantBin:
    """The values from start to below end: n of total."""

    start: int
    end: int
    n: int
    total: int


def dominant_bin(counts: Counts, width: int) -> DominantBin | None:
    """The fullest bin of this width that begins at a multiple of it, or the first of several; None without values."""
    if not counts.n.size:
        return None
    places, of = np.unique((counts.lo + (counts.hi - counts.lo) // 2) // width, return_inverse=True)
    sums = np.zeros(places.size, np.int64)
    np.add.at(sums, of, counts.n)
    best = int(sums.argmax())
    start = int(places[best]) * width
    return DominantBin(start, start + width, int(sums[best]), counts.total)
