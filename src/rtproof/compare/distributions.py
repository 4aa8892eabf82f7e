# SPDX-License-Identifier: Apache-2.0
"""Compare the distributions of two sides: their difference at each quantile, and whether one lies below the other."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rtproof import statistics
from rtproof.compare import tail_crossing
from rtproof.compare.comparison_model import QuantileShift, ShiftPoint, SideCrossing, SideOrder
from rtproof.compare.effects import pooled_counts
from rtproof.compare.run_metrics import RunFigures
from rtproof.record.contents import Int64Array
from rtproof.statistics import difference_interval
from rtproof.summary.counts import Counts

SHARES = (*(step / 20 for step in range(1, 20)), 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999, 0.999999)
BEYOND = 10
"""Values that each run needs above a quantile. Where a run has fewer, its quantile is chance."""
ALPHA = 0.05
Floats = NDArray[np.float64]


def quantile_shift(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> QuantileShift:
    """Return the difference of the sides at each quantile of SHARES that every run reaches."""
    shares = [p for p in SHARES if all(_reaches(run, p) for run in (*a, *b))]
    ends = [
        np.array([[_bin(run, p) for p in shares] for run in side], float).reshape(len(side), len(shares), 2)
        for side in (a, b)
    ]
    # Each value is the upper end of its bin, so the widths of the bins widen the band.
    widths = [(each[:, :, 1] - each[:, :, 0]).mean(axis=0).tolist() for each in ends]
    points = []
    for at, share in enumerate(shares):
        x, y = (each[:, at, 1].tolist() for each in ends)
        found = difference_interval(x, y, ALPHA)
        low, high = found.low - widths[0][at], found.high + widths[1][at]
        band = (low, high) if math.isfinite(low) else (None, None)
        points.append(ShiftPoint(share, sum(x) / len(x), sum(y) / len(y), found.difference, *band))
    if min(len(a), len(b)) < 2:
        return QuantileShift(tuple(points), "", "one side has one run, which tells nothing of how runs differ")
    method = "means over the runs, and for each point by itself the 95 % interval of Welch's t test" if points else ""
    return QuantileShift(tuple(points), method, "")


def _reaches(run: RunFigures, p: float) -> bool:
    rank = math.ceil(run.n * Fraction(repr(p)))
    return run.n * (1 - Fraction(repr(p))) >= BEYOND and rank <= run.counts.total


def _bin(run: RunFigures, p: float) -> tuple[int, int]:
    """Return both ends of the bin that holds the quantile."""
    low, high = run.counts.value_at_rank(math.ceil(run.n * Fraction(repr(p))))
    return low, high if run.largest is None else min(high, run.largest)


# The next functions ask whether one distribution lies below the other throughout, or where the two cross.
#
# With MIN_RUNS runs a side, each value of a grid is tested by itself: how many of each run's values lie above it?
# The sides surely differ at a value if two conditions hold. The mean log odds of their runs differ by more than
# run-to-run scatter explains, at 5 % for all values of the grid together (Bonferroni). They differ by more than 5 %.
# Both conditions are needed. With many runs, differences become sure that matter to nobody. Few runs may by chance
# scatter so little that a factor of 1.05 looks sure.
# With fewer runs, the result says only what their values show. It does not contain how runs of one side differ.


MIN_RUNS = 3
"""Two runs can be alike by chance, and then every difference looks sure."""
POINTS = 48
ORDER_BEYOND = 10
"""Values above the last value of the grid, in all runs of both sides together."""
ORDER_ALPHA = 0.05
MARGIN = math.log(1.05)
BY_RUNS = "95 % for all values together, by the scatter of the runs"
BY_VALUES = "by the values of these two runs alone: runs of one system differ too"


def side_order(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> SideOrder:
    """Return whether one side's values lie below the other's throughout, or where the sides cross."""
    if min(len(a), len(b)) < MIN_RUNS:
        return _by_values(a, b)
    together = pooled_counts((*a, *b))
    values = _grid(together, sum(run.overflow for run in (*a, *b)))
    if not values.size:
        return SideOrder(None, None, (), BY_RUNS)
    odds = [np.array([_log_odds(run, values) for run in side]) for side in (a, b)]
    apart = odds[0].mean(axis=0) - odds[1].mean(axis=0)
    sure = np.flatnonzero((np.abs(apart) > MARGIN) & (np.abs(apart) > _threshold(odds, values.size)))
    if not sure.size:
        return SideOrder(None, None, (), BY_RUNS)
    signs = np.sign(apart[sure])
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    share = _share_above(together, values)
    crossings = tuple(_crossing(values, share, apart, (int(sure[at]), int(sure[at + 1]))) for at in turns)
    lower = None if crossings else ("A" if signs[0] < 0 else "B")
    return SideOrder(lower, (int(values[sure[0]]), int(values[sure[-1]])), crossings, BY_RUNS)


def _grid(together: Counts, overflow: int) -> Int64Array:
    """Return upper ends of bins that lie inside no run's bin.

    They are spaced evenly in the log odds of the share of values above them, from both ends inwards.
    """
    n = together.total + overflow
    if n < 4 * ORDER_BEYOND or together.n.size < 2:
        return np.empty(0, np.int64)
    most = math.log(n / ORDER_BEYOND - 1)
    wanted = 1 / (1 + np.exp(-np.linspace(-most, most, POINTS)))
    below = np.cumsum(together.n)
    at = np.searchsorted(below, wanted * n)
    at = np.unique(at[at < below.size])
    inside = (below[at] >= ORDER_BEYOND) & (n - below[at] >= ORDER_BEYOND)
    values: Int64Array = together.hi[at[inside]]
    return values


def _log_odds(run: RunFigures, values: Int64Array) -> Floats:
    above = _above(run.counts, values) + run.overflow
    odds: Floats = np.log((above + 0.5) / (run.n - above + 0.5))
    return odds


def _above(counts: Counts, values: Int64Array) -> Floats:
    below = np.concatenate(([0], np.cumsum(counts.n)))
    above: Floats = (counts.total - below[np.searchsorted(counts.hi, values, side="right")]).astype(float)
    return above


def _share_above(counts: Counts, values: Int64Array) -> Floats:
    return _above(counts, values) / max(counts.total, 1)


def _threshold(odds: list[Floats], points: int) -> Floats:
    """Return how far apart the means have to be at each value: Welch's t, with its freedom rounded down to halves."""
    parts = [side.var(axis=0, ddof=1) / len(side) for side in odds]
    each = sum(part**2 / (len(side) - 1) for part, side in zip(parts, odds, strict=True))
    total = parts[0] + parts[1]
    freedom = np.where(each > 0, total**2 / np.where(each > 0, each, 1), 1)
    sure = [statistics.student_quantile(1 - ORDER_ALPHA / 2 / points, math.floor(2 * f) / 2) for f in freedom.tolist()]
    limit: Floats = np.array(sure) * np.sqrt(total)
    return limit


def _crossing(values: Int64Array, share: Floats, apart: Floats, ends: tuple[int, int]) -> SideCrossing:
    """Return the crossing between two values at which the sides surely differ in opposite directions."""
    first, last = ends
    turned = np.flatnonzero(np.sign(apart[first : last + 1]) == np.sign(apart[last]))
    at = first + int(turned[0])
    return SideCrossing(
        int(values[at]), float(share[at]), (int(values[first]), int(values[last])), bool(apart[first] < 0)
    )


def _by_values(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> SideOrder:
    samples = [
        tail_crossing.TailSample(pooled_counts(side), sum(run.effective or 0.0 for run in side)) for side in (a, b)
    ]
    found = tail_crossing.tail_crossing(*samples)
    if found is None:
        return SideOrder(None, None, (), BY_VALUES)
    above, until = found.above, found.until
    if above is None:
        return SideOrder("A" if found.first_is_better else "B", (until, until), (), BY_VALUES)
    share = float(_share_above(pooled_counts((*a, *b)), np.array([above]))[0])
    return SideOrder(
        None, (above, until), (SideCrossing(above, share, (above, until), not found.first_is_better),), BY_VALUES
    )
