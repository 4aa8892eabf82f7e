# SPDX-License-Identifier: Apache-2.0
"""The largest latency of each second of a simulated process, and the true rate above a level."""

import numpy as np

from rtproof.simulation.events import EVENT_KINDS, Events, Int64Array, KnownTail, events

BODY_RANGE_NS = (5_000, 20_000)
"""The maximum of a second without an event lies in this range."""


def rate_above(kind: str, rate_per_s: float, tail: KnownTail, level_ns: float) -> float:
    """The true number of events per second above a level. The level must not be below the tail's threshold."""
    found = EVENT_KINDS[kind]
    quiet, within = tail.above(level_ns), tail.above(level_ns, found.stretch)
    return rate_per_s * ((1 - found.clustered) * quiet + found.clustered * within)


def second_maxima(
    kind: str, rate_per_s: float, seconds: int, tail: KnownTail, generator: np.random.Generator
) -> Int64Array:
    """Draw the largest latency of each second, in nanoseconds. A second without an event has a value of the body.

    If all events are single, a second's maximum is above a level with probability 1 - exp(-rate_above(...)).
    """
    found = events(kind, rate_per_s, seconds, generator)
    return second_maxima_of(found, tail.draw_ns(found[1], generator), seconds, generator)


def second_maxima_of(found: Events, latency_ns: Int64Array, seconds: int, generator: np.random.Generator) -> Int64Array:
    """The largest latency of each second from 0 on, for the given events and their latencies in nanoseconds."""
    low, high = BODY_RANGE_NS
    most = generator.integers(low, high, seconds)
    np.maximum.at(most, found[0].astype(np.int64), latency_ns)
    return most
