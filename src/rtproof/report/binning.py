# SPDX-License-Identifier: Apache-2.0
"""Bins and points for plots: few enough to draw, chosen so that nothing that matters is lost."""

import math

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.counts import Counts
from rtproof.record import Int64Array

BINS = 300
POINTS = 600
BODY = 0.99
FAR = 3
"""A histogram reaches this many times as far as the body; the plot of the tail shows the rest."""


def nice_width(width: float) -> int:
    """The next larger of 1, 2, 5, 10, 20, 50, ..."""
    decade = int(10 ** max(0, math.floor(math.log10(max(width, 1)))))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= width)


def scale(counts: Counts) -> tuple[int, int, int]:
    """Start, width and number of bins for the body of a distribution with at least one value."""
    low, high = int(counts.lo[0]), int(counts.hi[-1])
    body = counts.value_at_rank(math.ceil(counts.total * BODY))[1]
    end = min(high, low + FAR * (body - low)) if body > low else high
    width = nice_width((end - low + 1) / BINS)
    start = low // width * width
    return start, width, (end - start) // width + 1


def survival_grid(counts: list[Counts]) -> Int64Array:
    """Positive values at which to draw shares exceeded: all if they are few, else even steps in both logarithms."""
    values = np.unique(np.concatenate([each.hi for each in counts]))
    values = values[values > 0]
    if values.size <= POINTS:
        return values
    total = sum(exceeding(each, values) * each.total for each in counts)
    depth = -np.log10(np.maximum(total, 0.1))
    steps = [
        np.searchsorted(values, np.geomspace(values[0], values[-1], POINTS // 2)),
        np.searchsorted(depth, np.linspace(depth[0], depth[-1], POINTS // 2)),
        np.searchsorted(values, [each.hi[-1] for each in counts]),
    ]
    return values[np.unique(np.clip(np.concatenate(steps), 0, values.size - 1))]


def exceeding(counts: Counts, values: Int64Array) -> NDArray[np.float64]:
    """Share of the counts above each value; a bin that holds the value counts as above it."""
    ends, shares = counts.ccdf()
    from_the_least = np.concatenate(([1.0 if counts.total else 0.0], shares))
    return from_the_least[np.searchsorted(ends, values, side="right")]


def survival(counts: Counts, grid: Int64Array) -> tuple[Int64Array, NDArray[np.float64]]:
    """Latencies of the grid and the share above each, up to the first that nothing exceeds, where the steps end."""
    shares = exceeding(counts, grid)
    points = min(int(np.count_nonzero(shares)) + 1, grid.size)
    return grid[:points], shares[:points]


def columns(first: int, last: int, most: int) -> Int64Array:
    """Edges of at most ``most`` columns of whole, equal steps that cover first to last."""
    step = nice_width((last - first + 1) / most)
    return np.arange(first, last + 1 + step, step, dtype=np.int64)
