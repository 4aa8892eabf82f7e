# SPDX-License-Identifier: Apache-2.0
"""Activations as arrays, and what an agent writes about them: slices, seconds, levels and lists of exceedances.

docs/record-format.md describes the chunks that hold these: SUMMARY, SECONDS, TOP, LEVEL, ABOVE and EXCEEDED.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array, Level, Seconds, Series, Slice, Top, View

SECOND_NS = 1_000_000_000
TOLD_APART_NS = SECOND_NS // 20
"""Whoever watches a run is told of late times less than this apart as one stretch (the agent's OVER_APART_NS)."""
LARGEST_VALUE = (1 << 63) - 1
CLOSE_BINS = 1 << 16
SLICE_SHARE = 32
"""A slice ends at a checkpoint once it lasts one 32nd of the run before the slice, ..."""
SLICE_MOST_NS = 600 * SECOND_NS
"""... or once it lasts this long."""


class Activations(msgspec.Struct, frozen=True):
    """Activations that ran, in order, as arrays of equal length.

    ``index``: the number of each activation. ``due_ns``: its due time. ``value``: its latency.
    ``missed``: how many activations directly after it were missed.
    """

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    missed: Int64Array

    def late_stretches(self, limit_ns: int, period_ns: int) -> list[tuple[int, int, tuple[int, int, int]]]:
        """Of each late stretch the second, the largest latency, and its first and last late time with its count.

        The agent joins late times that are less than ``TOLD_APART_NS`` apart in the same way.
        """
        late = self.value > limit_ns
        due, value, missed = self.due_ns[late], self.value[late], self.missed[late]
        if not due.size:
            return []
        end, second = due + value - limit_ns, due // SECOND_NS
        count = 1 + np.minimum(missed, (value - limit_ns - 1) // max(period_ns, 1))
        apart = (due[1:] - end[:-1] >= TOLD_APART_NS) | (np.diff(second) > 0)
        first = np.concatenate(([0], np.flatnonzero(apart) + 1))
        largest, reach, counted = (
            how.reduceat(each, first) for how, each in ((np.maximum, value), (np.maximum, end), (np.add, count))
        )
        columns = (each.tolist() for each in (second[first], largest, due[first], reach, counted))
        return [(at, worst, (begin, last, n)) for at, worst, begin, last, n in zip(*columns, strict=True)]

    def part(self, start: int, stop: int) -> "Activations":
        return self.where(slice(start, stop))

    def where(self, which: slice | NDArray[np.bool_]) -> "Activations":
        return Activations(self.index[which], self.due_ns[which], self.value[which], self.missed[which])

    def then(self, later: "Activations") -> "Activations":
        return join_activations([self, later])


NO_ACTIVATIONS = Activations(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


def join_activations(parts: list[Activations]) -> Activations:
    """Join one or more pieces, which must be in order, into one ``Activations``."""
    if len(parts) == 1:
        return parts[0]
    return Activations(
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.due_ns for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.missed for part in parts]),
    )


def number_activations(series: Series, index: int, due_ns: int, value: Int64Array, missed: Int64Array) -> Activations:
    """Give consecutive activations their indices and due times.

    The first activation has the given index and due time. ``value`` and ``missed`` are arrays of equal length.
    """
    skipped = np.cumsum(missed) - missed
    steps = np.arange(value.size) + skipped
    if series.by_period:
        return Activations(index + steps, due_ns + steps * series.period_ns, value, missed)
    due = due_ns + np.cumsum(value + series.period_ns) - (value + series.period_ns)
    return Activations(index + steps, due, value, missed)


def missed_activations(series: Series, some: Activations) -> tuple[Int64Array, Int64Array]:
    """Due times and lateness of the missed activations, as two arrays in nanoseconds.

    The j-th missed activation after one with latency v is v - j * period late.
    """
    before = np.repeat(np.cumsum(some.missed) - some.missed, some.missed)
    number = np.arange(1, before.size + 1) - before
    after_ns = number * series.period_ns
    return np.repeat(some.due_ns, some.missed) + after_ns, np.repeat(some.value, some.missed) - after_ns


def slices_of_views(series: Series, some: Activations) -> list[Slice]:
    """The slices of both views of some activations. A view without an activation has no slice."""
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
        stored=histogram_bins.histogram_bytes(places, counts),
    )


def _counted(places: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The distinct bins, and how often each occurs. Bins that lie close together, as usual, need no sorting."""
    low = int(places.min()) if places.size else 0
    if not places.size or int(places.max()) - low > CLOSE_BINS:
        distinct, counts = np.unique(places, return_counts=True)
        return distinct, counts.astype(np.int64)
    dense = np.bincount(places - low)
    at = np.flatnonzero(dense)
    return at + low, dense[at].astype(np.int64)


DIGIT = 21
AT_ONCE = 1 << 20


def exact_dot(x: Int64Array, y: Int64Array) -> int:
    """The sum of x[i] * y[i], exact for integers of any size, which plain sums of 64 bits are not."""
    parts = (slice(at, at + AT_ONCE) for at in range(0, x.size, AT_ONCE))
    return sum(
        int(np.dot(a, b)) << (i + j) for part in parts for i, a in digits_of(x[part]) for j, b in digits_of(y[part])
    )


def digits_of(x: Int64Array) -> list[tuple[int, Int64Array]]:
    """The digits of each number, and the power of two that each digit counts. The highest digit carries the sign."""
    digits, shift = [], 0
    while x.max() >= 1 << DIGIT or x.min() < -1 << DIGIT:
        digits.append((shift, x & ((1 << DIGIT) - 1)))
        x, shift = x >> DIGIT, shift + DIGIT
    return [*digits, (shift, x)]


def catch_up_pairs(series: Series, some: Activations) -> int:
    """How many cycles longer than 1.2 periods are followed by a cycle shorter than 0.8 periods."""
    cycle = np.diff(some.due_ns + some.value)
    long, short = 5 * cycle > 6 * series.period_ns, 5 * cycle < 4 * series.period_ns
    return int(np.count_nonzero(long[:-1] & short[1:]))


def seconds_of(series: Series, some: Activations) -> Seconds:
    """The numbers of each second, from the first second in which an activation was due to the last."""
    ran = some.due_ns // SECOND_NS
    gone = missed_activations(series, some)[0] // SECOND_NS
    both = np.concatenate((ran, gone))
    first, end = int(both.min()), int(both.max()) + 1
    most = np.full(end - first, np.iinfo(np.int64).min)
    np.maximum.at(most, ran - first, some.value)
    obtained = np.bincount(ran - first, minlength=end - first)
    missed = np.bincount(gone - first, minlength=end - first)
    return Seconds(np.arange(first, end), obtained, missed, np.where(obtained > 0, most, 0))


MOST_LEVELS = 16
"""Largest number of levels in a series."""
LONGEST_LIST = 65_536
"""Largest number of exceedances of one limit that are kept one by one."""


class AboveCounts(msgspec.Struct, frozen=True):
    """How many activations of a second were above a level, as arrays of equal length, sorted by second and level.

    A second and level without such an activation has no entry. ``ran``: activations that ran. ``missed``: missed ones.
    """

    second: Int64Array
    level: Int64Array
    ran: Int64Array
    missed: Int64Array


class ExceedingLists(msgspec.Struct, frozen=True):
    """Activations above the limits, as arrays of equal length.

    ``lists``: bit l is set if the activation is in the list of level l. ``ended``: bit l is set if that list is full.
    """

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    lists: Int64Array
    ended: int = 0

    def part(self, start: int, stop: int) -> "ExceedingLists":
        """The entries from start to stop. Only the last part says which lists are full."""
        where = slice(start, stop)
        ended = self.ended if stop >= self.value.size else 0
        return ExceedingLists(self.index[where], self.due_ns[where], self.value[where], self.lists[where], ended)


def count_above(series: Series, some: Activations, levels: list[Level]) -> AboveCounts:
    """How many activations of each second were above each level. A level counts from its ``since_ns`` on."""
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


def _key(due_ns: Int64Array, level: Level) -> Int64Array:
    """One number for each due time's second and the level. These numbers increase in the order of an ABOVE chunk."""
    key: Int64Array = due_ns // SECOND_NS * MOST_LEVELS + level.number
    return key


def list_exceeding(some: Activations, limits_of: list[Level], listed: list[int]) -> ExceedingLists:
    """The activations that go into the lists of the limits, until each list is full.

    ``listed``: the length of each list so far. This function updates it.
    """
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
    """The k largest activations. An activation that is given twice counts once."""
    index, once = np.unique(index, return_index=True)
    due_ns, value = due_ns[once], value[once]
    # Sorting ~value sorts from large to small. Unlike -value, ~value cannot overflow.
    order = np.argsort(~value, kind="stable")[:k]
    return Top(k, index[order], due_ns[order], value[order])
