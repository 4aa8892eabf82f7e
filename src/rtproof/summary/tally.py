# SPDX-License-Identifier: Apache-2.0
"""Count samples as they arrive, in bounded memory, and charge each missed activation with its lateness."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array
from rtproof.summary import moments
from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_dense_bins, counts_of_values, merge_counts
from rtproof.summary.summary_model import NO_MOMENTS, Moments

WINDOW = 1 << 22
"""4.2 ms, which holds all latencies except those of stalls."""
ALWAYS_EXACT = 1 << 20
MOST = 2_000_000
"""At most this many different values outside ALWAYS_EXACT (32 MB) are kept exactly."""
BATCH = 1 << 20
"""Samples that are counted at once. The number is large enough to outweigh the addition of an array of bins."""
SPARSE = 32
"""Values up to this many times their number are counted in an array. Sorting the few larger ones costs less."""
PENDING = 500_000


@dataclass(frozen=True)
class Tallied:
    """Counts and their moments. The moments are exact even if the counts are not."""

    counts: Counts = NO_COUNTS
    moments: Moments = NO_MOMENTS


NOTHING_TALLIED = Tallied()
_NO_VALUES = np.empty(0, np.int64)


def add_tallies(parts: Iterable[Tallied], most: int = MOST) -> Tallied:
    """The sum of all parts, on the scale that one tally of all their values would have chosen."""
    some = list(parts)
    return Tallied(
        _bounded(merge_counts(part.counts for part in some), most), moments.merge_moments(part.moments for part in some)
    )


class Tally:
    """Counts the values that are added. most: a test sets it to a smaller number."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._waiting: list[Int64Array] = []
        self._near = np.empty(0, np.int64)
        self._rest: list[Counts] = []
        self._far = Tallied()

    def add(self, values: Int64Array) -> None:
        """Count an array of values. The caller must not change the array afterwards."""
        self._waiting.append(values)
        if sum(part.size for part in self._waiting) >= BATCH:
            self._count_waiting()

    def _count_waiting(self) -> None:
        values = np.concatenate([_NO_VALUES, *self._waiting])
        near = (values >= 0) & (values < min(WINDOW, SPARSE * values.size))
        self.add_dense(np.bincount(values[near]))
        self._rest.append(counts_of_values(values[~near]))
        self._waiting = []
        if sum(part.n.size for part in self._rest) > PENDING:
            self._consolidate()

    def add_progression(self, first: int, step: int, terms: int) -> None:
        """Count ``terms`` values first, first - step, ... A long progression costs no more than its bins."""
        if terms > self._most + ALWAYS_EXACT:
            tallied = Tallied(
                _progression_on_scale(first, step, terms), moments.moments_of_progression(first, step, terms)
            )
            self._far = add_tallies((self._far, tallied), self._most)
            return
        for done in range(0, terms, PENDING):
            self.add(first - step * np.arange(done, min(done + PENDING, terms), dtype=np.int64))

    def add_dense(self, counts: NDArray[np.int64] | NDArray[np.uint32]) -> None:
        """Count values that are counted already: counts[v] times the value v, for v below WINDOW."""
        at = np.flatnonzero(counts)
        more = counts[: int(at[-1]) + 1 if at.size else 0].astype(np.int64)
        if more.size > self._near.size:
            self._near, more = more, self._near
        self._near[: more.size] += more

    def result(self) -> Tallied:
        """The counts and moments of all values so far. More values can be added afterwards."""
        self._count_waiting()
        self._consolidate()
        near = counts_of_dense_bins(self._near)
        return add_tallies((self._far, Tallied(near, moments.moments_of_counts(near))), self._most)

    def _consolidate(self) -> None:
        counts = merge_counts(self._rest)
        self._far = add_tallies((self._far, Tallied(counts, moments.moments_of_counts(counts))), self._most)
        self._rest = []


def _bounded(counts: Counts, most: int) -> Counts:
    """The counts; in the bins of the record's scale if different values are too many or some are in such bins."""
    far = (counts.lo < 0) | (counts.lo >= ALWAYS_EXACT)
    if counts.exact and int(far.sum()) <= most:
        return counts
    lo, hi = histogram_bins.bin_edges(histogram_bins.bin_of(counts.lo[far]))
    return merge_counts((Counts(counts.lo[~far], counts.hi[~far], counts.n[~far]), Counts(lo, hi, counts.n[far])))


def _progression_on_scale(first: int, step: int, terms: int) -> Counts:
    """How many terms fall into each bin of the scale. Terms below ALWAYS_EXACT are counted one by one."""
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
    return np.clip((first - values - 1) // step + 1, 0, terms)


def array_pieces(sizes: Int64Array, most: int) -> list[slice]:
    """Slices of consecutive elements whose sizes add up to about ``most`` each. No element is cut."""
    number = np.cumsum(sizes) // most
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], sizes.size], strict=True)] if starts else []


# For the schedule view, missed activation j (1, 2, ..., m) after one with latency v is charged v - j * period: the time
# from its due time until the thread ran again. Without it, no percentile shows a stall ("coordinated omission").


def charge_gaps(tally: Tally, period_ns: int, late: Int64Array, missed: Int64Array) -> None:
    """Add the lateness of the activations missed after others. late: the latency of each of these in ns."""
    long = missed > PENDING
    for v, m in zip(late[long].tolist(), missed[long].tolist(), strict=True):
        tally.add_progression(v - period_ns, period_ns, m)
    late, missed = late[~long], missed[~long]
    for part in array_pieces(missed, PENDING):
        tally.add(lateness_of_missed(late[part], missed[part], period_ns))


def lateness_of_missed(late: Int64Array, missed: Int64Array, period_ns: int) -> Int64Array:
    """The lateness in ns of each missed activation, in order. late: the latency of the one before each gap."""
    before = np.cumsum(missed) - missed
    order = np.arange(1, int(missed.sum()) + 1) - np.repeat(before, missed)
    return np.repeat(late, missed) - order * period_ns
