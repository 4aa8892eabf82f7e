# SPDX-License-Identifier: Apache-2.0
"""How late activations are whose tail is known: a body without one, and rare events above a threshold.

The excess of an event over the threshold follows a generalised Pareto distribution (Pickands 1975), so that the rate
above any level beyond the threshold is known exactly.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.simulation import processes
from rtproof.simulation.processes import KINDS, Events

Int64Array = NDArray[np.int64]
BODY_NS = (5_000, 20_000)
"""Between what the maximum of a second without an event lies."""


@dataclass(frozen=True)
class Tail:
    """Excesses over a threshold, generalised Pareto: shape 0 is exponential, above 0 heavier, below 0 it ends."""

    threshold_ns: float = 50_000.0
    scale_ns: float = 20_000.0
    shape: float = 0.0

    def above(self, level_ns: float, stretch: float = 1.0) -> float:
        """Share of events whose latency is above a level, where the scale is multiplied by ``stretch``."""
        excess = max(level_ns - self.threshold_ns, 0.0) / (self.scale_ns * stretch)
        if not self.shape:
            return math.exp(-excess)
        return float(max(1 + self.shape * excess, 0.0) ** (-1 / self.shape))

    def draw_ns(self, stretch: NDArray[np.float64], generator: np.random.Generator) -> Int64Array:
        """A latency for each event, in whole nanoseconds."""
        exponential = generator.exponential(1.0, stretch.size)
        excess = np.expm1(self.shape * exponential) / self.shape if self.shape else exponential
        return np.ceil(self.threshold_ns + self.scale_ns * stretch * excess).astype(np.int64)


def rate_above(kind: str, rate_per_s: float, tail: Tail, level_ns: float) -> float:
    """The true rate per second of events above a level that is not below the tail's threshold."""
    found = KINDS[kind]
    quiet, within = tail.above(level_ns), tail.above(level_ns, found.stretch)
    return rate_per_s * ((1 - found.clustered) * quiet + found.clustered * within)


def second_maxima(kind: str, rate_per_s: float, seconds: int, tail: Tail, generator: np.random.Generator) -> Int64Array:
    """The largest latency of each second, in nanoseconds: of the events in it, or of the body where there is none.

    Where events are single, a second's maximum is above a level with probability 1 - exp(-rate_above(...)).
    """
    found = processes.events(kind, rate_per_s, seconds, generator)
    return maxima_of(found, tail.draw_ns(found.stretch, generator), seconds, generator)


def maxima_of(found: Events, latency_ns: Int64Array, seconds: int, generator: np.random.Generator) -> Int64Array:
    """The same from events and their latencies; whole seconds from 0 on."""
    low, high = BODY_NS
    most = generator.integers(low, high, seconds)
    np.maximum.at(most, found.time_s.astype(np.int64), latency_ns)
    return most
