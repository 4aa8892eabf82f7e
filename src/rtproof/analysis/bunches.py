# SPDX-License-Identifier: Apache-2.0
"""Do episodes come in bunches? A weak test from three episodes on, which may only withhold PROVEN.

The test looks at the n + 1 spacings from the start of the run over the n episodes to now, in quiet time, as shares u of
their sum. If episodes come independently and at a steady rate, the shares are those of a stick broken at random.
Moran's G = (n + 1) sum u^2 (Moran 1947) is large if a few spacings are long, L = -mean ln((n + 1) u) (Darling 1953) if
many are short. Episodes are called bunched if one of the two is above its 97.5 % point, by simulation; both together
reject 4 to 5 % of the runs whose episodes are independent.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST = 3
"""With fewer episodes nothing can be seen of bunches."""
_N = np.log([3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 100, 400])
_G = np.array([2.72, 2.85, 2.88, 2.92, 2.96, 2.91, 2.87, 2.83, 2.71, 2.53, 2.42, 2.21])
_L = np.array([1.361, 1.278, 1.233, 1.198, 1.129, 1.070, 0.985, 0.932, 0.875, 0.790, 0.735, 0.656])
_MOST = 400
_G_FOREVER, _L_FOREVER = 2.0, float(np.euler_gamma)
"""What both tend to as n grows; their spread shrinks with the root of n."""
_CLIP = 1e-9


@dataclass(frozen=True)
class Spacing:
    """Both statistics of n episodes and their 97.5 % points."""

    episodes: int
    moran: float
    moran_critical: float
    log_mean: float
    log_mean_critical: float

    @property
    def bunched(self) -> bool:
        """Whether the episodes come in bunches."""
        return self.moran > self.moran_critical or self.log_mean > self.log_mean_critical


def spacing(starts_ns: ArrayLike, now_ns: float) -> Spacing | None:
    """The test at an instant; None with too few episodes. Times are quiet time; starts_ns ascend."""
    starts = np.asarray(starts_ns, np.float64)
    n = starts.size
    if n < LEAST or now_ns <= 0:
        return None
    shares = np.diff(np.concatenate(([0.0], starts, [max(now_ns, float(starts[-1]))])))
    shares /= shares.sum()
    moran = (n + 1) * float(shares @ shares)
    log_mean = -float(np.log((n + 1) * np.maximum(shares, _CLIP)).mean())
    return Spacing(n, moran, _critical(n, _G, _G_FOREVER), log_mean, _critical(n, _L, _L_FOREVER))


def bunched(starts_ns: ArrayLike, now_ns: float) -> bool:
    """Whether the test rejects; never with fewer than three episodes."""
    found = spacing(starts_ns, now_ns)
    return found is not None and found.bunched


def _critical(n: int, table: NDArray[np.float64], forever: float) -> float:
    if n > _MOST:
        return forever + (float(table[-1]) - forever) * math.sqrt(_MOST / n)
    return float(np.interp(math.log(n), _N, table))
