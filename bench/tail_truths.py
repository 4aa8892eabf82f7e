# SPDX-License-Identifier: Apache-2.0
"""Distributions whose tails are known exactly, and the largest of many draws without drawing all.

The smallest of n uniform numbers are partial sums of exponential spacings, exactly. So the largest of 2e8 values take
no more time than those of 2e4. Values are nanoseconds, rounded down.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rtproof.statistics import gamma_inverse
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.tail.pareto_fit import (
    SHAPES,
    TWO_SIDED_95,
    Excesses,
    coarsened_excesses,
    fit_region,
    highest_excesses,
    pareto_growth,
)
from rtproof.tail.thresholds import tail_limit

Floats = NDArray[np.float64]
SCALE_NS = 1e5
TOP = 16_000
"""More of the largest than any rung takes, with coarse bins too."""


Truth = Callable[[Floats], Floats]
"""The value that a share of all exceeds, in nanoseconds; of a class, so that it can be sent to other processes."""


@dataclass(frozen=True)
class Pareto:
    """The generalised one, from 0."""

    xi: float
    sigma_ns: float = SCALE_NS

    def __call__(self, share: Floats) -> Floats:
        return self.sigma_ns * np.asarray(pareto_growth(1 / share, self.xi))


@dataclass(frozen=True)
class Weibull:
    shape: float

    def __call__(self, share: Floats) -> Floats:
        return SCALE_NS * (-np.log(share)) ** (1 / self.shape)


@dataclass(frozen=True)
class Gamma:
    """By straight lines in ln share between 4,000 values."""

    shape: float

    def __call__(self, share: Floats) -> Floats:
        return SCALE_NS * np.interp(-np.log(share), *_gamma_nodes(self.shape))


@dataclass(frozen=True)
class Normal:
    """Its square is a gamma variable, so above the median."""

    mean_ns: float = 4 * SCALE_NS
    sigma_ns: float = SCALE_NS

    def __call__(self, share: Floats) -> Floats:
        return self.mean_ns + self.sigma_ns * _standard_normal(share)


@dataclass(frozen=True)
class Lognormal:
    sigma: float
    median_ns: float = SCALE_NS

    def __call__(self, share: Floats) -> Floats:
        return np.asarray(self.median_ns * np.exp(self.sigma * _standard_normal(share)))


def _standard_normal(share: Floats) -> Floats:
    return np.asarray(np.sqrt(2 * np.interp(-np.log(2 * share), *_gamma_nodes(0.5))))


@lru_cache
def _gamma_nodes(shape: float) -> tuple[Floats, Floats]:
    """-ln share and the value that this share of a gamma distribution exceeds."""
    nodes = np.linspace(0.01, 28, 4000)
    return nodes, np.array([gamma_inverse(float(-np.expm1(-node)), shape) for node in nodes])


SEVEN: dict[str, Truth] = {
    "gpd -.3": Pareto(-0.3),
    "gpd 0": Pareto(0.0),
    "gpd +.2": Pareto(0.2),
    "lognormal .3": Lognormal(0.3),
    "gamma 4": Gamma(4.0),
    "Weibull .6": Weibull(0.6),
    "normal": Normal(),
}


def smallest_shares(n: int, count: int, generator: np.random.Generator) -> Floats:
    """The ``count`` smallest of n uniform numbers, increasing."""
    steps = generator.exponential(size=count).cumsum()
    return np.asarray(steps / (steps[-1] + generator.gamma(n + 1 - count)), dtype=np.float64)


def largest(truth: Truth, n: int, generator: np.random.Generator, step_ns: int = 1, count: int = TOP) -> Counts:
    """The ``count`` largest of n values of a clock that counts in steps."""
    values = truth(smallest_shares(n, min(count, n), generator))
    return counts_of_values(np.floor(values / step_ns).astype(np.int64) * step_ns)


def with_mode(truth: Truth, mode: Truth, share: float, n: int, generator: np.random.Generator) -> Counts:
    """The largest of n values, of which a share, on average, comes from a second mechanism."""
    rare = int(generator.binomial(n, share))
    body = truth(smallest_shares(n - rare, TOP, generator))
    second = mode(generator.random(min(rare, 10 * TOP)))
    return counts_of_values(np.floor(np.concatenate((body, second))).astype(np.int64))


def share_of(hits: NDArray[np.bool_], among: NDArray[np.bool_]) -> float | None:
    """How many of those are hits; None of none."""
    return float(hits[among].mean()) if among.any() else None


def repeated(task: Callable[[int], list[float]], repetitions: int, short: bool) -> Floats:
    """One row for each repetition, whose number is its seed; the full form in as many processes as there are CPUs."""
    if short:
        return np.array([task(seed) for seed in range(repetitions)])
    with ProcessPoolExecutor() as pool:
        return np.array(list(pool.map(task, range(repetitions), chunksize=5)))


def covers(tail: Excesses, probability: float, level: float, *, exact: bool = False) -> float:
    """Whether the 95 % interval of a fit to the 1,000 largest values covers the level.

    exact: the fit takes what a clock said in steps for the values themselves.
    """
    excesses = highest_excesses(tail, 1000)
    assert excesses is not None
    if exact:
        excesses = replace(excesses, width=np.full(excesses.lo.size, 1e-3))
    of = fit_region(coarsened_excesses(excesses), TWO_SIDED_95, SHAPES)
    return float(of.level_lower(probability) <= level <= of.level_upper(probability))


def level_ahead(counts: Counts, units: int, horizon_units: float) -> float | None:
    """The level that the horizon exceeds once on average; None if something stands against the fit."""
    found = tail_limit(counts, units, horizon_units)
    return None if found.codes else found.envelope
