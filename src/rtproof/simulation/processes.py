# SPDX-License-Identifier: Apache-2.0
"""When exceedances come: singly, in bursts, in storms, or more and more often.

Rates are of single events per second, over all of the run. Whoever needs the rate of what comes independently (a burst
is one such thing) gets it from ``cluster_rate``, and back from ``event_rate``. Episodes come a little less often than
clusters, because neighbours may join.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Sizes = NDArray[np.int64]
LEAD_S = 600.0
"""Clusters that began so long before the run still reach into it."""
STORM_S = 60.0
BURST_GAP_S = 5.0
DRIFT = 0.5
"""A drifting rate begins this share below its mean and ends as much above it."""


@dataclass(frozen=True)
class Kind:
    """How events come. clustered: share of all events that come in clusters, the others come singly.

    size: mean number of events in a cluster. stretch: what the tail's scale is multiplied by within one.
    """

    help: str
    clustered: float = 0.0
    size: float = 1.0
    stretch: float = 1.0


KINDS = {
    "poisson": Kind("each by itself, at a constant rate"),
    "burst5": Kind("in bursts of five on average (geometric), exponential gaps of 5 s on average", 1.0, 5.0),
    "storm": Kind("half of them in storms of 60 s with ten on average, the others singly", 0.5, 10.0),
    "storm2": Kind("two thirds in storms of 60 s with twenty on average, of twice the tail's scale", 2 / 3, 20.0, 2.0),
    "drift": Kind("each by itself, at a rate that grows steadily from half its mean to one and a half times"),
}


@dataclass(frozen=True)
class Events:
    """Events in the order of their times. stretch: what the tail's scale is multiplied by for each (1: the usual)."""

    time_s: Seconds
    stretch: Seconds


def cluster_rate(kind: str, rate_per_s: float) -> float:
    """How often something new begins, single events and clusters, where single events come at this rate."""
    found = KINDS[kind]
    return rate_per_s * (1 - found.clustered + found.clustered / found.size)


def event_rate(kind: str, clusters_per_s: float) -> float:
    """The rate of single events where something new begins at this rate."""
    return clusters_per_s / cluster_rate(kind, 1.0)


def event_times(kind: str, rate_per_s: float, duration_s: float, generator: np.random.Generator) -> Seconds:
    """Times of events in [0, duration_s), sorted, in seconds; the process has been going on before. KeyError: kind."""
    return events(kind, rate_per_s, duration_s, generator).time_s


def events(kind: str, rate_per_s: float, duration_s: float, generator: np.random.Generator) -> Events:
    """Events of a kind (see ``KINDS``) at a mean rate of single events; drift is over the whole duration."""
    found = KINDS[kind]
    if kind == "drift":
        return _alike(_drifting(rate_per_s, duration_s, generator))
    single = _poisson(rate_per_s * (1 - found.clustered), 0.0, duration_s, generator)
    if not found.clustered:
        return _alike(single)
    begins = _poisson(rate_per_s * found.clustered / found.size, -LEAD_S, duration_s, generator)
    clustered = _MEMBERS[kind](begins, found.size, generator)
    time = np.concatenate((single, clustered[(clustered >= 0) & (clustered < duration_s)]))
    stretch = np.ones(time.size)
    stretch[single.size :] = found.stretch
    order = np.argsort(time, kind="stable")
    return Events(time[order], stretch[order])


def _alike(time_s: Seconds) -> Events:
    return Events(time_s, np.ones(time_s.size))


def _poisson(rate_per_s: float, start_s: float, end_s: float, generator: np.random.Generator) -> Seconds:
    count = generator.poisson(rate_per_s * (end_s - start_s))
    return np.sort(generator.uniform(start_s, end_s, count))


def _drifting(rate_per_s: float, duration_s: float, generator: np.random.Generator) -> Seconds:
    """The share x of the time has seen the share (1 - d) x + d x^2 of the events; this is solved for x."""
    seen = np.sort(generator.random(generator.poisson(rate_per_s * duration_s)))
    low = 1 - DRIFT
    share: Seconds = (np.sqrt(low**2 + 4 * DRIFT * seen) - low) / (2 * DRIFT)
    return share * duration_s


def _burst(begins: Seconds, size: float, generator: np.random.Generator) -> Seconds:
    """The first event of each begins it; the next ones follow at exponential gaps."""
    sizes = generator.geometric(1 / size, begins.size)
    gaps = generator.exponential(BURST_GAP_S, int(sizes.sum()))
    walked = np.cumsum(gaps)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(begins, sizes) + walked - (walked[first] if walked.size else 0.0)


def _storm(begins: Seconds, size: float, generator: np.random.Generator) -> Seconds:
    """At least one event in each, all anywhere within its length."""
    sizes = 1 + generator.poisson(size - 1, begins.size)
    return np.repeat(begins, sizes) + generator.uniform(0.0, STORM_S, int(sizes.sum()))


_MEMBERS: dict[str, Callable[[Seconds, float, np.random.Generator], Seconds]] = {
    "burst5": _burst,
    "storm": _storm,
    "storm2": _storm,
}
