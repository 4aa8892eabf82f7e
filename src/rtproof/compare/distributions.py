# SPDX-License-Identifier: Apache-2.0
"""Compare the distributions of two sides: does one lie below the other throughout, or where do they cross?"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtproof import statistics
from rtproof.compare.comparison_model import SideCrossing, SideOrder
from rtproof.compare.effects import pooled_counts
from rtproof.compare.run_metrics import RunFigures
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts

Floats = NDArray[np.float64]

# With MIN_RUNS runs a side, each value of a grid is tested by itself: how many of each run's values lie above it?
# The sides surely differ at a value if two conditions hold. The mean log odds of their runs differ by more than
# run-to-run scatter explains, at 5 % for all values of the grid together (Bonferroni). They differ by more than 5 %.
# Both conditions are needed. With many runs, differences become sure that matter to nobody. Few runs may by chance
# scatter so little that a factor of 1.05 looks sure.

MIN_RUNS = 3
"""Two runs can be alike by chance, and then every difference looks sure."""
POINTS = 48
ORDER_BEYOND = 10
"""Values above the last value of the grid, in all runs of both sides together."""
ORDER_ALPHA = 0.05
MARGIN = math.log(1.05)
BY_RUNS = "95 % for all values together, by the scatter of the runs"
FEW_RUNS = f"fewer than {MIN_RUNS} runs on a side, which tells nothing of how runs differ"


def side_order(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> SideOrder:
    """Return whether one side's values lie below the other's throughout, or where the sides cross."""
    if min(len(a), len(b)) < MIN_RUNS:
        return SideOrder(None, None, (), FEW_RUNS)
    together = pooled_counts((*a, *b))
    values = _grid(together, sum(run.overflow for run in (*a, *b)))
    if not values.size:
        return SideOrder(None, None, (), BY_RUNS)
    above = [np.array([_above(run.counts, values) + run.overflow for run in side]) for side in (a, b)]
    totals = [np.array([[run.n] for run in side]) for side in (a, b)]
    odds = [np.log((k + 0.5) / (n - k + 0.5)) for k, n in zip(above, totals, strict=True)]
    apart = odds[0].mean(axis=0) - odds[1].mean(axis=0)
    sure = np.flatnonzero((np.abs(apart) > MARGIN) & (np.abs(apart) > _threshold(odds, values.size)))
    if not sure.size:
        return SideOrder(None, None, (), BY_RUNS)
    signs = np.sign(apart[sure])
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    share = _above(together, values) / max(together.total, 1)
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


def _above(counts: Counts, values: Int64Array) -> Floats:
    below = np.concatenate(([0], np.cumsum(counts.n)))
    above: Floats = (counts.total - below[np.searchsorted(counts.hi, values, side="right")]).astype(float)
    return above


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
