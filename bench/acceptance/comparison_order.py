# SPDX-License-Identifier: Apache-2.0
"""A drift, or likeness of neighbouring runs, makes no side better, by turns or without turns.

Checked to fail: with MOST_IMBALANCE = 1 in ``compare/likeness.py`` A-then-B has a winner in .28 (drift), .36 (AR .8).
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from acceptance import Row, Simulation, at_most
from acceptance.history import autoregressive
from rtproof.compare.likeness import is_interleaved
from rtproof.statistics import permuted_means

Floats = NDArray[np.float64]
RUNS = 5
ORDERS = {"A-then-B": "AAAAABBBBB", "ABBA": "ABBAABBAAB", "ABAB": "ABABABABAB", "by twos": "AABBAABBAB"}
ALPHA = 0.05


def drifting(short: bool) -> Iterator[Row]:
    """One metric of two sides of one system, 5 and 5 runs: how often p is below 5 %, and a winner is named."""
    times = 1_500 if short else 20_000
    random = np.random.default_rng(110)
    series = {name: _series(name, times, random) for name in ("even", "drift 2", "drift 4", "step 2", "hump 2")}
    series |= {f"AR {phi}": autoregressive(phi, random, (times, 2 * RUNS)) for phi in (0.3, 0.6, 0.8, 0.95)}
    most = 0.08 if short else 0.06
    for name, order in ORDERS.items():
        for kind, some in series.items():
            share = _told_apart(some, order)
            if is_interleaved(order):
                yield at_most(f"{name}, {kind}: a winner", share, most)
            else:
                yield Row(f"{name}, {kind}: p below 5 %, and no winner named", share)
    by_turns = [order for order in _every_order() if is_interleaved(order)]
    shares = np.array([[_told_apart(some[:1_000], order) for some in series.values()] for order in by_turns])
    for kind, mean in zip(series, shares.mean(axis=0).tolist(), strict=True):
        yield at_most(f"{len(by_turns)} orders by turns, {kind}: on average", mean, 0.06)
    for kind, worst in zip(series, shares.max(axis=0).tolist(), strict=True):
        yield at_most(f"{len(by_turns)} orders by turns, {kind}: the worst", worst, 0.13)


def _every_order() -> list[str]:
    """All with A first; the others mirror them."""
    places = (set(some) for some in combinations(range(2 * RUNS), RUNS) if 0 in some)
    return ["".join("A" if at in some else "B" for at in range(2 * RUNS)) for some in places]


def _series(name: str, times: int, random: np.random.Generator) -> Floats:
    """Independent runs of deviation 1 around what drifts by the number in the name."""
    t = np.linspace(-0.5, 0.5, 2 * RUNS)
    size = float(name.partition(" ")[2] or 0)
    shapes: dict[str, Floats] = {"even": 0 * t, "drift": t, "step": (t > 0).astype(np.float64), "hump": 1 - 4 * t * t}
    drawn: Floats = random.standard_normal((times, t.size)) + size * shapes[name.partition(" ")[0]]
    return drawn


def _told_apart(series: Floats, order: str) -> float:
    """As ``inference.p_value`` for each row: twice the smaller tail of all splits."""
    side = np.array([name == "A" for name in order])
    steps = np.concatenate([series[:, side], series[:, ~side]], axis=1) @ permuted_means(RUNS, RUNS).T
    tails = np.minimum(*(1 + (sign * steps <= 1e-12).sum(axis=1) for sign in (1, -1)))
    return float((2 * tails / (steps.shape[1] + 1) < ALPHA).mean())


SIMULATIONS = (Simulation("11_comparison_order", "what drifts makes no winner", drifting),)
