# SPDX-License-Identifier: Apache-2.0
"""Counting samples as they come, in bounded memory.

Values below WINDOW are counted in an array (pages that no value touches cost nothing), others as pairs of value and
count. When more than MOST different values lie outside the first 2^20, all of those go to the record's log-linear
scale. Whether that happens depends on the values only, never on the order or the pieces in which they came.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rtproof.analysis import moments
from rtproof.analysis.counts import EMPTY, Counts, from_dense, from_values, merge
from rtproof.analysis.model import NO_MOMENTS, Moments
from rtproof.record import Int64Array, bins

WINDOW = 1 << 22
"""4.2 ms: the latencies of all but stalls."""
ALWAYS_EXACT = 1 << 20
MOST = 2_000_000
"""Different values outside ALWAYS_EXACT (32 MB) that are kept exactly."""
BATCH = 1 << 20
"""Samples that are counted at once: enough to outweigh adding up an array of bins."""
PENDING = 500_000
NEAR = 1 << 14
PROBES = 512
"""Samples that tell how far most of an array reaches. What lies above is sorted, which few values bear better."""


@dataclass(frozen=True)
class Tallied:
    """Counts and their exact moments; the moments stay exact where the counts do not."""

    counts: Counts = EMPTY
    moments: Moments = NO_MOMENTS


NOTHING = Tallied()


def add_up(parts: Iterable[Tallied], most: int = MOST) -> Tallied:
    """All parts together, on the scale that one tally of all their values would have chosen."""
    some = list(parts)
    return Tallied(_bounded(merge(part.counts for part in some), most), moments.merge(part.moments for part in some))


class Tally:
    """Counts of the values added so far. ``most`` is smaller in tests."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: list[Int64Array] = []
        self._n = 0
        self._scratch = np.empty(0, np.int64)
        self._dense = np.zeros(WINDOW, np.int64)
        self._end = 0
        self._rest: list[Counts] = []
        self._distinct = 0
        self._far = Tallied()

    def add(self, values: Int64Array) -> None:
        """Count an array of values, which must not change any more."""
        self._values.append(values)
        self._n += values.size
        if self._n >= BATCH:
            self._count_waiting()

    def _count_waiting(self) -> None:
        if self._scratch.size < self._n:
            self._scratch = np.empty(self._n, np.int64)
        if self._n:
            self._count(np.concatenate(self._values, out=self._scratch[: self._n]))
        self._values, self._n = [], 0

    def _count(self, values: Int64Array) -> None:
        """Count an array that may be written over: fresh memory for each step would cost more than the step."""
        low, high = int(values.min()), int(values.max())
        if low < 0 or low >= WINDOW:
            self._add_rest(from_values(values))
            return
        reach = min(max(int(values[:: values.size // PROBES + 1].max()), low + NEAR), WINDOW)
        if high >= reach:
            self._add_rest(from_values(values[values >= reach]))
        self._add_dense(values, low, min(reach, high + 1))

    def add_progression(self, first: int, step: int, terms: int) -> None:
        """Count first, first - step, first - 2 step, ...; a long one costs no more than the bins it falls into."""
        if terms > self._most + ALWAYS_EXACT:
            tallied = Tallied(_progression_on_scale(first, step, terms), moments.of_progression(first, step, terms))
            self._far = add_up((self._far, tallied), self._most)
            return
        for done in range(0, terms, PENDING):
            self.add(first - step * np.arange(done, min(done + PENDING, terms), dtype=np.int64))

    def result(self) -> Tallied:
        """Everything added so far; the tally can go on."""
        self._count_waiting()
        self._consolidate()
        near = from_dense(self._dense[: self._end])
        return add_up((self._far, Tallied(near, moments.of_counts(near))), self._most)

    def _add_dense(self, values: Int64Array, low: int, end: int) -> None:
        """Count the values from low to end; those above go to a bin of their own, which is left out."""
        values -= low
        np.minimum(values, end - low, out=values)
        found = np.bincount(values, minlength=end - low)
        self._dense[low:end] += found[: end - low]
        self._end = max(self._end, end)

    def _add_rest(self, counts: Counts) -> None:
        self._rest.append(counts)
        self._distinct += counts.n.size
        if self._distinct > PENDING:
            self._consolidate()

    def _consolidate(self) -> None:
        counts = merge(self._rest)
        self._far = add_up((self._far, Tallied(counts, moments.of_counts(counts))), self._most)
        self._rest, self._distinct = [], 0


def _bounded(counts: Counts, most: int) -> Counts:
    """The counts as they are, or on the scale where they are too many or parts of them are there already."""
    far = (counts.lo < 0) | (counts.lo >= ALWAYS_EXACT)
    if counts.exact and int(far.sum()) <= most:
        return counts
    lo, hi = bins.edges(bins.index(counts.lo[far]))
    return merge((Counts(counts.lo[~far], counts.hi[~far], counts.n[~far]), Counts(lo, hi, counts.n[far])))


def _progression_on_scale(first: int, step: int, terms: int) -> Counts:
    """How many terms fall into each bin of the scale; those below ALWAYS_EXACT one by one."""
    last = first - step * (terms - 1)
    lo, hi = bins.edges(np.arange(int(bins.index(last)), int(bins.index(first)) + 1))
    n = _terms_above(lo - 1, first, step, terms) - _terms_above(hi, first, step, terms)
    far = ((lo < 0) | (lo >= ALWAYS_EXACT)) & (n > 0)
    from_, to = (int(_terms_above(np.array([x]), first, step, terms)[0]) for x in (ALWAYS_EXACT - 1, -1))
    return merge((Counts(lo[far], hi[far], n[far]), from_values(first - step * np.arange(from_, to, dtype=np.int64))))


def _terms_above(values: Int64Array, first: int, step: int, terms: int) -> Int64Array:
    """How many terms of the progression are larger than each value."""
    return np.clip((first - values - 1) // step + 1, 0, terms)
