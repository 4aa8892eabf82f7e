# SPDX-License-Identifier: Apache-2.0
"""Benchmark 12: changes in the history of 80 runs. How often one is seen that is not there, and how often one is found.

Noise of a metric's logarithm has deviation 1: normal; Student's t with 3 degrees of freedom; and resampled from 80 real
runs, of which it has the outliers, all to one side.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from acceptance import Benchmark, Result, Value
from rtproof.analysis.history.changes import changes

RUNS = 80
NEAR = 3
LAST = 5
FALSE_ALARM, FOUND = 0.05, 0.90
SHORT, FULL = 400, 4_000
RESIDUALS = (
    435,
    -98,
    -103,
    -96,
    -109,
    -107,
    -77,
    -113,
    -27,
    -100,
    -95,
    -19,
    431,
    -62,
    -34,
    19,
    -80,
    8,
    -2,
    9,
    194,
    125,
    13,
    6,
    28,
    37,
    21,
    7,
    13,
    44,
    -8,
    -3,
    -7,
    -2,
    -13,
    -68,
    -103,
    -111,
    -75,
    -104,
    -105,
    -98,
    -97,
    -37,
    -58,
    1,
    -35,
    -68,
    -88,
    284,
    39,
    149,
    -78,
    -84,
    -55,
    13,
    83,
    -102,
    -5,
    4,
    26,
    37,
    22,
    89,
    19,
    -11,
    6,
    -20,
    -17,
    97,
    55,
    13,
    32,
    34,
    22,
    25,
    29,
    30,
    45,
    32,
)
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


def history(short: bool) -> Result:
    """The share of histories with any change reported, and of those in which a change was found within NEAR runs.

    Checked that the short form can fail, by changing the method: p < 0.01 gives false alarms of 0.17 to 0.29;
    p < 1e-7 finds 0.47 of the last five; sides of at least 8 runs find 0.35 of them; weighing only what passes the last
    threshold in its window (WEAK = 1) finds 0.86; changes reported 4 runs late find 0.15 of the steps.
    """
    repetitions = SHORT if short else FULL
    value: dict[str, Value] = {name: _measured(noise, repetitions) for name, noise in NOISES.items()}
    held = [_holds(each) for each in value.values()]
    goal = (
        f"in {repetitions:,} histories of {RUNS} runs of each noise: a false alarm in at most {FALSE_ALARM}, a step of "
        f"2 deviations and one of 3 in the last {LAST} runs found within {NEAR} runs in at least {FOUND}"
    )
    return Result(value, goal, all(held))


def _holds(found: Value) -> bool:
    assert isinstance(found, dict)
    alarm, step, last = (found[key] for key in ("false_alarm", "step", "last"))
    assert isinstance(alarm, float)
    assert isinstance(step, float)
    assert isinstance(last, float)
    return alarm <= FALSE_ALARM and step >= FOUND and last >= FOUND


def _measured(noise: Noise, repetitions: int) -> Value:
    generator = np.random.default_rng(12)
    alarms = steps = lasts = 0
    for _ in range(repetitions):
        alarms += bool(changes(_shifted(noise(generator), RUNS, 0.0)))
        at = int(generator.integers(20, RUNS - 20, endpoint=True))
        steps += _found(_shifted(noise(generator), at, 2.0), at)
        lasts += _found(_shifted(noise(generator), RUNS - LAST, 3.0), RUNS - LAST)
    return {"false_alarm": alarms / repetitions, "step": steps / repetitions, "last": lasts / repetitions}


def _shifted(series: Series, at: int, by: float) -> list[float]:
    series[at:] += by
    return [float(value) for value in series]


def _found(series: list[float], at: int) -> bool:
    return any(abs(change.at - at) <= NEAR for change in changes(series))


BENCHMARKS = (Benchmark("12_history", "changes in a history of 80 runs", history),)
