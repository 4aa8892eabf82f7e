# SPDX-License-Identifier: Apache-2.0
"""How large a step has to be to be found."""

import math
from functools import lru_cache

from rtproof.analysis.comparison.student import quantile
from rtproof.analysis.history.changes import P_VALUE, WEAK, WINDOW
from rtproof.analysis.history.correlation import contrast, widened

FOUND = 0.9
"""How often a step of that size in the middle is to be found."""


@lru_cache(maxsize=256)
def visible_step(runs: int, phi: float = 0.0) -> float:
    """The step in the middle of so many runs, in standard deviations of one run, that is found 9 times of 10.

    phi: correlation of neighbouring runs. The step has to pass the weak threshold in a window and the strict one on the
    whole. A step near an end has to be larger.
    """
    return max(_step(min(runs, WINDOW), WEAK * P_VALUE, 0.0), _step(runs, P_VALUE, phi))


def _step(runs: int, p: float, phi: float) -> float:
    """Student's t between two halves: the threshold, and as much as it falls short in one of ten."""
    half = runs // 2
    freedom = max(math.floor(2 * contrast(half, runs - half, phi).freedom) / 2, 1.0)
    each = math.sqrt(4 / runs) * widened(half, runs - half, phi)
    return (quantile(1 - p / 2, freedom) + quantile(FOUND, freedom)) * each
