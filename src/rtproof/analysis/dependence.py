# SPDX-License-Identifier: Apache-2.0
"""How many independent values a run is worth, for one of its quantiles.

Latencies above a level come in bursts and in bad minutes. How many of n are above it then varies from run to run more
than n independent values would. By how much more is seen within the run: from the variance of the counts of blocks over
that of independent values, at growing lengths of the blocks. The largest of these factors divides n.

The factor is trusted only if the run is BLOCKS times as long as the bunches, and has CLUSTERS of them above the level.
What lasts longer, or did not happen in the run, cannot be seen in the run.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.blockcounts import BlockCounts
from rtproof.analysis.counts import Counts
from rtproof.record import Int64Array, View

FEWEST_BLOCKS = 16
"""Of the longest length; of fewer, a variance says little."""
SIGNIFICANT = 3.0
"""Standard deviations beyond which a factor is no chance of independent values: 1 % of runs have one at any length."""
BLOCKS = 200
CLUSTERS = 12
SURE = 200
"""Values above a level from which on they tell of their bunches; with fewer, the level below is heeded too."""
MOST_SCATTER = 0.32
"""Relative standard deviation of a factor; beyond, a few blocks make it."""
NEAR = 0.1
"""Relative difference in the number of values above two levels that counts as none."""
OVERLAP = 1.5
"""Overlapping blocks tell as much as so many times more blocks side by side."""


class Length(NamedTuple):
    """Of blocks of so many units: the factor, its relative standard deviation, and whether it is more than chance."""

    units: int
    factor: float
    scatter: float
    significant: bool


def factor(blocks: BlockCounts, counts: Counts, value: int, view: View) -> float | None:
    """n divided by the number of independent values it is worth; 1 if nothing speaks against n, None if unknown.

    counts: of the view; value: the quantile. Between two levels of the blocks, the larger factor of both holds.
    """
    above, factors = _of_levels(blocks, view)
    if not above:
        return None
    wanted = counts.exceedances(value)[1]
    for count, found in zip(above, factors, strict=True):
        if abs(count - wanted) <= NEAR * wanted:
            return found
    below = max((at for at, count in enumerate(above) if count >= wanted), default=0)
    some = factors[below : below + 2]
    return None if None in some else max(each for each in some if each is not None)


@lru_cache(maxsize=256)
def _of_levels(blocks: BlockCounts, view: View) -> tuple[list[int], list[float | None]]:
    """Values above each level, and its factor."""
    ran, above = blocks.ran, blocks.ran_above
    if view is View.CHARGED:
        ran = ran + blocks.missed
        above = above if blocks.missed_above is None else above + blocks.missed_above
    factors: list[float | None] = []
    known: float | None = 1.0
    for row in above:
        count = int(row.sum())
        found = inflation(row, ran)
        if count >= SURE:
            known = found
        elif found is not None:
            found = None if known is None else max(found, known)
            found = None if found is not None and found > 1 and count < CLUSTERS * found else found
        factors.append(found)
    return [int(row.sum()) for row in above], factors


def inflation(above: Int64Array, ran: Int64Array) -> float | None:
    """The factor of one level from the values above it and all values of each unit; None if they do not tell it."""
    count, n = int(above.sum()), int(ran.sum())
    if above.size < FEWEST_BLOCKS or not n:
        return None
    if count in (0, n):
        return 1.0
    lengths = _lengths(above - ran * (count / n), n * (count / n) * (1 - count / n), count)
    beyond = [each for each in lengths if each.significant]
    if not beyond:
        return 1.0
    most = max(lengths, key=lambda each: each.factor / (1 + each.scatter / 2))
    found = max(most.factor * (1 + most.scatter), 1.0)
    half = (max(each.factor for each in beyond) - 1) / 2
    lasting = next(each.units for each in beyond if each.factor - 1 >= half)
    unknown = most.scatter > MOST_SCATTER or above.size < BLOCKS * lasting or count < CLUSTERS * found
    return None if unknown else found


def _lengths(residuals: NDArray[np.float64], variance: float, count: int) -> list[Length]:
    """Factors at 1, 2, 4, ... units. residuals: counts less those expected; variance: of independent values in all."""
    units = residuals.size
    sums = np.concatenate(([0.0], np.cumsum(residuals)))
    found, length = [], 1
    while units // length >= FEWEST_BLOCKS:
        squares = (sums[length:] - sums[:-length]) ** 2
        mean = float(squares.mean())
        blocks = units if length == 1 else OVERLAP * units / length
        freedom = 1 / (1 / blocks + 1 / (2 * count))
        kurtosis = float((squares**2).mean()) / mean**2 if mean else 3.0
        scatter = max(math.sqrt(2 / freedom), math.sqrt(max(kurtosis - 1, 0.0) / blocks))
        inflated = mean / (variance * length / units) / (1 - length / units)
        found.append(Length(length, inflated, scatter, inflated > _by_chance(freedom)))
        length *= 2
    return found


def _by_chance(freedom: float) -> float:
    """What chi squared over its degrees of freedom hardly exceeds (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    return float((1 - part + SIGNIFICANT * math.sqrt(part)) ** 3)
