# SPDX-License-Identifier: Apache-2.0
"""A long series for a plot: every value while they are few, else the smallest and the largest of equal stretches."""

from dataclasses import dataclass

import numpy as np

from rtproof.record import Int64Array

MOST = 1_000


@dataclass(frozen=True)
class Drawn:
    """Positions at which stretches of ``width`` begin, and the ends of the values in each; none without a value."""

    width: int
    at: Int64Array
    low: Int64Array
    high: Int64Array


class Envelope:
    """Takes values piece by piece. length: how many positions there are; most: how many points may be drawn."""

    def __init__(self, length: int, most: int = MOST) -> None:
        self._width = 1 if length <= most else -(-2 * length // most)
        stretches = -(-length // self._width)
        limits = np.iinfo(np.int64)
        self._low = np.full(stretches, limits.max)
        self._high = np.full(stretches, limits.min)

    def add(self, at: Int64Array, values: Int64Array) -> None:
        """Values at positions from 0 to below the length."""
        np.minimum.at(self._low, at // self._width, values)
        np.maximum.at(self._high, at // self._width, values)

    def result(self) -> Drawn:
        some = np.flatnonzero(self._low <= self._high)
        return Drawn(self._width, some * self._width, self._low[some], self._high[some])
