# SPDX-License-Identifier: Apache-2.0
"""When simulated events happen (singly, in bursts, in storms, drifting), and how late they make an activation.

Rates are of single events per second, over the whole run. ``cluster_rate`` converts such a rate to the rate of
independent beginnings (a burst is one beginning); ``event_rate`` converts back. Episodes are slightly rarer than
clusters, because neighbours may join.

The excess of an event over the threshold follows a generalised Pareto distribution (Pickands 1975). So the rate above
any level beyond the threshold is known exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SecondsArray = NDArray[np.float64]
SizesArray = NDArray[np.int64]
LEAD_S = 600.0
"""Clusters that began so long before the run still reach into it."""
STORM_S = 60.0
BURST_GAP_S = 5.0
DRIFT = 0.5
"""A drifting rate begins this share below its mean and ends as much above it."""


@dataclass(frozen=True)
class EventKind:
    """How events come. clustered: share of all events that come in clusters, the others come singly.

    size: mean number of events in a cluster. stretch: what the tail's scale is multiplied by within one.
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


@dataclass(frozen=True)
class Events:
    """Events in the order of their times. stretch: what the tail's scale is multiplied by for each (1: the usual)."""

    time_s: SecondsArray
    stretch: SecondsArray


def cluster_rate(kind: str, rate_per_s: float) -> float:
    """How often something new begins, single events and clusters, where single events come at this rate."""
    found = EVENT_KINDS[kind]
    return rate_per_s * (1 - found.clustered + found.clustered / found.size)


def event_rate(kind: str, clusters_per_s: float) -> float:
    """The rate of single events where something new begins at this rate."""
    return clusters_per_s / cluster_rate(kind, 1.0)


def event_times(kind: str, rate_per_s: float, duration_s: float, generator: np.random.Generator) -> SecondsArray:
    """Times of events in [0, duration_s), sorted, in seconds; the process has been going on before. KeyError: kind."""
    return events(kind, rate_per_s, duration_s, generator).time_s


def events(kind: str, rate_per_s: float, duration_s: float, generator: np.random.Generator) -> Events:
    """Events of a kind (see ``KINDS``) at a mean rate of single events; drift is over the whole duration."""
    found = EVENT_KINDS[kind]
    if kind == "drift":
        return _equally_scaled(_drifting(rate_per_s, duration_s, generator))
    single = _poisson(rate_per_s * (1 - found.clustered), 0.0, duration_s, generator)
    if not found.clustered:
        return _equally_scaled(single)
    begins = _poisson(rate_per_s * found.clustered / found.size, -LEAD_S, duration_s, generator)
    clustered = _MEMBERS[kind](begins, found.size, generator)
    time = np.concatenate((single, clustered[(clustered >= 0) & (clustered < duration_s)]))
    stretch = np.ones(time.size)
    stretch[single.size :] = found.stretch
    order = np.argsort(time, kind="stable")
    return Events(time[order], stretch[order])


def _equally_scaled(time_s: SecondsArray) -> Events:
    return Events(time_s, np.ones(time_s.size))


def _poisson(rate_per_s: float, start_s: float, end_s: float, generator: np.random.Generator) -> SecondsArray:
    count = generator.poisson(rate_per_s * (end_s - start_s))
    return np.sort(generator.uniform(start_s, end_s, count))


def _drifting(rate_per_s: float, duration_s: float, generator: np.random.Generator) -> SecondsArray:
    """The share x of the time has seen the share (1 - d) x + d x^2 of the events; this is solved for x."""
    seen = np.sort(generator.random(generator.poisson(rate_per_s * duration_s)))
    low = 1 - DRIFT
    share: SecondsArray = (np.sqrt(low**2 + 4 * DRIFT * seen) - low) / (2 * DRIFT)
    return share * duration_s


def _burst(begins: SecondsArray, size: float, generator: np.random.Generator) -> SecondsArray:
    """The first event of each begins it; the next ones follow at exponential gaps."""
    sizes = generator.geometric(1 / size, begins.size)
    gaps = generator.exponential(BURST_GAP_S, int(sizes.sum()))
    walked = np.cumsum(gaps)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(begins, sizes) + walked - (walked[first] if walked.size else 0.0)


def _storm(begins: SecondsArray, size: float, generator: np.random.Generator) -> SecondsArray:
    """At least one event in each, all anywhere within its length."""
    sizes = 1 + generator.poisson(size - 1, begins.size)
    return np.repeat(begins, sizes) + generator.uniform(0.0, STORM_S, int(sizes.sum()))


_MEMBERS: dict[str, Callable[[SecondsArray, float, np.random.Generator], SecondsArray]] = {
    "burst5": _burst,
    "storm": _storm,
    "storm2": _storm,
}


# How late activations are whose tail is known: a body without one, and rare events above a threshold.
#
# The excess of an event over the threshold follows a generalised Pareto distribution (Pickands 1975), so that the
# rate
# above any level beyond the threshold is known exactly.


Int64Array = NDArray[np.int64]
BODY_RANGE_NS = (5_000, 20_000)
"""Between what the maximum of a second without an event lies."""


@dataclass(frozen=True)
class KnownTail:
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


def rate_above(kind: str, rate_per_s: float, tail: KnownTail, level_ns: float) -> float:
    """The true rate per second of events above a level that is not below the tail's threshold."""
    found = EVENT_KINDS[kind]
    quiet, within = tail.above(level_ns), tail.above(level_ns, found.stretch)
    return rate_per_s * ((1 - found.clustered) * quiet + found.clustered * within)


def second_maxima(
    kind: str, rate_per_s: float, seconds: int, tail: KnownTail, generator: np.random.Generator
) -> Int64Array:
    """The largest latency of each second, in nanoseconds: of the events in it, or of the body where there is none.

    Where events are single, a second's maximum is above a level with probability 1 - exp(-rate_above(...)).
    """
    found = events(kind, rate_per_s, seconds, generator)
    return second_maxima_of(found, tail.draw_ns(found.stretch, generator), seconds, generator)


def second_maxima_of(found: Events, latency_ns: Int64Array, seconds: int, generator: np.random.Generator) -> Int64Array:
    """The same from events and their latencies; whole seconds from 0 on."""
    low, high = BODY_RANGE_NS
    most = generator.integers(low, high, seconds)
    np.maximum.at(most, found.time_s.astype(np.int64), latency_ns)
    return most
