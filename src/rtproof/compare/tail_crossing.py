# SPDX-License-Identifier: Apache-2.0
"""Compare two distributions: are they the same, and if not, which has the lighter tail and above which value?

Article 5 reads both answers from its curves: "better above 70 us, the top 1.3 %", and "nearly identical".
Neither answer may depend on the few largest values, which chance decides. Values in a burst are not independent
values. ``effective`` is therefore the number of independent values that a run is worth. It follows from the
correlation of neighbours, which is the least that dependence takes away.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import Int64Array
from rtproof.summary import moments
from rtproof.summary.counts import Counts
from rtproof.summary.summary_model import Summary

SURE = 4.0
"""Standard errors by which shares have to differ: 1 in 16,000 by chance. Every value of the tail is tested."""
CROSSING_CONFIDENCE = 0.95
CLOSE = 0.02
"""Curves that are nowhere further apart than this share look the same in a drawing."""
_Shares = NDArray[np.float64]


@dataclass(frozen=True)
class TailSample:
    """The counts of a run's values, and the number of independent values that they are worth."""

    counts: Counts
    effective: float


class TailLikeness(Enum):
    """SAME: surely nowhere further apart than CLOSE. DIFFERENT: surely not from one distribution."""

    SAME = "same"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class TailDistance:
    """The largest difference of two cumulative shares, the value at which it lies, and its bounds at CONFIDENCE."""

    likeness: TailLikeness
    seen: float
    at: int
    least: float
    most: float


@dataclass(frozen=True)
class TailCrossing:
    """Which of two distributions has the lighter tail, the first or the second, and between which values.

    above: the tail is lighter above this value, and heavier below it; None where it is lighter throughout. until: the
    largest value at which that is sure; beyond it chance decides. top_share: the share of the distribution with the
    heavier tail that lies above ``above``.
    """

    first_is_better: bool
    above: int | None
    until: int
    top_share: float


def tail_sample(summary: Summary) -> TailSample:
    """Return the activations of a summary that ran. A correlation r of neighbours leaves (1 - r) / (1 + r) of them."""
    found = moments.lag_correlation(summary.lag, summary.observed)
    r = min(max(found or 0.0, 0.0), 0.999)
    return TailSample(summary.observed_counts, summary.observed.count * (1 - r) / (1 + r))


def tail_crossing(first: TailSample, second: TailSample) -> TailCrossing | None:
    """Return which distribution has the lighter tail; None where no part of the two surely differs.

    Values beyond the last sure difference are not looked at, because chance decides them. Shares are compared only at
    upper ends of bins that do not lie inside a bin of the other distribution.
    """
    if not first.counts.total or not second.counts.total:
        return None
    values = _grid(first, second)
    beyond = [1 - _not_above(each.counts, values) for each in (first, second)]
    differ = beyond[1] - beyond[0]
    # The standard error of the difference if both came from the same distribution.
    n, m = max(first.effective, 1.0), max(second.effective, 1.0)
    pooled = (n * beyond[0] + m * beyond[1]) / (n + m)
    sure = np.flatnonzero(np.abs(differ) > SURE * np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m)))
    if not sure.size:
        return None
    last = int(sure[-1])
    first_is_better = bool(differ[last] > 0)
    sign = 1 if first_is_better else -1
    others = sure[sign * differ[sure] < 0]
    if not others.size:
        return TailCrossing(first_is_better, None, int(values[last]), 1.0)
    at = int(others[-1]) + int(np.flatnonzero(sign * differ[others[-1] : last + 1] > 0)[0])
    top_share = float(beyond[1 if first_is_better else 0][at - 1])
    return TailCrossing(first_is_better, int(values[at]), int(values[last]), top_share)


def tail_distance(first: TailSample, second: TailSample) -> TailDistance | None:
    """Return the largest difference of the cumulative shares with its bounds; None without values.

    The difference is the two-sample statistic of Kolmogorov and Smirnov. Its bounds are those of Dvoretzky, Kiefer,
    Wolfowitz and Massart, which hold for any distribution and any n.
    """
    if not first.counts.total or not second.counts.total:
        return None
    values = _grid(first, second)
    apart = np.abs(_not_above(first.counts, values) - _not_above(second.counts, values))
    at = int(apart.argmax())
    seen, width = float(apart[at]), _width(first.effective) + _width(second.effective)
    least, most = max(seen - width, 0.0), min(seen + width, 1.0)
    likeness = TailLikeness.DIFFERENT if least > 0 else TailLikeness.UNDECIDED
    return TailDistance(TailLikeness.SAME if most <= CLOSE else likeness, seen, int(values[at]), least, most)


def _grid(first: TailSample, second: TailSample) -> Int64Array:
    """Return the values at which the share of values above is known of both samples: upper ends of bins.

    They lie inside no bin of either sample, because where in a bin its values lie is not known.
    """
    values = np.union1d(first.counts.hi, second.counts.hi)
    for counts in (first.counts, second.counts):
        at = np.searchsorted(counts.lo, values, side="right") - 1
        values = values[(at < 0) | (counts.hi[at] <= values)]
    return values


def _not_above(counts: Counts, values: Int64Array) -> _Shares:
    ends = np.concatenate(([0], np.cumsum(counts.n))) / counts.total
    shares: _Shares = ends[np.searchsorted(counts.hi, values, side="right")]
    return shares


def _width(n: float) -> float:
    """Return the width of the band that holds the true cumulative share everywhere, at half the risk, for n values."""
    return math.sqrt(math.log(4 / (1 - CROSSING_CONFIDENCE)) / (2 * max(n, 1.0)))
