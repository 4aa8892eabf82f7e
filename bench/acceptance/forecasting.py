# SPDX-License-Identifier: Apache-2.0
"""Benchmark 10: check that an uneven run is noticed."""

import multiprocessing
from collections.abc import Iterator
from functools import partial

import numpy as np

from acceptance import Benchmark, Result
from rtproof.simulation.events import KnownTail, second_maxima
from rtproof.tail.forecast import UNEVEN_P
from rtproof.tail.stationarity import stationarity

SEED = 20_261_121
HOURS, SHORT_HOURS = (6, 54), (24,)
RATE_PER_S = 0.03
RUNS, SHORT_RUNS = 300, 25
EVEN = "poisson"
UNEVEN = ("storm", "storm2", "drift")
MOST_EVEN, LEAST_UNEVEN = 0.05, 0.95
SHORT_SLACK = 0.05
"""For 25 runs. Checked to fail: with the trend alone no storm is flagged, with slots of 30 s half of them, at a level
that half of the seconds exceed hardly any, and with the other tail of chi-squared half of the even runs."""


def flagged(seconds: int, kind: str, number: int) -> bool:
    """Whether one run is said to be uneven."""
    generator = np.random.default_rng([SEED, seconds, sum(kind.encode()), number])
    largest = second_maxima(kind, RATE_PER_S, seconds, KnownTail(), generator)
    found = stationarity(np.arange(seconds), largest)
    assert found.dispersion_p is not None
    assert found.trend_p is not None
    return min(found.dispersion_p, found.trend_p) < UNEVEN_P


def uneven_runs(short: bool) -> Result:
    """Benchmark 10."""
    runs = SHORT_RUNS if short else RUNS
    rates = {
        f"{kind} {hours} h": rate
        for hours in (SHORT_HOURS if short else HOURS)
        for kind, rate in _rates(hours * 3600, runs, 1 if short else 4)
    }
    slack = SHORT_SLACK if short else 0.0
    holds = all(
        rate <= MOST_EVEN + slack if name.startswith(EVEN) else rate >= LEAST_UNEVEN - slack
        for name, rate in rates.items()
        if name.split()[0] in (EVEN, *UNEVEN)
    )
    goal = f"of runs at a constant rate at most {MOST_EVEN} are flagged; of {', '.join(UNEVEN)} at least {LEAST_UNEVEN}"
    return Result({name: round(rate, 3) for name, rate in rates.items()}, goal, holds)


def _rates(seconds: int, runs: int, processes: int) -> Iterator[tuple[str, float]]:
    """The share of runs that is flagged, for each kind; bursts of some seconds are shown, but have no goal."""
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for kind in (EVEN, *UNEVEN, "burst5"):
            yield kind, float(np.mean(pool.map(partial(flagged, seconds, kind), range(runs))))


BENCHMARKS = (Benchmark("10_dispersion", "A run whose rate changes is noticed", uneven_runs),)
