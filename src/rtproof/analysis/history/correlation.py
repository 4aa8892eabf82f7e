# SPDX-License-Identifier: Apache-2.0
"""How much a run resembles the one before it, and what that does to a test between two stretches of runs.

A machine that is warm stays warm: a run tells less than an independent one, and a mean of ten correlated runs moves
like that of three. The correlation is taken from differences of runs one and two places apart, whose mean squares are
proportional to 1 - phi and 1 - phi^2 in an autoregressive process of first order (Box and Jenkins). A step is in a few
of the differences only, and a large one in none that counts. Ranks, as normal scores, stand for the values, so that
no outlier decides; equal values have equal scores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FEWEST = 10
"""Values without which nothing is estimated."""
CLEAR = 0.25
"""Independent runs seem correlated by less than this in 9 of 10 histories of 80; it is taken for none."""
MOST = 0.95
STEPS = 40
FAR, MAD = 6.0, 1.4826
"""Differences of neighbours beyond so many robust deviations are steps and count for no correlation."""
RAISED = 0.2
"""What is estimated is raised by this times its square, because large correlations are estimated too small."""
EXACT = 300
"""Values up to which all moments are computed; beyond, their limits for long stretches."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """Of the difference of two neighbouring means, for values of variance 1.

    variance: of the difference. squares: expected sum of squares about both means; freedom: of it (Satterthwaite).
    """

    variance: float
    squares: float
    freedom: float


def correlation(values: Sequence[float]) -> float:
    """Of neighbouring values, 0 to MOST in steps of 1 / STEPS; 0 where it is not clear, or where they are too few."""
    series = np.asarray(values, np.float64)
    if series.size < FEWEST:
        return 0.0
    _, place, ties = np.unique(series, return_inverse=True, return_counts=True)
    scores = (np.bincount(place, weights=_scores(series.size)[np.argsort(np.argsort(series))]) / ties)[place]
    steps = np.diff(series)
    near_by = np.abs(steps) <= FAR * MAD * np.median(np.abs(steps))
    near = _mean_square(scores[1:] - scores[:-1], near_by)
    far = _mean_square(scores[2:] - scores[:-2], near_by[1:] & near_by[:-1])
    found = far / near - 1 if near else 0.0
    return round(min(found + RAISED * found**2, MOST) * STEPS) / STEPS if found >= CLEAR else 0.0


def _mean_square(differences: Floats, counted: NDArray[np.bool_]) -> float:
    """0 where nothing is counted."""
    return float((differences[counted] ** 2).mean()) if counted.any() else 0.0


@lru_cache(maxsize=64)
def _scores(n: int) -> Floats:
    """Where so many normal values lie, smallest first."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((place + 0.5) / n) for place in range(n)])


@lru_cache(maxsize=65_536)
def contrast(left: int, right: int, phi: float) -> Contrast:
    """Of ``left`` and then ``right`` values of a process with this correlation."""
    n = left + right
    if not phi:
        return Contrast(1 / left + 1 / right, n - 2.0, n - 2.0)
    if n > EXACT:
        return _long(left, right, phi)
    alike = phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    weights = np.concatenate([np.full(left, -1 / left), np.full(right, 1 / right)])
    about = np.array(alike)
    about[:left] -= alike[:left].mean(axis=0)
    about[left:] -= alike[left:].mean(axis=0)
    squares = float(np.trace(about))
    return Contrast(float(weights @ alike @ weights), squares, squares**2 / float((about * about.T).sum()))


def _long(left: int, right: int, phi: float) -> Contrast:
    """The means are nearly independent of each other; squares and freedom by the sums of an endless process."""
    n = left + right
    lost = sum(_variance(size, phi) * size for size in (left, right))
    squares = max(n - lost, 1.0)
    freedom = max(n * (1 - phi * phi) / (1 + phi * phi) - 2, 1.0)
    return Contrast(_variance(left, phi) + _variance(right, phi), squares, freedom)


def _variance(size: int, phi: float) -> float:
    """Of the mean of so many values of variance 1."""
    tail = 2 * phi * (1 - phi**size) / (size * (1 - phi) ** 2)
    return max((1 + phi) / (1 - phi) - tail, 0.0) / size


def widened(left: int, right: int, phi: float) -> float:
    """How many times as large a difference of two means is needed as between independent runs, about."""
    found = contrast(left, right, phi)
    return math.sqrt(found.variance / (1 / left + 1 / right) * (left + right - 2) / found.squares)
