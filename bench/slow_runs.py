# SPDX-License-Identifier: Apache-2.0
"""Runs during which something varies more slowly than the run can show, with the true level of the time after them.

Events come singly at RATE_PER_S, with an exponential excess of mean SCALE_NS over THRESHOLD_NS. The largest latency of
a second without an event is anywhere in BODY_NS. What varies adds an offset to all latencies, and multiplies the rate
of events and the mean of their excess. The phase of each rhythm is random.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Int64Array = NDArray[np.int64]
RATE_PER_S = 0.3
THRESHOLD_NS = 50_000.0
SCALE_NS = 20_000.0
BODY_NS = (5_000.0, 20_000.0)
AHEAD = 10
"""Times the run: the time after it, which a forecast is for."""
EVERY_S = 10
"""The true level is an average over instants so far apart."""
HOUR_S, DAY_S = 3_600.0, 86_400.0
REGIME_S = 2 * HOUR_S


@dataclass(frozen=True)
class State:
    """What the system is like at each instant."""

    offset_ns: Floats
    rate: Floats
    scale: Floats


@dataclass(frozen=True)
class SlowRun:
    """largest_ns: of each second. level_ns: exceeded once, on average, in the AHEAD times as long time after."""

    largest_ns: Int64Array
    level_ns: float


def _state(
    time_s: Floats, offset_ns: Floats | float = 0.0, rate: Floats | float = 1.0, scale: Floats | float = 1.0
) -> State:
    one = np.ones(time_s.size)
    return State(offset_ns * one, rate * one, scale * one)


def _wave(time_s: Floats, period_s: float, generator: np.random.Generator) -> Floats:
    return np.asarray(np.sin(2 * np.pi * (time_s / period_s + generator.random())))


def _even(time_s: Floats, generator: np.random.Generator) -> State:
    return _state(time_s)


def _beat(time_s: Floats, generator: np.random.Generator) -> State:
    """Two clocks that meet once in three days: the offset follows the phase between them smoothly."""
    return _state(time_s, offset_ns=100_000 * (1 + _wave(time_s, 3 * DAY_S, generator)))


def _meeting(time_s: Floats, generator: np.random.Generator) -> State:
    """Two clocks that meet once in 40 h; only for a twentieth of that do they delay each other at all."""
    phase = (time_s / (40 * HOUR_S) + generator.random()) % 1 / 0.05
    return _state(time_s, offset_ns=200_000 * np.where(phase < 1, 1 - np.abs(2 * phase - 1), 0.0))


def _daily(time_s: Floats, generator: np.random.Generator) -> State:
    """Rate and mean excess vary by 60 % with the day, and the body by 20 us."""
    wave = _wave(time_s, DAY_S, generator)
    return _state(time_s, 10_000 * (1 + wave), 1 + 0.6 * wave, 1 + 0.6 * wave)


def _daily_tail(time_s: Floats, generator: np.random.Generator) -> State:
    """The same with hardly any trace in the body."""
    wave = _wave(time_s, DAY_S, generator)
    return _state(time_s, 2_000 * (1 + wave), 1 + 0.6 * wave, 1 + 0.6 * wave)


def _regimes(time_s: Floats, generator: np.random.Generator) -> State:
    """Two regimes in turn, each for 2 h on average; in the second the tail is twice as wide, the body 2 us higher."""
    gaps = generator.exponential(REGIME_S, int(5 * time_s[-1] / REGIME_S) + 50)
    second = (np.searchsorted(np.cumsum(gaps), time_s) + generator.integers(2)) % 2
    return _state(time_s, 2_000.0 * second, scale=1.0 + second)


def _unseen(time_s: Floats, generator: np.random.Generator) -> State:
    """The same regimes, but the run has the first one only."""
    whole = _regimes(time_s, generator)
    run = time_s.size // (1 + AHEAD)
    whole.offset_ns[:run], whole.scale[:run] = 0.0, 1.0
    return whole


def _warming(time_s: Floats, generator: np.random.Generator) -> State:
    """A steady rise by 6 us an hour, which goes on."""
    return _state(time_s, offset_ns=6_000 * time_s / HOUR_S)


KINDS: dict[str, Callable[[Floats, np.random.Generator], State]] = {
    "even": _even,
    "beat": _beat,
    "meeting": _meeting,
    "daily": _daily,
    "daily-tail": _daily_tail,
    "regimes": _regimes,
    "unseen": _unseen,
    "warming": _warming,
}


def slow_run(kind: str, seconds: int, generator: np.random.Generator) -> SlowRun:
    """A run of a kind (see KINDS), and the level of the time after it. KeyError: kind."""
    time_s = np.arange(seconds * (1 + AHEAD)) + 0.5
    whole = KINDS[kind](time_s, generator)
    events = generator.poisson(RATE_PER_S * whole.rate[:seconds])
    where = np.repeat(np.arange(seconds), events)
    largest = generator.uniform(*BODY_NS, seconds)
    np.maximum.at(largest, where, THRESHOLD_NS + SCALE_NS * whole.scale[where] * generator.exponential(size=where.size))
    return SlowRun(np.ceil(largest + whole.offset_ns[:seconds]).astype(np.int64), _level_ns(whole, seconds))


def _level_ns(whole: State, seconds: int) -> float:
    """By bisection: the expected number of events above it in the time after the run is one."""
    offset, rate, scale = (of[seconds::EVERY_S] for of in (whole.offset_ns, whole.rate, whole.scale))
    low, high = THRESHOLD_NS, 1e9
    while high - low > 1:
        middle = (low + high) / 2
        excess = np.maximum(middle - THRESHOLD_NS - offset, 0) / (SCALE_NS * scale)
        more = math.fsum(EVERY_S * RATE_PER_S * rate * np.exp(-excess)) > 1
        low, high = (middle, high) if more else (low, middle)
    return high
