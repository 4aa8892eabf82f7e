# SPDX-License-Identifier: Apache-2.0
"""A process played to threads on their grids: what each of them shows, second by second.

The events follow from the seed alone, whatever the threads, the period and the steps in which they are played; so a
test can compute them again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Int64Array, Series
from rtproof.simulation import processes
from rtproof.simulation.asked import SECOND_NS, Asked, Process

BODY_NS = np.arange(5_000, 21_000, 1_000, dtype=np.int64)
"""What activations without an event show."""
BODY_SHARE = np.exp(-np.arange(BODY_NS.size) / 3.0)
BODY_SHARE /= BODY_SHARE.sum()


@dataclass(frozen=True)
class Late:
    """Activations of one thread that an event made late, by increasing index."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array


def series_of(asked: Asked) -> tuple[Series, ...]:
    """One for each thread, evenly staggered within the period."""
    period, count = asked.period_ns, len(asked.cpus)
    return tuple(
        Series(
            at, at, cpu, True, asked.keep_samples, period, at * period // count, "simulated", "none", "latency", "ns"
        )
        for at, cpu in enumerate(asked.cpus)
    )


def system_events(process: Process, seconds: int) -> tuple[NDArray[np.float64], Int64Array]:
    """Times in seconds and latencies in nanoseconds of all events of the run, before they fall on threads."""
    generator = np.random.default_rng((process.seed, 0))
    found = processes.events(process.kind, process.events_per_s, seconds, generator)
    return found.time_s, process.tail.draw_ns(found.stretch, generator)


def late_ones(process: Process, asked: Asked, series: tuple[Series, ...]) -> list[Late]:
    """For each thread the activations that were late. An event hits the next activation of a thread picked at random.

    None is later than its period, so that no activation is missed.
    """
    time_s, value = system_events(process, asked.duration_ns // SECOND_NS)
    time_ns = (time_s * SECOND_NS).astype(np.int64)
    thread = np.random.default_rng((process.seed, 1)).integers(len(series), size=time_ns.size)
    value = np.minimum(value, asked.period_ns - 1)
    return [_of_thread(one, time_ns[thread == one.thread], value[thread == one.thread], asked) for one in series]


def _of_thread(series: Series, time_ns: Int64Array, value: Int64Array, asked: Asked) -> Late:
    index = np.maximum(-((series.first_due_ns - time_ns) // series.period_ns), 0)
    inside = index < due_before(series, asked.duration_ns)
    index, value = index[inside], value[inside]
    order = np.lexsort((-value, index))
    index, first = np.unique(index[order], return_index=True)
    return Late(index, series.first_due_ns + index * series.period_ns, value[order][first])


def due_before(series: Series, time_ns: int) -> int:
    """How many activations are due before a time."""
    return max(-((series.first_due_ns - time_ns) // series.period_ns), 0)


@dataclass(frozen=True)
class Stretch:
    """What one thread shows in consecutive seconds. body[s, v]: activations of second s with latency BODY_NS[v]."""

    series: Series
    first_second: int
    body: Int64Array
    late: Late

    @property
    def first_index(self) -> Int64Array:
        """Index of the first activation of each second, and of the one behind the last."""
        edges = range(self.first_second, self.first_second + len(self.body) + 1)
        return np.array([due_before(self.series, second * SECOND_NS) for second in edges], np.int64)

    def until(self, seconds: int) -> "Stretch":
        """Only the first so many seconds of it."""
        end_ns = (self.first_second + seconds) * SECOND_NS
        inside = self.late.due_ns < end_ns
        late = Late(self.late.index[inside], self.late.due_ns[inside], self.late.value[inside])
        return Stretch(self.series, self.first_second, self.body[:seconds], late)

    def obtained(self) -> Int64Array:
        """Activations of each second."""
        return np.diff(self.first_index)

    def most(self) -> Int64Array:
        """The largest latency of each second; 0 where nothing was due."""
        some = self.body > 0
        top = BODY_NS.size - 1 - np.argmax(some[:, ::-1], axis=1)
        most = np.where(some.any(axis=1), BODY_NS[top], 0)
        np.maximum.at(most, self.late.due_ns // SECOND_NS - self.first_second, self.late.value)
        return most

    def total(self) -> Int64Array:
        """The sum of the latencies of each second."""
        total = self.body @ BODY_NS
        np.add.at(total, self.late.due_ns // SECOND_NS - self.first_second, self.late.value)
        return total


def stretch(series: Series, late: Late, first_second: int, seconds: int, generator: np.random.Generator) -> Stretch:
    """The next seconds of a thread; the body is drawn anew for each activation that no event made late."""
    end_ns = (first_second + seconds) * SECOND_NS
    low, high = np.searchsorted(late.due_ns, [first_second * SECOND_NS, end_ns])
    mine = Late(late.index[low:high], late.due_ns[low:high], late.value[low:high])
    empty = Stretch(series, first_second, np.zeros((seconds, BODY_NS.size), np.int64), mine)
    there = np.bincount(mine.due_ns // SECOND_NS - first_second, minlength=seconds)
    body = generator.multinomial(empty.obtained() - there, BODY_SHARE)
    return Stretch(series, first_second, body.astype(np.int64), mine)
