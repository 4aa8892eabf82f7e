# SPDX-License-Identifier: Apache-2.0
"""What lies above a threshold, as bins: which values they hold is known, where in its bin a value lies is not.

A clock that counts in steps says of a value only in which step it fell. Taking the step's beginning for the value
spoils every fit of a tail that spans few steps, so thresholds lie on the edges of bins and bins stay bins.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.counts import Counts

Floats = NDArray[np.float64]
FINE = 32
"""``coarsened`` joins neighbours as long as they hold at most a share 1 / FINE of the values from there upwards."""


@dataclass(frozen=True)
class Tail:
    """Values of ``units`` units (such as seconds) in bins [lo, hi), increasing and disjoint, in the unit of the values.

    cumulated[i]: how many values lie in bin i and above.
    """

    lo: Floats
    hi: Floats
    n: Floats
    units: int
    cumulated: Floats

    @property
    def largest(self) -> float:
        """The upper end of the bin with the largest value."""
        return float(self.hi[-1])


@dataclass(frozen=True)
class Excesses:
    """By how much values exceed a threshold: bins [lo, lo + width) counted from it, with n values each.

    units: how many there are in all, with those that do not exceed it; threshold: in the unit of the values.
    """

    threshold: float
    lo: Floats
    width: Floats
    n: Floats
    units: int

    @property
    def count(self) -> int:
        return int(self.n.sum())

    @property
    def mean(self) -> float:
        """Of the lower ends of the bins and half of the first; a scale, no estimate."""
        return float((self.n * self.lo).sum() / self.n.sum() + self.width[0] / 2)

    @property
    def bin_width(self) -> float:
        """Of the bin of an average value."""
        return float((self.n * self.width).sum() / self.n.sum())


def tail_of(counts: Counts, units: int, step: int | None = None) -> Tail:
    """All values as bins [lo, hi).

    step: of the clock that rounded the values down; unknown, it is 1 unless exact values all lie on a coarser grid.
    ValueError for fewer units than values.
    """
    if units < counts.total:
        raise ValueError(f"{units} units have {counts.total} values")
    width = counts.hi - counts.lo + (step or _grid(counts))
    lo = counts.lo.astype(np.float64)
    n = counts.n.astype(np.float64)
    # Two exact values nearer to each other than the step would overlap: there the next value ends the bin.
    # Months in nanoseconds are no longer exact in a double, where a step of 1 would be lost.
    hi = np.minimum(np.maximum(lo + width, np.nextafter(lo, np.inf)), np.append(lo[1:], np.inf))
    return Tail(lo, hi, n, units, n[::-1].cumsum()[::-1])


def _grid(counts: Counts) -> int:
    """The step on whose multiples, from any start, all exact values lie; 1 for bins."""
    if not counts.exact or counts.lo.size < 3:
        return 1
    return int(np.gcd.reduce(np.diff(counts.lo)))


def highest(tail: Tail, k: int, fewest: int = 1, most: float = np.inf) -> Excesses | None:
    """Those above the edge of a bin that has about k values above it; None if no such number lies in [fewest, most].

    The threshold is the upper edge of the highest bin that stays below: exactly k exceed it if all values differ.
    """
    above = tail.cumulated[1:]
    allowed = (above >= fewest) & (above <= most)
    if not allowed.any():
        return None
    at = int(np.argmin(np.where(allowed, np.abs(np.log(above / k)), np.inf))) + 1
    threshold = float(tail.hi[at - 1])
    return Excesses(threshold, tail.lo[at:] - threshold, (tail.hi - tail.lo)[at:], tail.n[at:], tail.units)


def coarsened(excesses: Excesses) -> Excesses:
    """The same in at most some 200 bins, for speed: those far out stay alone, neighbours near the threshold join.

    Together they are at most a 32nd of what lies from there upwards: next to nothing of what a fit learns is lost.
    """
    upwards = excesses.n[::-1].cumsum()[::-1]
    group = np.floor(-FINE * np.log(upwards / upwards[0])).astype(np.int64)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], group.size) - 1
    lo = excesses.lo[starts]
    width = excesses.lo[ends] + excesses.width[ends] - lo
    return Excesses(excesses.threshold, lo, width, np.add.reduceat(excesses.n, starts), excesses.units)
