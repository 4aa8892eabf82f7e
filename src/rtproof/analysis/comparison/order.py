# SPDX-License-Identifier: Apache-2.0
"""Does one distribution lie below the other throughout, or do they cross, and where?

With MIN_RUNS runs a side each value of a grid is asked by itself, how many of each run's values lie above it: the sides
surely differ there if the mean log odds of their runs differ by more than run-to-run scatter explains, at 5 % for all
values of the grid together (Bonferroni), and by more than 5 %. Both guards are needed: many runs make differences sure
that matter to nobody, and few runs scatter so little by chance that a factor of 1.05 looks sure.
With fewer runs only what their values say is told: how the runs differ among themselves is not in it.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis import crossing as within
from rtproof.analysis.comparison import student
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.metrics import pooled
from rtproof.analysis.comparison.model import Crossing, Order
from rtproof.analysis.counts import Counts
from rtproof.record import Int64Array

MIN_RUNS = 3
"""Two runs can be alike by chance, and then everything looks sure."""
POINTS = 48
BEYOND = 10
"""Values that lie above the last value of the grid, all runs of both sides together."""
ALPHA = 0.05
MARGIN = math.log(1.05)
BY_RUNS = "by the scatter of the runs, at 95 % for all values together"
BY_VALUES = "by the values of these runs alone: how runs of one system differ is not in it"
Floats = NDArray[np.float64]


def order(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> Order:
    """Of the values of both sides."""
    if min(len(a), len(b)) < MIN_RUNS:
        return _by_values(a, b)
    together = pooled((*a, *b))
    values = _grid(together, sum(run.overflow for run in (*a, *b)))
    if not values.size:
        return Order(None, None, (), BY_RUNS)
    odds = [np.array([_log_odds(run, values) for run in side]) for side in (a, b)]
    apart = odds[0].mean(axis=0) - odds[1].mean(axis=0)
    sure = np.flatnonzero((np.abs(apart) > MARGIN) & (np.abs(apart) > _threshold(odds, values.size)))
    if not sure.size:
        return Order(None, None, (), BY_RUNS)
    signs = np.sign(apart[sure])
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    share = _share_above(together, values)
    crossings = tuple(_crossing(values, share, apart, (int(sure[at]), int(sure[at + 1]))) for at in turns)
    lower = None if crossings else ("A" if signs[0] < 0 else "B")
    return Order(lower, (int(values[sure[0]]), int(values[sure[-1]])), crossings, BY_RUNS)


def _grid(together: Counts, overflow: int) -> Int64Array:
    """Upper ends of bins that no run's bin crosses, evenly in the log odds of lying above, from both ends inwards."""
    n = together.total + overflow
    if n < 4 * BEYOND or together.n.size < 2:
        return np.empty(0, np.int64)
    most = math.log(n / BEYOND - 1)
    wanted = 1 / (1 + np.exp(-np.linspace(-most, most, POINTS)))
    below = np.cumsum(together.n)
    at = np.searchsorted(below, wanted * n)
    at = np.unique(at[at < below.size])
    inside = (below[at] >= BEYOND) & (n - below[at] >= BEYOND)
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
    """How far apart the means have to be at each value: Welch's t, its degrees of freedom rounded down to halves."""
    parts = [side.var(axis=0, ddof=1) / len(side) for side in odds]
    each = sum(part**2 / (len(side) - 1) for part, side in zip(parts, odds, strict=True))
    total = parts[0] + parts[1]
    freedom = np.where(each > 0, total**2 / np.where(each > 0, each, 1), 1)
    sure = [student.quantile(1 - ALPHA / 2 / points, math.floor(2 * f) / 2) for f in freedom.tolist()]
    limit: Floats = np.array(sure) * np.sqrt(total)
    return limit


def _crossing(values: Int64Array, share: Floats, apart: Floats, ends: tuple[int, int]) -> Crossing:
    """Where the means change sides between two values at which they surely differ, one each way."""
    first, last = ends
    turned = np.flatnonzero(np.sign(apart[first : last + 1]) == np.sign(apart[last]))
    at = first + int(turned[0])
    return Crossing(int(values[at]), float(share[at]), (int(values[first]), int(values[last])), bool(apart[first] < 0))


def _by_values(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> Order:
    samples = [within.Sample(pooled(side), sum(run.effective or 0.0 for run in side)) for side in (a, b)]
    found = within.crossing(*samples)
    if found is None:
        return Order(None, None, (), BY_VALUES)
    above, until = found.above, found.until
    if above is None:
        return Order("A" if found.first_is_better else "B", (until, until), (), BY_VALUES)
    share = float(_share_above(pooled((*a, *b)), np.array([above]))[0])
    return Order(None, (above, until), (Crossing(above, share, (above, until), not found.first_is_better),), BY_VALUES)
