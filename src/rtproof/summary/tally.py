# SPDX-License-Identifier: Apache-2.0
"""Count samples as they come, in bounded memory, and charge each missed activation with its lateness.

The lateness of missed activations makes the schedule view: one value for each due time, also where nothing ran.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rtproof.record import histogram_bins
from rtproof.record.contents import Block, Int64Array
from rtproof.summary import moments
from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_dense_bins, counts_of_values, merge_counts
from rtproof.summary.summary_model import NO_MOMENTS, Moments

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

    counts: Counts = NO_COUNTS
    moments: Moments = NO_MOMENTS


NOTHING_TALLIED = Tallied()


def add_tallies(parts: Iterable[Tallied], most: int = MOST) -> Tallied:
    """All parts together, on the scale that one tally of all their values would have chosen."""
    some = list(parts)
    return Tallied(
        _bounded(merge_counts(part.counts for part in some), most), moments.merge_moments(part.moments for part in some)
    )


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
            self._add_rest(counts_of_values(values))
            return
        reach = min(max(int(values[:: values.size // PROBES + 1].max()), low + NEAR), WINDOW)
        if high >= reach:
            self._add_rest(counts_of_values(values[values >= reach]))
        self._add_dense(values, low, min(reach, high + 1))

    def add_progression(self, first: int, step: int, terms: int) -> None:
        """Count first, first - step, first - 2 step, ...; a long one costs no more than the bins it falls into."""
        if terms > self._most + ALWAYS_EXACT:
            tallied = Tallied(
                _progression_on_scale(first, step, terms), moments.moments_of_progression(first, step, terms)
            )
            self._far = add_tallies((self._far, tallied), self._most)
            return
        for done in range(0, terms, PENDING):
            self.add(first - step * np.arange(done, min(done + PENDING, terms), dtype=np.int64))

    def result(self) -> Tallied:
        """Everything added so far; the tally can go on."""
        self._count_waiting()
        self._consolidate()
        near = counts_of_dense_bins(self._dense[: self._end])
        return add_tallies((self._far, Tallied(near, moments.moments_of_counts(near))), self._most)

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
        counts = merge_counts(self._rest)
        self._far = add_tallies((self._far, Tallied(counts, moments.moments_of_counts(counts))), self._most)
        self._rest, self._distinct = [], 0


def _bounded(counts: Counts, most: int) -> Counts:
    """The counts as they are, or on the scale where they are too many or parts of them are there already."""
    far = (counts.lo < 0) | (counts.lo >= ALWAYS_EXACT)
    if counts.exact and int(far.sum()) <= most:
        return counts
    lo, hi = histogram_bins.bin_edges(histogram_bins.bin_of(counts.lo[far]))
    return merge_counts((Counts(counts.lo[~far], counts.hi[~far], counts.n[~far]), Counts(lo, hi, counts.n[far])))


def _progression_on_scale(first: int, step: int, terms: int) -> Counts:
    """How many terms fall into each bin of the scale; those below ALWAYS_EXACT one by one."""
    last = first - step * (terms - 1)
    lo, hi = histogram_bins.bin_edges(
        np.arange(int(histogram_bins.bin_of(last)), int(histogram_bins.bin_of(first)) + 1)
    )
    n = _terms_above(lo - 1, first, step, terms) - _terms_above(hi, first, step, terms)
    far = ((lo < 0) | (lo >= ALWAYS_EXACT)) & (n > 0)
    from_, to = (int(_terms_above(np.array([x]), first, step, terms)[0]) for x in (ALWAYS_EXACT - 1, -1))
    return merge_counts(
        (Counts(lo[far], hi[far], n[far]), counts_of_values(first - step * np.arange(from_, to, dtype=np.int64)))
    )


def _terms_above(values: Int64Array, first: int, step: int, terms: int) -> Int64Array:
    """How many terms of the progression are larger than each value."""
    return np.clip((first - values - 1) // step + 1, 0, terms)


def array_pieces(sizes: Int64Array, most: int) -> list[slice]:
    """Consecutive runs of elements whose sizes add up to about ``most`` each; an element is never cut."""
    number = np.cumsum(sizes) // most
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], sizes.size], strict=True)] if starts else []


# Charging missed activations with their lateness: the schedule view.
#
# After an activation with latency v, missed activation j (1, 2, ..., m) is charged v - j * period: the time from its
# own
# due time until the thread ran again. Without it a stall of 400 ms at a period of 1 ms is one sample among thousands
# and
# no percentile shows it ("coordinated omission").


def charge_missed(tally: Tally, period_ns: int, block: Block) -> None:
    """Add the lateness of every missed activation of a block to a tally."""
    late, missed = block.values[block.gap_position], block.gap_missed
    long = missed > PENDING
    for v, m in zip(late[long].tolist(), missed[long].tolist(), strict=True):
        tally.add_progression(v - period_ns, period_ns, m)
    late, missed = late[~long], missed[~long]
    for part in array_pieces(missed, PENDING):
        tally.add(lateness_of_missed(late[part], missed[part], period_ns))


def lateness_of_missed(late: Int64Array, missed: Int64Array, period_ns: int) -> Int64Array:
    """Lateness of each missed activation after activations with these latencies, in order."""
    before = np.cumsum(missed) - missed
    order = np.arange(1, int(missed.sum()) + 1) - np.repeat(before, missed)
    return np.repeat(late, missed) - order * period_ns
