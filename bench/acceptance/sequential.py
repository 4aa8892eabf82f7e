# SPDX-License-Identifier: Apache-2.0
"""Statements beside a verdict err as seldom as they claim: rates and chances."""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from acceptance import Row, Simulation, around, at_least, at_most, spread
from rtproof import statistics
from rtproof.judge.claim import EpisodeCourse, LateStretches, episode_course
from rtproof.simulation import events as simulated
from rtproof.simulation.events import SecondsArray

HOUR_S = 3600
NS = 10**9
GAP_NS = 60 * NS
ALPHA = 0.05


def rate_bound(short: bool) -> Iterator[Row]:
    """Checked to fail: with a gap of 0 s the least share of the short form is 0.58."""
    runs, least = (400, 0.92 - 3 * math.sqrt(0.05 * 0.95 / 400)) if short else (4000, 0.92)
    cells = list(product(("poisson", "burst5", "storm", "storm2"), (6, 54), (3, 10, 40)))
    found = spread(_coverage, [(number, *cell, runs) for number, cell in enumerate(cells)])
    for (kind, hours, events), (fixed, anytime) in zip(cells, found, strict=True):
        yield at_least(f"{kind}, {hours} h, {events} events: fixed time", fixed, least)
        yield at_least(f"{kind}, {hours} h, {events} events: any time", anytime, least)


def prediction(short: bool) -> Iterator[Row]:
    """Checked to fail: a rule of m/n instead of m/(n+m) is off by 0.5 at n = m. Values of a run share a scale.

    Whole numbers with ties exceed it less often; "at most" is what holds of them too.
    """
    runs = 4000 if short else 40_000
    rng = np.random.default_rng(5)
    for n, m, chance in ((20, 20, 0.5), (20, 60, 0.75), (190, 10, 0.05)):
        yield around(f"{n} and {m} more values: exceeded", _exceeded(n, m, runs, rng), chance, 2 / math.sqrt(runs))
    yield at_most("20 and 20 with ties: exceeded", _exceeded(20, 20, runs, rng, whole=True), 0.45)


def _course(times: SecondsArray, length_ns: int) -> EpisodeCourse:
    """By the code that joins those of a record."""
    at = np.asarray(times * NS, np.int64)
    return episode_course(LateStretches.exact(at, at), length_ns, GAP_NS)


def _coverage(seed: int, kind: str, hours: int, events: int, runs: int) -> tuple[float, float]:
    """Share of runs whose upper limit is not below the rate in quiet time of a run of 3000 times the length."""
    rng = np.random.default_rng((3, seed))
    length_s = hours * HOUR_S
    rate = events / length_s
    long = _course(simulated.events(kind, rate, 3000 * length_s, rng)[0], 3000 * length_s * NS)
    truth = long.episodes / long.live_ns
    found = [_course(simulated.events(kind, rate, length_s, rng)[0], length_s * NS) for _ in range(runs)]
    counted = [(one.episodes, truth * one.live_ns) for one in found]
    fixed = sum(statistics.mean_upper(n, 1 - ALPHA) >= mean for n, mean in counted) / runs
    return fixed, sum(statistics.tau_needed(n, ALPHA) >= mean for n, mean in counted) / runs


def _exceeded(n: int, m: int, runs: int, rng: np.random.Generator, *, whole: bool = False) -> float:
    if whole:
        values: NDArray[np.float64] = rng.poisson(5, size=(runs, n + m)).astype(float)
    else:
        values = rng.lognormal(size=(runs, n + m)) * rng.lognormal(size=(runs, 1))
    return float(np.mean(values[:, n:].max(axis=1) > values[:, :n].max(axis=1)))


SIMULATIONS = (
    Simulation("03_rate_bound", "the upper limits of the rate of episodes cover the truth", rate_bound),
    Simulation("05_next_run", "the chance that the next run exceeds the maximum is m / (n + m)", prediction),
)
