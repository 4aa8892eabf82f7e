# SPDX-License-Identifier: Apache-2.0
"""Activations as arrays, and what an agent writes about them: slices, seconds, levels and lists above the limits.

docs/record-format.md describes the chunks from SUMMARY and SECONDS to LEVEL and EXCEEDED.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array, Seconds, Series, Slice, Top, View

SECOND_NS = 1_000_000_000
LARGEST_VALUE = (1 << 63) - 1
CLOSE_BINS = 1 << 16
SLICE_SHARE = 32
"""A slice ends when it is this part of the run before it,"""
SLICE_MOST_NS = 600 * SECOND_NS
"""or this long; always at a checkpoint."""


@dataclass(frozen=True)
class Activations:
    """Activations that ran, in order; ``missed``: how many due times directly behind each had none."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    missed: Int64Array

    def part(self, start: int, stop: int) -> "Activations":
        return self.where(slice(start, stop))

    def where(self, which: slice | NDArray[np.bool_]) -> "Activations":
        return Activations(self.index[which], self.due_ns[which], self.value[which], self.missed[which])

    def then(self, later: "Activations") -> "Activations":
        return join_activations([self, later])


NO_ACTIVATIONS = Activations(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


def join_activations(parts: list[Activations]) -> Activations:
    """Activations in several pieces, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    return Activations(
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.due_ns for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.missed for part in parts]),
    )


def number_activations(series: Series, index: int, due_ns: int, value: Int64Array, missed: Int64Array) -> Activations:
    """Number consecutive activations and give them their due times; the first has the index and due time given."""
    skipped = np.cumsum(missed) - missed
    steps = np.arange(value.size) + skipped
    if series.by_period:
        return Activations(index + steps, due_ns + steps * series.period_ns, value, missed)
    due = due_ns + np.cumsum(value + series.period_ns) - (value + series.period_ns)
    return Activations(index + steps, due, value, missed)


def missed_activations(series: Series, some: Activations) -> tuple[Int64Array, Int64Array]:
    """Due time and lateness of each missed activation: number j behind one with latency v is v - j * period late."""
    before = np.repeat(np.cumsum(some.missed) - some.missed, some.missed)
    number = np.arange(1, before.size + 1) - before
    after_ns = number * series.period_ns
    return np.repeat(some.due_ns, some.missed) + after_ns, np.repeat(some.value, some.missed) - after_ns


def slice_ends(checkpoints: int, before: int, checkpoint_ns: int) -> bool:
    """Whether a slice that began behind ``before`` checkpoints ends with this one, which is that many's last."""
    length = checkpoints - before
    return SLICE_SHARE * length >= before or length * checkpoint_ns >= SLICE_MOST_NS


def slices_of_views(series: Series, some: Activations) -> list[Slice]:
    """Both views of a stretch, each only if it holds an activation."""
    pairs = max(some.value.size - 1, 0)
    products = exact_dot(some.value[1:], some.value[:-1])
    observed = _slice(series, View.OBSERVED, some.due_ns, some.value, (pairs, products, catch_up_pairs(series, some)))
    charged = _slice(series, View.CHARGED, *missed_activations(series, some), (0, 0, 0))
    return [part for part in (observed, charged) if part.count]


def _slice(series: Series, view: View, due_ns: Int64Array, value: Int64Array, lag: tuple[int, int, int]) -> Slice:
    pairs, products, catch_up = lag
    places, counts = _counted(histogram_bins.bin_of(value))
    return Slice(
        series=series.id,
        view=view,
        first_due_ns=int(due_ns[0]) if value.size else 0,
        last_due_ns=int(due_ns[-1]) if value.size else 0,
        count=value.size,
        lost=0,
        min=int(value.min()) if value.size else 0,
        max=int(value.max()) if value.size else 0,
        sum=int(value.sum()),
        sum_squares=exact_dot(value, value),
        pairs=pairs,
        sum_products=products,
        catch_up_pairs=catch_up,
        bins=places,
        bin_counts=counts,
    )


def _counted(places: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Distinct bins and how often each comes; without sorting where they lie close together, as they usually do."""
    low = int(places.min()) if places.size else 0
    if not places.size or int(places.max()) - low > CLOSE_BINS:
        distinct, counts = np.unique(places, return_counts=True)
        return distinct, counts.astype(np.int64)
    dense = np.bincount(places - low)
    at = np.flatnonzero(dense)
    return at + low, dense[at].astype(np.int64)


def exact_dot(a: Int64Array, b: Int64Array) -> int:
    """Sum of products, in integers without a limit where 64 bits could overflow."""
    if not a.size:
        return 0
    reach = max(abs(int(a.min())), abs(int(a.max()))) * max(abs(int(b.min())), abs(int(b.max())))
    if reach * a.size <= LARGEST_VALUE:
        return int(np.dot(a, b))
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def catch_up_pairs(series: Series, some: Activations) -> int:
    """Cycles longer than 1.2 periods that one shorter than 0.8 follows."""
    cycle = np.diff(some.due_ns + some.value)
    long, short = 5 * cycle > 6 * series.period_ns, 5 * cycle < 4 * series.period_ns
    return int(np.count_nonzero(long[:-1] & short[1:]))


def seconds_of(series: Series, some: Activations) -> Seconds:
    """Per-second numbers from the first second to the last that anything was due in."""
    ran = some.due_ns // SECOND_NS
    gone = missed_activations(series, some)[0] // SECOND_NS
    both = np.concatenate((ran, gone))
    first, end = int(both.min()), int(both.max()) + 1
    most = np.full(end - first, np.iinfo(np.int64).min)
    np.maximum.at(most, ran - first, some.value)
    obtained = np.bincount(ran - first, minlength=end - first)
    missed = np.bincount(gone - first, minlength=end - first)
    return Seconds(np.arange(first, end), obtained, missed, np.where(obtained > 0, most, 0))


LEARN_NS = 60 * SECOND_NS
MOST_LEVELS = 16
"""Levels that a series can have."""
LONGEST_LIST = 65_536
"""Exceedances of a limit that are kept one by one."""
LEARNED_SHARES = (1_000, 100)
"""Shares of the first minute that are to lie above the learned levels, in millionths."""
LEAST_ABOVE = 5
"""So many of the first minute's values have to be above a level for it to be learned."""


@dataclass(frozen=True)
class LevelHead:
    """A level without what is above it. share: of the values it was learned from, in millionths; 0: a limit."""

    number: int
    value: int
    since_ns: int
    share: int = 0
    taught: int = 0


@dataclass(frozen=True)
class AboveCounts:
    """Counts of the seconds that have any, by increasing second and level; arrays of equal length."""

    second: Int64Array
    level: Int64Array
    ran: Int64Array
    missed: Int64Array


@dataclass(frozen=True)
class ExceedingLists:
    """Activations in the lists of limits. lists: bit l is set where it is in that of level l; ended: which are full."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    lists: Int64Array
    ended: int = 0

    def part(self, start: int, stop: int) -> "ExceedingLists":
        """Some of them; only the last part tells what is full."""
        where = slice(start, stop)
        ended = self.ended if stop >= self.value.size else 0
        return ExceedingLists(self.index[where], self.due_ns[where], self.value[where], self.lists[where], ended)


def limit_heads(series: Series, limits_ns: tuple[int, ...]) -> list[LevelHead]:
    """Heads of the user's limits, which count from the first due time on."""
    return [LevelHead(number, limit, series.first_due_ns) for number, limit in enumerate(limits_ns)]


@dataclass
class LevelLearner:
    """Learns levels from the activations of the first minute, given in pieces."""

    until_ns: int
    places: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    done: bool = False

    def learn(self, some: Activations, first: int) -> list[LevelHead]:
        """The levels, numbered from ``first`` on, once an activation is due a minute after the first."""
        if self.done:
            return []
        early = int(np.searchsorted(some.due_ns, self.until_ns))
        places = np.concatenate((np.repeat(self.places, self.counts), histogram_bins.bin_of(some.value[:early])))
        self.places, self.counts = np.unique(places, return_counts=True)
        if early == some.due_ns.size:
            return []
        self.done = True
        return self._levels(first, int(some.due_ns[early]))

    def _levels(self, first: int, since_ns: int) -> list[LevelHead]:
        total, upto = int(self.counts.sum()), np.cumsum(self.counts)
        found: list[LevelHead] = []
        for share in LEARNED_SHARES:
            beyond = total * share // 1_000_000
            if beyond < LEAST_ABOVE:
                break
            place = self.places[np.searchsorted(upto, total - beyond)]
            found.append(LevelHead(first + len(found), int(histogram_bins.bin_edges(place)[1]), since_ns, share, total))
        return found


def count_above(series: Series, some: Activations, levels: list[LevelHead]) -> AboveCounts:
    """Counts per second of what is above each level since it counts."""
    lowest = min((level.value for level in levels), default=0)
    high = some.where((some.value > lowest) if levels else np.zeros(some.value.size, np.bool_))
    gone_ns, late = missed_activations(series, high)
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
    return AboveCounts(both // MOST_LEVELS, both % MOST_LEVELS, ran.astype(np.int64), missed.astype(np.int64))


def _key(due_ns: Int64Array, level: LevelHead) -> Int64Array:
    """A number for a second and a level, which increases as the chunk has them."""
    key: Int64Array = due_ns // SECOND_NS * MOST_LEVELS + level.number
    return key


def list_exceeding(some: Activations, limits_of: list[LevelHead], listed: list[int]) -> ExceedingLists:
    """What goes into the lists, each as long as it is; ``listed``: how many each has, which is brought up to date."""
    lists, ended = np.zeros(some.value.size, np.int64), 0
    for level in limits_of:
        room = LONGEST_LIST - listed[level.number]
        at = np.flatnonzero(some.value > level.value)[:room]
        lists[at] |= 1 << level.number
        listed[level.number] += at.size
        ended |= (at.size == room > 0) << level.number
    kept = some.where(lists > 0)
    return ExceedingLists(kept.index, kept.due_ns, kept.value, lists[lists > 0], ended)


def largest(k: int, index: Int64Array, due_ns: Int64Array, value: Int64Array) -> Top:
    """The k largest of some activations; one that is named twice counts once."""
    index, once = np.unique(index, return_index=True)
    due_ns, value = due_ns[once], value[once]
    # ~value falls as value grows and, unlike -value, exists for every value.
    order = np.argsort(~value, kind="stable")[:k]
    return Top(k, index[order], due_ns[order], value[order])
