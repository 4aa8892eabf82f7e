# SPDX-License-Identifier: Apache-2.0
"""How large a difference has to be for a comparison to find it, and how many runs find one of a given size.

A difference is found where the test rejects at ``alpha`` and the 95 % interval lies beyond the margin. All is in units
of logarithms, for runs that scatter normally with the deviation given.
"""

import math
from functools import lru_cache

import numpy as np

from rtproof.analysis.comparison import student
from rtproof.analysis.comparison.inference import Floats, exact, rejected, swaps

POWER = 0.8
LEVEL = 0.05
MOST = 10_000
"""Runs a side beyond which nobody measures."""
DRAWN = 2_000
SEED = 20_261_121


def detectable(deviation: float, n: int, m: int, alpha: float, margin: float) -> float:
    """The difference that is found with a probability of POWER; infinite where n and m runs never find any."""
    if exact(n, m):
        if not rejected(n, m, alpha):
            return math.inf
        tested, told = _lower_ends(n, m, rejected(n, m, alpha))
        needed = np.maximum(-deviation * tested, margin - deviation * told)
        return float(np.quantile(needed, POWER, method="higher"))
    return max(_by_t(deviation, n, m, alpha), margin + _by_t(deviation, n, m, LEVEL))


def runs_for(difference: float, deviation: float, alpha: float, margin: float, least: int) -> int | None:
    """The smallest number of runs on each side that finds a difference; None if MOST do not."""

    def finds(n: int) -> bool:
        return detectable(deviation, n, n, alpha, margin) <= difference

    if not finds(MOST):
        return None
    low, high = least - 1, MOST
    while high - low > 1:
        middle = math.ceil(math.sqrt(low * high)) if low else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if finds(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _lower_ends(n: int, m: int, left_out: int) -> tuple[Floats, Floats]:
    """Of sides drawn from one normal distribution: the smallest differences that the count of splits does not reject
    where it rejects so many of them, and the lower ends of the 95 % intervals.

    A shift of one side shifts both, so these tell for every difference how often it is found.
    """
    drawn = np.random.default_rng(SEED).standard_normal((DRAWN, n + m))
    place = left_out - 1
    parts = [np.partition(part @ swaps(n, m).T, place)[:, place] for part in np.array_split(drawn, 8)]
    return np.concatenate(parts), _lower_welch(drawn[:, :n], drawn[:, n:])


def _lower_welch(a: Floats, b: Floats) -> Floats:
    """Lower ends of Welch's intervals, a row each; the quantile of t is read off a table."""
    parts = [side.var(axis=1, ddof=1) / side.shape[1] for side in (a, b)]
    total = parts[0] + parts[1]
    freedom = total**2 / sum(part**2 / (side.shape[1] - 1) for part, side in zip(parts, (a, b), strict=True))
    table = np.linspace(min(a.shape[1], b.shape[1]) - 1, a.shape[1] + b.shape[1] - 2, 50)
    t = np.interp(freedom, table, [student.quantile(1 - LEVEL / 2, f) for f in table.tolist()])
    low: Floats = a.mean(axis=1) - b.mean(axis=1) - t * np.sqrt(total)
    return low


def _by_t(deviation: float, n: int, m: int, alpha: float) -> float:
    """Of a t test, to a percent or two (a few for sides of unequal size): what is at its power is taken for Student's
    t as well, and the degrees of freedom are those of sides that scatter alike."""
    freedom = (1 / n + 1 / m) ** 2 / (1 / (n * n * (n - 1)) + 1 / (m * m * (m - 1)))
    sure = student.quantile(1 - alpha / 2, freedom) + student.quantile(POWER, freedom)
    return deviation * math.sqrt(1 / n + 1 / m) * sure
