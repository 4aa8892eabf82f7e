# SPDX-License-Identifier: Apache-2.0
"""Draw when simulated events happen, and how late each event makes an activation.

A cluster is a single event, a burst or a storm. Rates are single events per second; ``event_rate`` converts those of
clusters. Episodes are slightly rarer than clusters, because neighbours may join. The excess of an event over the
threshold follows a generalised Pareto distribution (Pickands 1975), so the rate above any level is known exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SecondsArray = NDArray[np.float64]
LEAD_S = 600.0
"""Clusters are drawn from this time before the run on, because they may reach into the run."""
STORM_S = 60.0
BURST_GAP_S = 5.0
DRIFT = 0.5
"""A drifting rate begins this share below its mean and ends as much above it."""


@dataclass(frozen=True)
class EventKind:
    """How events come. clustered: the share of all events that come in clusters of ``size`` events on average.

    stretch: within a cluster, the tail's scale is multiplied by this.
    """

    help: str
    clustered: float = 0.0
    size: float = 1.0
    stretch: float = 1.0


EVENT_KINDS = {
    "poisson": EventKind("each by itself, at a constant rate"),
    "burst5": EventKind("in bursts of five on average (geometric), exponential gaps of 5 s on average", 1.0, 5.0),
    "storm": EventKind("half of them in storms of 60 s with ten on average, the others singly", 0.5, 10.0),
    "storm2": EventKind(
        "two thirds in storms of 60 s with twenty on average, of twice the tail's scale", 2 / 3, 20.0, 2.0
    ),
    "drift": EventKind("each by itself, at a rate that grows steadily from half its mean to one and a half times"),
}


Events = tuple[SecondsArray, SecondsArray]
"""Of events the times in seconds, in order, and for each the factor of the tail's scale, usually 1."""


def event_rate(kind: str, clusters_per_s: float) -> float:
    """How many events come per second if ``clusters_per_s`` clusters begin per second."""
    found = EVENT_KINDS[kind]
    return clusters_per_s / (1 - found.clustered + found.clustered / found.size)


def events(kind: str, rate_per_s: float, duration_s: float, generator: np.random.Generator) -> Events:
    """Draw events of one kind in [0, duration_s), at a mean rate of single events per second."""
    found = EVENT_KINDS[kind]
    if kind == "drift":
        single = _drifting(rate_per_s, duration_s, generator)
    else:
        single = _poisson(rate_per_s * (1 - found.clustered), 0.0, duration_s, generator)
    if not found.clustered:
        return single, np.ones(single.size)
    begins = _poisson(rate_per_s * found.clustered / found.size, -LEAD_S, duration_s, generator)
    clustered = _MEMBERS[kind](begins, found.size, generator)
    time = np.concatenate((single, clustered[(clustered >= 0) & (clustered < duration_s)]))
    stretch = np.ones(time.size)
    stretch[single.size :] = found.stretch
    order = np.argsort(time, kind="stable")
    return time[order], stretch[order]


def _poisson(rate_per_s: float, start_s: float, end_s: float, generator: np.random.Generator) -> SecondsArray:
    count = generator.poisson(rate_per_s * (end_s - start_s))
    return np.sort(generator.uniform(start_s, end_s, count))


def _drifting(rate_per_s: float, duration_s: float, generator: np.random.Generator) -> SecondsArray:
    """Times of events at a rate that grows: after the share x of the time, (1 - d) x + d x^2 of them have come."""
    seen = np.sort(generator.random(generator.poisson(rate_per_s * duration_s)))
    low = 1 - DRIFT
    share: SecondsArray = (np.sqrt(low**2 + 4 * DRIFT * seen) - low) / (2 * DRIFT)
    return share * duration_s


def _burst(begins: SecondsArray, size: float, generator: np.random.Generator) -> SecondsArray:
    """Times of the events in bursts. A burst begins with its first event, and the others follow at exponential gaps."""
    sizes = generator.geometric(1 / size, begins.size)
    gaps = generator.exponential(BURST_GAP_S, int(sizes.sum()))
    walked = np.cumsum(gaps)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(begins, sizes) + walked - (walked[first] if walked.size else 0.0)


def _storm(begins: SecondsArray, size: float, generator: np.random.Generator) -> SecondsArray:
    """Times of the events in storms. Each storm has at least one event; all lie anywhere within the storm's length."""
    sizes = 1 + generator.poisson(size - 1, begins.size)
    return np.repeat(begins, sizes) + generator.uniform(0.0, STORM_S, int(sizes.sum()))


_MEMBERS: dict[str, Callable[[SecondsArray, float, np.random.Generator], SecondsArray]] = {
    "burst5": _burst,
    "storm": _storm,
    "storm2": _storm,
}


# Latencies with a known tail: a body without a tail, and rare events above a threshold.


Int64Array = NDArray[np.int64]


@dataclass(frozen=True)
class KnownTail:
    """The generalised Pareto distribution of an event's excess over a threshold; with a shape of 0 exponential."""

    threshold_ns: float = 50_000.0
    scale_ns: float = 20_000.0
    shape: float = 0.0

    def above(self, level_ns: float, stretch: float = 1.0) -> float:
        """The share of events whose latency is above a level, if the scale is multiplied by ``stretch``."""
        excess = max(level_ns - self.threshold_ns, 0.0) / (self.scale_ns * stretch)
        if not self.shape:
            return math.exp(-excess)
        return float(max(1 + self.shape * excess, 0.0) ** (-1 / self.shape))

    def draw_ns(self, stretch: NDArray[np.float64], generator: np.random.Generator) -> Int64Array:
        """Draw a latency in whole nanoseconds for each event. ``stretch``: factor of the scale for each event."""
        exponential = generator.exponential(1.0, stretch.size)
        excess = np.expm1(self.shape * exponential) / self.shape if self.shape else exponential
        return np.ceil(self.threshold_ns + self.scale_ns * stretch * excess).astype(np.int64)
