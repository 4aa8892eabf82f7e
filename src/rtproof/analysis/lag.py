# SPDX-License-Identifier: Apache-2.0
"""Sums over neighbouring activations that show catch-up (docs/record-format.md, SUMMARY).

A program that sleeps relative to its last wake-up, or that runs late activations at once, shows a long cycle and a
short one behind it: article 2 found 26 % of its 10 ms cycles below 8 ms that way.
"""

from collections.abc import Iterable

import numpy as np

from rtproof.analysis.model import Lag
from rtproof.analysis.moments import exact_dot
from rtproof.analysis.stretch import Stretch, join
from rtproof.record import Block, Int64Array, Series


def of_stretch(series: Series, stretch: Stretch) -> Lag:
    """Pairs of the stretch and those that lead into it from its tail."""
    if stretch.tail is None:
        return _of_block(series, stretch.block)
    return _minus(_of_block(series, join([stretch.tail, stretch.block])), _of_block(series, stretch.tail))


def merge(parts: Iterable[Lag]) -> Lag:
    some = list(parts)
    return Lag(
        sum(part.pairs for part in some),
        sum(part.sum_products for part in some),
        sum(part.catch_up_pairs for part in some),
    )


def _minus(a: Lag, b: Lag) -> Lag:
    return Lag(a.pairs - b.pairs, a.sum_products - b.sum_products, a.catch_up_pairs - b.catch_up_pairs)


def _of_block(series: Series, block: Block) -> Lag:
    values = block.values
    return Lag(max(values.size - 1, 0), exact_dot(values[:-1], values[1:]), _catch_up_pairs(series, block))


def _catch_up_pairs(series: Series, block: Block) -> int:
    """Cycles longer than 1.2 periods with one below 0.8 behind. On the grid only a late activation starts those."""
    values = block.values
    if not values[2:].size:
        return 0
    if not series.on_grid:
        return _long_then_short(series.period_ns, _cycles(series, block, np.arange(values.size - 1)))
    late = np.flatnonzero(values[1:-1] > int(values.min()) + series.period_ns // 5)
    pairs = np.stack((_cycles(series, block, late), _cycles(series, block, late + 1)))
    return _long_then_short(series.period_ns, pairs)


def _long_then_short(period: int, cycles: Int64Array) -> int:
    return int(np.count_nonzero((5 * cycles[:-1] > 6 * period) & (5 * cycles[1:] < 4 * period)))


def _cycles(series: Series, block: Block, at: Int64Array) -> Int64Array:
    """Time from activation at[i] to the one that ran next, which off the grid is due a period after at[i] ran."""
    if not series.on_grid:
        return series.period_ns + block.values[at + 1]
    return series.period_ns * (1 + _missed_after(block, at)) + block.values[at + 1] - block.values[at]


def _missed_after(block: Block, at: Int64Array) -> Int64Array:
    if not block.gap_position.size:
        return np.zeros_like(at)
    gap = np.minimum(np.searchsorted(block.gap_position, at), block.gap_position.size - 1)
    return np.where(block.gap_position[gap] == at, block.gap_missed[gap], 0)
