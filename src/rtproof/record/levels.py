# SPDX-License-Identifier: Apache-2.0
"""What an agent says about activations above limits and learned levels (docs/record-format.md, LEVEL to EXCEEDED)."""

from dataclasses import dataclass, field

import numpy as np

from rtproof.record import Int64Array, Series, bins
from rtproof.record.slicing import SECOND_NS, Activations, missed_ones

LEARN_NS = 60 * SECOND_NS
MOST = 16
"""Levels that a series can have."""
LISTED_MOST = 65_536
"""Exceedances of a limit that are kept one by one."""
LEARNED = (1_000, 100)
"""Shares of the first minute that are to lie above the learned levels, in millionths."""
LEAST_ABOVE = 5
"""So many of the first minute's values have to be above a level for it to be learned."""


@dataclass(frozen=True)
class Head:
    """A level without what is above it. share: of the values it was learned from, in millionths; 0: a limit."""

    number: int
    value: int
    since_ns: int
    share: int = 0
    taught: int = 0


@dataclass(frozen=True)
class Above:
    """Counts of the seconds that have any, by increasing second and level; arrays of equal length."""

    second: Int64Array
    level: Int64Array
    ran: Int64Array
    missed: Int64Array


@dataclass(frozen=True)
class Exceeding:
    """Activations in the lists of limits. lists: bit l is set where it is in that of level l; ended: which are full."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    lists: Int64Array
    ended: int = 0

    def part(self, start: int, stop: int) -> "Exceeding":
        """Some of them; only the last part tells what is full."""
        where = slice(start, stop)
        ended = self.ended if stop >= self.value.size else 0
        return Exceeding(self.index[where], self.due_ns[where], self.value[where], self.lists[where], ended)


def limits(series: Series, limits_ns: tuple[int, ...]) -> list[Head]:
    """Heads of the user's limits, which count from the first due time on."""
    return [Head(number, limit, series.first_due_ns) for number, limit in enumerate(limits_ns)]


@dataclass
class Learner:
    """Learns levels from the activations of the first minute, given in pieces."""

    until_ns: int
    places: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    done: bool = False

    def learn(self, some: Activations, first: int) -> list[Head]:
        """The levels, numbered from ``first`` on, once an activation is due a minute after the first."""
        if self.done:
            return []
        early = int(np.searchsorted(some.due_ns, self.until_ns))
        places = np.concatenate((np.repeat(self.places, self.counts), bins.index(some.value[:early])))
        self.places, self.counts = np.unique(places, return_counts=True)
        if early == some.due_ns.size:
            return []
        self.done = True
        return self._levels(first, int(some.due_ns[early]))

    def _levels(self, first: int, since_ns: int) -> list[Head]:
        total, upto = int(self.counts.sum()), np.cumsum(self.counts)
        found: list[Head] = []
        for share in LEARNED:
            beyond = total * share // 1_000_000
            if beyond < LEAST_ABOVE:
                break
            place = self.places[np.searchsorted(upto, total - beyond)]
            found.append(Head(first + len(found), int(bins.edges(place)[1]), since_ns, share, total))
        return found


def above(series: Series, some: Activations, levels: list[Head]) -> Above:
    """Counts per second of what is above each level since it counts."""
    lowest = min((level.value for level in levels), default=0)
    high = some.where((some.value > lowest) if levels else np.zeros(some.value.size, np.bool_))
    gone_ns, late = missed_ones(series, high)
    keys = [(high.due_ns, high.value), (gone_ns, late)]
    counts = [
        np.concatenate([_key(due_ns[(value > level.value) & (due_ns >= level.since_ns)], level) for level in levels])
        if levels
        else np.zeros(0, np.int64)
        for due_ns, value in keys
    ]
    both, place = np.unique(np.concatenate(counts), return_inverse=True)
    ran = np.bincount(place[: counts[0].size], minlength=both.size)
    missed = np.bincount(place[counts[0].size :], minlength=both.size)
    return Above(both // MOST, both % MOST, ran.astype(np.int64), missed.astype(np.int64))


def _key(due_ns: Int64Array, level: Head) -> Int64Array:
    """A number for a second and a level, which increases as the chunk has them."""
    key: Int64Array = due_ns // SECOND_NS * MOST + level.number
    return key


def exceeding(some: Activations, limits_of: list[Head], listed: list[int]) -> Exceeding:
    """What goes into the lists, each as long as it is; ``listed``: how many each has, which is brought up to date."""
    lists, ended = np.zeros(some.value.size, np.int64), 0
    for level in limits_of:
        room = LISTED_MOST - listed[level.number]
        at = np.flatnonzero(some.value > level.value)[:room]
        lists[at] |= 1 << level.number
        listed[level.number] += at.size
        ended |= (at.size == room > 0) << level.number
    kept = some.where(lists > 0)
    return Exceeding(kept.index, kept.due_ns, kept.value, lists[lists > 0], ended)
