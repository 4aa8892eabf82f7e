# SPDX-License-Identifier: Apache-2.0
"""Excesses and counts whose distribution is known."""

import numpy as np

from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.tail.pareto_fit import Excesses, highest_excesses, tail_of


def pareto(xi: float, sigma: float, size: int, seed: int) -> Int64Array:
    """Generalised Pareto values, rounded down."""
    uniform = np.random.default_rng(seed).random(size)
    values = -np.log(uniform) if xi == 0 else (uniform**-xi - 1) / xi
    return (sigma * values).astype(np.int64)


def counts_of(xi: float, sigma: float, size: int, seed: int = 1, step: int = 1) -> Counts:
    """Of a clock that counts in steps."""
    return counts_of_values(pareto(xi, sigma, size, seed) // step * step)


def excesses_of(xi: float, sigma: float, size: int, k: int = 1000, **how: int) -> Excesses:
    """how: seed and step of ``counts_of``."""
    found = highest_excesses(tail_of(counts_of(xi, sigma, size, **how), size, how.get("step", 1)), k)
    assert found is not None
    return found
