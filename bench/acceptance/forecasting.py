# SPDX-License-Identifier: Apache-2.0
"""An uneven run is noticed."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from simulated_seconds import second_maxima
from tail_truths import repeated

from acceptance import Row, Simulation, at_least, at_most
from rtproof.simulation.events import KnownTail
from rtproof.tail.forecast import UNEVEN_P
from rtproof.tail.stationarity import stationarity

SEED = 20_261_121
RATE_PER_S = 0.03
EVEN = "poisson"
UNEVEN = ("storm", "storm2", "drift")
SHORT_SLACK = 0.05
"""For 25 runs. Checked to fail: with the trend alone no storm is flagged, with slots of 30 s half of them, at a level
that half of the seconds exceed hardly any, and with the other tail of chi-squared half of the even runs."""


def flagged(seconds: int, kind: str, number: int) -> list[float]:
    """Whether one run is said to be uneven."""
    generator = np.random.default_rng([SEED, seconds, sum(kind.encode()), number])
    largest = second_maxima(kind, RATE_PER_S, seconds, KnownTail(), generator)
    found = stationarity(np.arange(seconds), largest)
    assert found.dispersion_p is not None
    assert found.trend_p is not None
    return [float(min(found.dispersion_p, found.trend_p) < UNEVEN_P)]


def uneven_runs(short: bool) -> Iterator[Row]:
    """Bursts of some seconds are shown, but have no goal."""
    hours, runs, slack = ((24,), 25, SHORT_SLACK) if short else ((6, 54), 300, 0.0)
    for each in hours:
        for kind in (EVEN, *UNEVEN, "burst5"):
            rate = float(repeated(partial(flagged, each * 3600, kind), runs, short).mean())
            name = f"{kind}, {each} h: flagged"
            if kind == EVEN:
                yield at_most(name, rate, 0.05 + slack)
            elif kind in UNEVEN:
                yield at_least(name, rate, 0.95 - slack)
            else:
                yield Row(name, rate)


SIMULATIONS = (Simulation("10_dispersion", "a run whose rate changes is noticed", uneven_runs),)
