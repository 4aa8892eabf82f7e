# SPDX-License-Identifier: Apache-2.0
"""By how much each quantile of A lies above that of B (K. Doksum 1974; R. Wilcox), in the unit of the values.

Of several runs a side: the difference of the means over runs, with an interval of Welch's for each point. Of one
against one: the difference with a band that holds for all points together, from blocks of time that are drawn again.
That band tells how much chance inside the two runs moves it, and nothing of what two runs of one system differ by.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.comparison.blocks import Blocks
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.inference import interval
from rtproof.analysis.comparison.model import Shift, ShiftPoint
from rtproof.analysis.counts import Counts
from rtproof.analysis.phrases import duration

SHARES = (*(step / 20 for step in range(1, 20)), 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999, 0.999999)
BEYOND = 10
"""Values that each run needs above a quantile: fewer are chance."""
ALPHA = 0.05
DRAWN = 1_000
SEED = 1974
Floats = NDArray[np.float64]


def shift(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> Shift:
    """Points as far out as every run reaches."""
    shares = [p for p in SHARES if all(_reaches(run, p) for run in (*a, *b))]
    ends = [
        np.array([[_bin(run, p) for p in shares] for run in side], float).reshape(len(side), len(shares), 2)
        for side in (a, b)
    ]
    values = [each[:, :, 1] for each in ends]
    found = _of_one_each(a[0], b[0], shares, values) if len(a) == len(b) == 1 else _of_runs(shares, values)
    widths = [(each[:, :, 1] - each[:, :, 0]).mean(axis=0).tolist() for each in ends]
    return replace(found, points=tuple(map(_widened, found.points, *widths)))


def _widened(point: ShiftPoint, a_width: float, b_width: float) -> ShiftPoint:
    """By what the bins leave open, since each value is the upper end of its bin."""
    if point.low is None or point.high is None:
        return point
    return replace(point, low=point.low - a_width, high=point.high + b_width)


def _reaches(run: RunFigures, p: float) -> bool:
    rank = math.ceil(run.n * Fraction(repr(p)))
    return run.n * (1 - Fraction(repr(p))) >= BEYOND and rank <= run.counts.total


def _bin(run: RunFigures, p: float) -> tuple[int, int]:
    """Both ends of the bin that has the quantile."""
    low, high = run.counts.value_at_rank(math.ceil(run.n * Fraction(repr(p))))
    return low, high if run.largest is None else min(high, run.largest)


def _of_runs(shares: list[float], values: list[Floats]) -> Shift:
    found = [interval(a, b, ALPHA) for a, b in zip(values[0].T.tolist(), values[1].T.tolist(), strict=True)]
    ends = [(one.low, one.high) if math.isfinite(one.low) else (None, None) for one in found]
    points = [
        ShiftPoint(p, float(values[0][:, at].mean()), float(values[1][:, at].mean()), found[at].difference, *ends[at])
        for at, p in enumerate(shares)
    ]
    known = bool(points) and points[0].low is not None
    method = "means over the runs, and for each point by itself the 95 % interval of Welch's t test" if known else ""
    return Shift(tuple(points), method, "" if known else "one side has one run, which tells nothing of how runs differ")


def _of_one_each(a: RunFigures, b: RunFigures, shares: list[float], values: list[Floats]) -> Shift:
    at = values[0][0] - values[1][0]
    why = next((f"{run.name}: {run.blocks.why}" for run in (a, b) if not run.blocks.counts), "")
    half = np.full(at.size, np.nan) if why or not shares else _half_width(a.blocks, b.blocks, shares)
    points = tuple(
        ShiftPoint(p, x, y, d, *((None, None) if math.isnan(h) else (d - h, d + h)))
        for p, x, y, d, h in zip(
            shares, values[0][0].tolist(), values[1][0].tolist(), at.tolist(), half.tolist(), strict=True
        )
    )
    if why:
        return Shift(points, "", f"no band: {why}")
    lengths = " and ".join(dict.fromkeys(duration(run.blocks.length_ns) for run in (a, b)))
    number = f"{len(a.blocks.counts)} and {len(b.blocks.counts)}"
    method = f"a 95 % band for all points together, from {number} blocks of {lengths} drawn {DRAWN:,} times again"
    return Shift(points, method, "")


def _half_width(a: Blocks, b: Blocks, shares: list[float]) -> Floats:
    """So many standard errors that, of the drawings, 95 % stay within them everywhere."""
    random = np.random.default_rng(SEED)
    drawn = _quantiles_drawn(a.counts, shares, random) - _quantiles_drawn(b.counts, shares, random)
    apart = drawn - drawn.mean(axis=0)
    error = apart.std(axis=0)
    most = np.max(np.abs(apart) / np.where(error > 0, error, np.inf), axis=1)
    half: Floats = np.quantile(most, 1 - ALPHA) * error
    return half


def _quantiles_drawn(blocks: Sequence[Counts], shares: list[float], random: np.random.Generator) -> Floats:
    """One row for each drawing of as many blocks as there are, with replacement."""
    ends = np.unique(np.concatenate([each.hi for each in blocks]))
    counts = np.zeros((len(blocks), ends.size))
    for row, each in zip(counts, blocks, strict=True):
        row[np.searchsorted(ends, each.hi)] = each.n
    chosen = random.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), DRAWN)
    below = np.cumsum(chosen.astype(float) @ counts, axis=1)
    ranks = np.ceil(below[:, -1:] * np.array(shares) - 1e-9)
    at = [np.searchsorted(row, rank) for row, rank in zip(below, ranks, strict=True)]
    values: Floats = ends[np.array(at)].astype(float)
    return values
