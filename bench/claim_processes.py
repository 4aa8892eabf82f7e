# SPDX-License-Identifier: Apache-2.0
"""Simulate exceedances as late stretches of one long path, scaled so that episodes come once per T.

A path is cut into runs, so that each run begins in a process that has been going on for a long time. Only the Poisson
process meets the assumption of the verdict. The others show how often a verdict is wrong if episodes are not
independent or not steady.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY_S = 86_400.0
GOLDEN = 0.618034
"""Phases that grow by this share of a turn fill it evenly."""
STEPS = 6
"""Of the search for the scale; each step leaves about a tenth of the error."""


@dataclass(frozen=True)
class Stretches:
    """Late stretches in the order of their beginnings, in seconds; a single late activation begins where it ends."""

    begin_s: Floats
    end_s: Floats

    @classmethod
    def single(cls, time_s: Floats) -> "Stretches":
        return cls(time_s, time_s)


@dataclass(frozen=True)
class Span:
    """What a path is drawn for. at_most_s: the T of the claim, which some processes change their rate with."""

    length_s: float
    at_most_s: float


Draw = Callable[[float, Span, np.random.Generator], Stretches]
"""A path over (0, length_s) where something new begins at this rate per second on average."""


@dataclass(frozen=True)
class Process:
    """bunched: whether the assumption of the verdict is broken on the side that makes proofs false."""

    name: str
    draw: Draw
    bunched: bool = False
    daily: bool = False


def poisson(rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    return Stretches.single(_uniform(rate, span.length_s, generator))


def regular(rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    return Stretches.single(np.arange(generator.random(), rate * span.length_s) / rate)


def weibull(shape: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Waiting times of this shape: below 1 they come in bunches, above 1 they keep their distance."""
    count = round(rate * span.length_s)
    waits = generator.weibull(shape, 2 * count + 100)
    mean = float(np.mean(waits))
    time_s = np.cumsum(waits) / mean / rate
    return Stretches.single(time_s[time_s < span.length_s])


def hawkes(children: float, delay_s: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Each event is followed by so many on average, after exponential delays; these are followed too."""
    generation = _uniform(rate, span.length_s, generator)
    every = [generation]
    while generation.size:
        parents = np.repeat(generation, generator.poisson(children, generation.size))
        generation = parents + generator.exponential(delay_s, parents.size)
        every.append(generation)
    return Stretches.single(_within(np.concatenate(every), span))


def neyman_scott(mean: float, within_s: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Bunches of a Poisson number of events, all anywhere within this time."""
    begins = _uniform(rate, span.length_s, generator)
    members = np.repeat(begins, generator.poisson(mean, begins.size))
    return Stretches.single(_within(members + generator.uniform(0, within_s, members.size), span))


def geometric(mean: float, pause_s: float | None, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Bunches of a geometric number of events, with exponential pauses; None: of 2 T on average."""
    begins = _uniform(rate, span.length_s, generator)
    sizes = generator.geometric(1 / mean, begins.size)
    walked = np.cumsum(generator.exponential(pause_s or 2 * span.at_most_s, int(sizes.sum())))
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Stretches.single(_within(np.repeat(begins, sizes) + walked - walked[first], span))


def regimes(times: float, stay: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Two rates, one so many times the other, that change after stay x T on average."""
    stays = generator.exponential(stay * span.at_most_s, 2 * int(span.length_s / (stay * span.at_most_s)) + 100)
    low = 2 * rate / (1 + times)
    ends = np.cumsum(stays)
    work = np.cumsum(stays * np.where(np.arange(stays.size) % 2, low * times, low))
    until = float(np.interp(span.length_s, ends, work))
    return Stretches.single(np.interp(_uniform(1.0, until, generator), np.r_[0, work], np.r_[0, ends]))


def sine(depth: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """A rate that swings by this share of its mean, once a day."""
    time_s = _uniform(rate * (1 + depth), span.length_s, generator)
    kept = generator.random(time_s.size) * (1 + depth) < 1 + depth * np.sin(2 * np.pi * time_s / DAY_S)
    return Stretches.single(time_s[kept])


def storms(length_s: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    """Storms that come by themselves, in which every activation is late."""
    begin_s = _uniform(rate, span.length_s, generator)
    return Stretches(begin_s, begin_s + length_s)


PROCESSES = (
    Process("Poisson", poisson),
    Process("regular, every T", regular),
    Process("Weibull 2", partial(weibull, 2)),
    Process("Weibull 0.5", partial(weibull, 0.5), bunched=True),
    Process("Hawkes .5, 30 s", partial(hawkes, 0.5, 30), bunched=True),
    Process("Hawkes .5, 10 min", partial(hawkes, 0.5, 600), bunched=True),
    Process("Hawkes .8, 1 h", partial(hawkes, 0.8, 3600), bunched=True),
    Process("Neyman-Scott 5 within 1 h", partial(neyman_scott, 5, 3600), bunched=True),
    Process("Neyman-Scott 3 within 10 min", partial(neyman_scott, 3, 600), bunched=True),
    Process("regimes x10, 4 T", partial(regimes, 10, 4), bunched=True),
    Process("regimes x4, 20 T", partial(regimes, 4, 20), bunched=True),
    Process("sine, a day", partial(sine, 1), bunched=True, daily=True),
    Process("storms of 60 s", partial(storms, 60)),
)


def episode_starts(late: Stretches, gap_s: float) -> Floats:
    """Where episodes begin: what is later than all before it by more than the gap."""
    if not late.begin_s.size:
        return late.begin_s
    reached = np.maximum.accumulate(late.end_s)
    return late.begin_s[np.r_[True, late.begin_s[1:] - reached[:-1] > gap_s]]


def rate_for(process: Process, gap_s: float, span: Span, seed: tuple[int, ...]) -> float:
    """The rate per second at which episodes come once per T, over the span; each step draws with the same seed."""
    rate = 1 / span.at_most_s
    for _ in range(STEPS):
        late = process.draw(rate, span, np.random.default_rng(seed))
        rate *= span.length_s / span.at_most_s / max(episode_starts(late, gap_s).size, 1)
    return rate


def runs(process: Process, rate: float, span: Span, count: int, seed: tuple[int, ...]) -> Iterator[Stretches]:
    """So many runs as long as the span, cut from one path, each at another phase of what is regular.

    A run may begin within a storm, which then is late from its first moment on.
    """
    stride = span.length_s + GOLDEN * (DAY_S if process.daily else span.at_most_s)
    path = process.draw(rate, Span(stride * count, span.at_most_s), np.random.default_rng(seed))
    reached = np.maximum.accumulate(path.end_s)
    for number in range(count):
        start = number * stride
        first, last = np.searchsorted(reached, start), np.searchsorted(path.begin_s, start + span.length_s)
        begin_s, end_s = (np.clip(each[first:last] - start, 0, span.length_s) for each in (path.begin_s, path.end_s))
        yield Stretches(begin_s, end_s)


def _uniform(rate: float, length_s: float, generator: np.random.Generator) -> Floats:
    return np.sort(generator.uniform(0, length_s, generator.poisson(rate * length_s)))


def _within(time_s: Floats, span: Span) -> Floats:
    return np.sort(time_s[time_s < span.length_s])
