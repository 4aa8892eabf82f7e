# SPDX-License-Identifier: Apache-2.0
"""Do two sets of numbers differ in their means? Permutation test, interval, Student's t and Holm's procedure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rtproof.statistics.exact_bounds import beta_inverse, beta_tails


def student_two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|)."""
    if math.isinf(t):
        return 0.0
    square = t * t
    if square < freedom:
        return beta_tails(square / (freedom + square), 0.5, freedom / 2)[1]
    return beta_tails(freedom / (freedom + square), freedom / 2, 0.5)[0]


@lru_cache(maxsize=4096)
def student_quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p, for 0 < p < 1."""
    if p == 0.5:
        return 0.0
    tail = 2 * min(p, 1 - p)
    # The beta function is inverted from the side on which its argument has all its digits.
    x = beta_inverse(tail, freedom / 2, 0.5)
    rest = beta_inverse(1 - tail, 0.5, freedom / 2) if x > 0.5 else 1 - x
    t = math.sqrt(freedom * rest / x)
    return t if p > 0.5 else -t


EXACT = 7
"""Numbers a side up to which all splits are counted, 3,432 of them at most."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """The difference of the means, a minus b, and the ends of its interval; infinite where none can be told."""

    difference: float
    low: float
    high: float


def is_exact(n: int, m: int) -> bool:
    """Whether sides of n and m are compared by all their splits."""
    return max(n, m) <= EXACT


def permutation_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Probability of such a difference, or a larger one to either side, without any."""
    return _p_exact(a, b) if is_exact(len(a), len(b)) else welch_p_value(a, b)


def difference_interval(a: Sequence[float], b: Sequence[float], alpha: float) -> Interval:
    """Of the difference, by Student's t with the degrees of freedom of Welch and Satterthwaite.

    Infinite for one number a side.
    """
    error, freedom = _welch(a, b)
    half = student_quantile(1 - alpha / 2, freedom) * error if freedom else math.inf
    return Interval(_difference(a, b), _difference(a, b) - half, _difference(a, b) + half)


def welch_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """1 where neither side varies and both are the same, or where there is one number a side."""
    error, freedom = _welch(a, b)
    difference = _difference(a, b)
    if not freedom or difference == 0:
        return 1.0
    return student_two_sided(difference / error if error else math.inf, freedom)


def rejected_share(n: int, m: int, alpha: float) -> int:
    """How many of the splits, the one seen among them, may be as far to one side for a p of at most alpha."""
    return math.floor(math.comb(n + m, n) * alpha / 2 + 1e-9)


@lru_cache(maxsize=64)
def permuted_means(n: int, m: int) -> Floats:
    """Each other split as one row: times the numbers of both sides it gives the mean of those that leave side a minus
    the mean of those that come for them. A split is as far to one side as the one seen where this is on that side."""
    rows = [row for left in combinations(range(n + m), n) if (row := _row(left, n, m)) is not None]
    return np.array(rows, float).reshape(-1, n + m)


def _row(side: tuple[int, ...], n: int, m: int) -> list[float] | None:
    gone, come = set(range(n)) - set(side), set(side) - set(range(n))
    if not gone:
        return None
    return [(i in gone) / len(gone) - (i in come) / len(gone) for i in range(n + m)]


def _p_exact(a: Sequence[float], b: Sequence[float]) -> float:
    """Sums that differ by rounding only are the same."""
    steps: Floats = permuted_means(len(a), len(b)) @ np.array([*a, *b], float)
    rounding = 1e-12 * max(1.0, *(abs(x) for x in (*a, *b)))
    splits = steps.size + 1
    tails = [1 + int(np.count_nonzero(side <= rounding)) for side in (steps, -steps)]
    return min(1.0, 2 * min(tails) / splits)


def _difference(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(a) / len(a) - math.fsum(b) / len(b)


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Standard error of the difference and its degrees of freedom, 0 if a side has one number only."""
    if min(len(a), len(b)) < 2:
        return math.inf, 0.0
    parts: list[float] = [float(np.var(each, ddof=1)) / len(each) for each in (a, b)]
    if not sum(parts):
        return 0.0, float(len(a) + len(b) - 2)
    each = parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1)
    return math.sqrt(sum(parts)), float(sum(parts) ** 2 / each)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Each p so that rejecting what is below alpha is wrong about any of them with a probability of at most alpha."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    found, largest = [0.0] * len(p_values), 0.0
    for done, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[at]))
        found[at] = largest
    return found
