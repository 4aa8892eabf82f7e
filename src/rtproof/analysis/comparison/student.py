# SPDX-License-Identifier: Apache-2.0
"""Student's t distribution, for any real number of degrees of freedom above 0, from the incomplete beta function."""

import math
from functools import lru_cache

from rtproof.analysis.special import beta_inverse, beta_tails


def two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|)."""
    if math.isinf(t):
        return 0.0
    square = t * t
    if square < freedom:
        return beta_tails(square / (freedom + square), 0.5, freedom / 2)[1]
    return beta_tails(freedom / (freedom + square), freedom / 2, 0.5)[0]


@lru_cache(maxsize=4096)
def quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p, for 0 < p < 1."""
    if p == 0.5:
        return 0.0
    tail = 2 * min(p, 1 - p)
    # The beta function is inverted from the side on which its argument has all its digits.
    x = beta_inverse(tail, freedom / 2, 0.5)
    rest = beta_inverse(1 - tail, 0.5, freedom / 2) if x > 0.5 else 1 - x
    t = math.sqrt(freedom * rest / x)
    return t if p > 0.5 else -t
