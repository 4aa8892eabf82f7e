# SPDX-License-Identifier: Apache-2.0
"""Runs of two things as figures, without a file, for the tests of the page of a comparison."""

from dataclasses import replace

import numpy as np
from run_folders import latencies

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison
from rtproof.compare.run_metrics import RunFigures
from rtproof.record.contents import Seconds
from rtproof.summary.counts import counts_of_values

N = 20_000
DAY_NS = 86_400 * 10**9


def figures(seed: int, factor: float = 1.0, name: str = "", **facts: str) -> RunFigures:
    """A run of 20 s."""
    values = latencies(seed, N, factor * float(np.exp(np.random.default_rng(seed).normal(0, 0.02))))
    seconds = values.reshape(-1, 1000)
    every = np.full(len(seconds), 1000)
    return RunFigures(
        name or f"run-{seed}",
        {"view": "observed", "probe": "timer", **facts},
        counts_of_values(values),
        int(values.max()),
        seconds=Seconds(np.arange(len(seconds)), every, 0 * every, seconds.max(axis=1)),
        span_ns=len(seconds) * 1_000_000_000,
        run_id=str(seed),
    )


def side(first: int, n: int, factor: float = 1.0, **facts: str) -> list[RunFigures]:
    """A day apart, so that sides with another first run take turns."""
    runs = [figures(first + at, factor, **facts) for at in range(n)]
    return [replace(run, started_ns=(20_000 + at) * DAY_NS + first * 10**9) for at, run in enumerate(runs)]


def compared(n: int = 5, factor: float = 2.0, **facts: str) -> Comparison:
    """n runs of each; B is later by a factor, and says the facts."""
    return compare_sides(side(0, n), side(n, n, factor, **facts))
