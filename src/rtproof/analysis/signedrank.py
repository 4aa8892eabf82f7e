# SPDX-License-Identifier: Apache-2.0
"""By how much pairs differ: Hodges and Lehmann's estimate, with the interval that inverts Wilcoxon's signed-rank test.

The differences need no distribution but one that is symmetric around what is looked for, which two exchangeable halves
of a pair give. One pair that a single event spoiled moves it little. Hollander, Wolfe and Chicken, Nonparametric
Statistical Methods, 3.1 to 3.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

EXACT = 200
"""Pairs up to which the distribution of the rank sum is counted out; beyond it is as good as normal."""


@dataclass(frozen=True)
class Shift:
    """An estimate and its two-sided interval, in the unit of the differences."""

    estimate: float
    low: float
    high: float


def shift(differences: Sequence[float], confidence: float) -> Shift | None:
    """The shift that these independent differences of pairs show; None if they are too few for an interval."""
    rank = _lowest_rank(len(differences), confidence)
    if rank < 1:
        return None
    values = np.asarray(differences, float)
    rows, columns = np.triu_indices(values.size)
    averages = np.sort((values[rows] + values[columns]) / 2)
    return Shift(float(np.median(averages)), float(averages[rank - 1]), float(averages[-rank]))


def _lowest_rank(pairs: int, confidence: float) -> int:
    """Which of the sorted averages ends the interval: the rank sum lies below it by chance in half of the rest."""
    tail = (1 - confidence) / 2
    if pairs > EXACT:
        deviation = sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
        return int(pairs * (pairs + 1) / 4 - NormalDist().inv_cdf(1 - tail) * deviation)
    below = np.cumsum(_rank_sums(pairs))
    return int(np.searchsorted(below, tail, side="right"))


def _rank_sums(pairs: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Probability of each sum of ranks 1 to ``pairs``, each in it or not by chance."""
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        nothing = np.zeros(rank)
        chances = (np.concatenate((chances, nothing)) + np.concatenate((nothing, chances))) / 2
    return chances
