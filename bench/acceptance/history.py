# SPDX-License-Identifier: Apache-2.0
"""Changes in a history of runs. How often is one seen that is not there, and how often is one found?

The noise of a metric's logarithm has deviation 1. It is normal, or Student's t with 3 degrees of freedom, or resampled
from 80 real runs, with their outliers, which all lie on one side.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from acceptance import Row, Simulation, at_least, at_most
from rtproof.compare.change_points import mean_changes

RUNS = 80
NEAR = 3
LAST = 5
RESIDUALS = (
    435, -98, -103, -96, -109, -107, -77, -113, -27, -100, -95, -19, 431, -62, -34, 19, -80, 8, -2, 9,
    194, 125, 13, 6, 28, 37, 21, 7, 13, 44, -8, -3, -7, -2, -13, -68, -103, -111, -75, -104,
    -105, -98, -97, -37, -58, 1, -35, -68, -88, 284, 39, 149, -78, -84, -55, 13, 83, -102, -5, 4,
    26, 37, 22, 89, 19, -11, 6, -20, -17, 97, 55, 13, 32, 34, 22, 25, 29, 30, 45, 32,
)  # fmt: skip
"""Hundredths of a deviation of the ln p50 of 80 runs of 5 s each, one after the other, of probe timer at 500 us and
priority 80, on a virtual machine with 4 CPUs that other programs kept busy; kurtosis 10, skewness 2.2. As they are
drawn in any order, what slow drift they had is gone."""

Noise = Callable[[np.random.Generator], NDArray[np.float64]]
Series = NDArray[np.float64]

NOISES: dict[str, Noise] = {
    "gauss": lambda generator: generator.standard_normal(RUNS),
    "t3": lambda generator: generator.standard_t(3, RUNS) / np.sqrt(3.0),
    "real": lambda generator: generator.choice(np.array(RESIDUALS, np.float64) / 100, RUNS),
}


def history(short: bool) -> Iterator[Row]:
    """The share of histories with any change reported, and of those in which a change was found within NEAR runs.

    The short form fails where changes are reported 4 runs late.
    """
    repetitions = 400 if short else 4_000
    for name, noise in NOISES.items():
        generator = np.random.default_rng(12)
        alarms = steps = lasts = 0
        for _ in range(repetitions):
            alarms += bool(_sought(np.array(_shifted(noise(generator), RUNS, 0.0))))
            at = int(generator.integers(20, RUNS - 20, endpoint=True))
            steps += _found(_shifted(noise(generator), at, 2.0), at)
            lasts += _found(_shifted(noise(generator), RUNS - LAST, 3.0), RUNS - LAST)
        yield at_most(f"{name}: a false change", alarms / repetitions, 0.05)
        yield at_least(f"{name}: a step of 2 deviations found", steps / repetitions, 0.90)
        yield at_least(f"{name}: a step of 3 in the last {LAST} runs found", lasts / repetitions, 0.90)


def _shifted(series: Series, at: int, by: float) -> list[float]:
    series[at:] += by
    return [float(value) for value in series]


def _found(series: list[float], at: int) -> bool:
    return any(abs(place - at) <= NEAR for place, _ in mean_changes(series))


def wandering(short: bool) -> Iterator[Row]:
    """Histories of several lengths whose neighbouring runs resemble each other: false changes, and a step of x1.5.

    The step is in the middle. ``found at 1.13``: within NEAR runs, where runs differ by this factor (one deviation).
    """
    repetitions = 100 if short else 1_000
    generator = np.random.default_rng(120)
    for name, (slow, share, most) in WANDERS.items():
        for runs in LENGTHS[:2] if short else LENGTHS:
            drawn = [_wander(slow, share, generator, runs) for _ in range(repetitions)]
            false = float(np.mean([bool(_sought(one)) for one in drawn]))
            yield at_most(f"{name}, {runs} runs: a false change", false, most + (0.05 if short else 0))
            for factor in FACTORS:
                found = np.mean([_step_found(one, factor) for one in drawn[: repetitions // 4]])
                yield Row(f"{name}, {runs} runs: found at {factor}", float(found))


LENGTHS = (20, 50, 80, 200)
FACTORS = (1.03, 1.13, 1.23)
"""Medians and 99 % of 24 equal runs of 9 s differed by a factor of 1.13 and 1.23 (one standard deviation)."""
WANDERS = {
    "independent": (0.0, 1.0, 0.05),
    "AR 0.6": (0.6, 1.0, 0.05),
    "AR 0.9": (0.9, 1.0, 0.05),
    "half AR 0.9, half noise": (0.9, 0.5, 0.10),
}
"""Correlation of neighbours of the slow part, its share in the variance, and the most false changes."""


def _wander(slow: float, share: float, generator: np.random.Generator, runs: int) -> Series:
    noise = generator.standard_normal(runs)
    mixed: Series = np.sqrt(share) * autoregressive(slow, generator, (runs,)) + np.sqrt(1 - share) * noise
    return mixed


def _step_found(series: Series, factor: float) -> bool:
    middle = series.size // 2
    stepped = series + (np.arange(series.size) >= middle) * np.log(1.5) / np.log(factor)
    return any(abs(place - middle) <= NEAR for place in _sought(stepped))


def autoregressive(phi: float, generator: np.random.Generator, shape: tuple[int, ...]) -> Series:
    """Series of deviation 1 along the last axis."""
    series = generator.standard_normal(shape)
    for at in range(1, shape[-1]):
        series[..., at] = phi * series[..., at - 1] + np.sqrt(1 - phi * phi) * series[..., at]
    return series


def _sought(series: Series) -> list[int]:
    """Places of the changes, as ``history`` looks for them."""
    return [place for place, _ in mean_changes(series.tolist())]


SIMULATIONS = (
    Simulation("12_history", "changes in a history of 80 runs", history),
    Simulation("12_history_wandering", "changes where neighbouring runs resemble each other", wandering),
)
