# SPDX-License-Identifier: Apache-2.0
"""A rare second mechanism: refused where some of its events are in the run; where none are, said to be possible.

That it can fail: without the test of the largest values the shares refused fall below the goal.
"""

from functools import partial

from tail_truths import Lognormal, Normal, Truth, repeated, with_mode

import numpy as np
from acceptance import Benchmark, Result, Value
from rtproof.analysis.tail.limits import limit_of

AHEAD = 10
BODY = Lognormal(0.3, 30e3)
"""Its 1e-8 level is at 161 us."""
MODES: dict[str, Truth] = {"at 300 us": Normal(300e3, 10e3), "around 300 us": Lognormal(0.2, 300e3)}
CASES = ((1e-7, 10**8), (1e-6, 10**8))


def _refused(mode: Truth, share: float, n: int, seed: int) -> list[float]:
    counts = with_mode(BODY, mode, share, n, np.random.default_rng([8, n, seed]))
    found = limit_of(counts, n, AHEAD * n)
    return [float(found.level is None), *(float(code in found.codes) for code in ("FIT", "TOP", "WIDE", "HEAVY"))]
