# SPDX-License-Identifier: Apache-2.0
"""Sums over neighbouring activations that show catch-up (docs/record-format.md, SUMMARY).

A program that sleeps relative to its last wake-up, or that runs late activations at once, shows a long cycle and a
short one behind it: article 2 found 26 % of its 10 ms cycles below 8 ms that way.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.duetimes import off_grid
from rtproof.analysis.model import Lag, Moments
from rtproof.analysis.moments import exact_dot, neighbour_products
from rtproof.analysis.stretch import Stretch, join
from rtproof.record import Block, Int64Array, Series


def of_stretch(series: Series, stretch: Stretch) -> Lag:
    """Pairs of the stretch and those that lead into it from its tail."""
    if stretch.tail is None:
        return _of(series, stretch)
    whole, before = _of(series, join(stretch.tail, stretch)), _of(series, stretch.tail)
    return Lag(
        whole.pairs - before.pairs,
        whole.sum_products - before.sum_products,
        whole.catch_up_pairs - before.catch_up_pairs,
    )


def merge(parts: Iterable[Lag]) -> Lag:
    some = list(parts)
    return Lag(
        sum(part.pairs for part in some),
        sum(part.sum_products for part in some),
        sum(part.catch_up_pairs for part in some),
    )


def correlation(lag: Lag, moments: Moments) -> float | None:
    """Correlation of neighbouring latencies, about -1 to 1; None where they are too few or all the same."""
    if not lag.pairs or not moments.deviation or moments.mean is None:
        return None
    return (lag.sum_products / lag.pairs - moments.mean**2) / moments.deviation**2


def _of(series: Series, stretch: Stretch) -> Lag:
    values, cuts = stretch.block.values, stretch.cuts[stretch.cuts > 0]
    pairs = max(values.size - 1, 0) - cuts.size
    products = neighbour_products(values) - exact_dot(values[cuts - 1], values[cuts])
    return Lag(pairs, products, _catch_up_pairs(series, stretch, cuts))


def _catch_up_pairs(series: Series, stretch: Stretch, cuts: Int64Array) -> int:
    """Cycles longer than 1.2 periods with one below 0.8 behind, both in one slice; ``middle`` is between them.

    On the grid a short cycle is one whose second activation is that much less late, of which there are few.
    """
    values = stretch.block.values
    if not values[2:].size:
        return 0
    if series.on_grid:
        middle = 1 + np.flatnonzero(values[2:] - values[1:-1] < -(series.period_ns // 5))
    else:
        middle = np.arange(1, values.size - 1)
    before, after = _cycles(series, stretch, middle - 1), _cycles(series, stretch, middle)
    found = (5 * before > 6 * series.period_ns) & (5 * after < 4 * series.period_ns)
    return int(np.count_nonzero(found & ~_cut(middle, cuts)))


def _cut(middle: Int64Array, cuts: Int64Array) -> NDArray[np.bool_]:
    """Whether a slice begins between the activations that begin the first and end the second cycle."""
    return np.searchsorted(cuts, middle) < np.searchsorted(cuts, middle + 1, side="right")


def _cycles(series: Series, stretch: Stretch, at: Int64Array) -> Int64Array:
    """Time from activation at[i] to the one that ran next, which behind a sleep is due a period after at[i] ran."""
    block = stretch.block
    if series.external:
        return np.diff(off_grid(series, block, stretch.told) + block.values)[at]
    if not series.on_grid:
        return series.period_ns + block.values[at + 1]
    return series.period_ns * (1 + _missed_after(block, at)) + block.values[at + 1] - block.values[at]


def _missed_after(block: Block, at: Int64Array) -> Int64Array:
    if not block.gap_position.size:
        return np.zeros_like(at)
    gap = np.minimum(np.searchsorted(block.gap_position, at), block.gap_position.size - 1)
    return np.where(block.gap_position[gap] == at, block.gap_missed[gap], 0)
