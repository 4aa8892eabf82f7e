# SPDX-License-Identifier: Apache-2.0
"""Chunks that each hold a part, put together: seconds, largest values, counters."""

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Counter, Int64Array, Level, Seconds, Top, packed
from rtproof.record.items import (
    CounterName,
    SeriesAbove,
    SeriesExceeding,
    SeriesLevel,
    SeriesSeconds,
    SeriesTop,
    Tick,
)
from rtproof.record.layouts import TICK_ENTRY
from rtproof.record.levels import MOST as MOST_LEVELS
from rtproof.record.levels import Above, Exceeding
from rtproof.record.wire import leb128_decode

EMPTY = np.zeros(0, dtype=np.int64)
SMALLEST = np.iinfo(np.int64).min
TICK_DTYPE = np.dtype([("id", "<u2"), ("value", "<i8")])


def merge_seconds(parts: Iterable[SeriesSeconds]) -> dict[int, Seconds]:
    """One Seconds per series, by increasing second. Where one occurs twice, counts add, the larger value holds."""
    by_series: dict[int, list[SeriesSeconds]] = defaultdict(list)
    for part in parts:
        by_series[part.series].append(part)
    return {series: _add_seconds(some) for series, some in by_series.items()}


def _add_seconds(parts: list[SeriesSeconds]) -> Seconds:
    second = np.concatenate([np.arange(part.first, part.first + part.max.n) for part in parts])
    obtained = packed.decode_all([(part.data, part.obtained) for part in parts])
    missed = packed.decode_all([(part.data, part.missed) for part in parts])
    most = np.where(obtained > 0, packed.decode_all([(part.data, part.max) for part in parts]), SMALLEST)
    if not second.size:
        return Seconds(second, obtained, missed, most)
    order = np.argsort(second, kind="stable")
    first = np.flatnonzero(np.diff(second[order], prepend=-1))
    most = np.maximum.reduceat(most[order], first)
    obtained = np.add.reduceat(obtained[order], first)
    missed = np.add.reduceat(missed[order], first)
    return Seconds(second[order][first], obtained, missed, np.where(obtained > 0, most, 0))


def merge_top(parts: Iterable[SeriesTop]) -> dict[int, Top]:
    """The K largest of each series, largest first, ties: the earlier first."""
    by_series: dict[int, list[Top]] = defaultdict(list)
    for part in parts:
        by_series[part.series].append(part.top)
    return {series: _largest(some) for series, some in by_series.items()}


def _largest(parts: list[Top]) -> Top:
    # Only the smallest K is exact over all parts, should they differ.
    k = min(part.k for part in parts)
    return largest(
        k,
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.due_ns for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def largest(k: int, index: Int64Array, due_ns: Int64Array, value: Int64Array) -> Top:
    """The k largest of some activations; one that is named twice counts once."""
    index, once = np.unique(index, return_index=True)
    due_ns, value = due_ns[once], value[once]
    # ~value falls as value grows and, unlike -value, exists for every value.
    order = np.argsort(~value, kind="stable")[:k]
    return Top(k, index[order], due_ns[order], value[order])


def merge_levels(
    heads: Iterable[SeriesLevel], above: Iterable[SeriesAbove], exceeding: Iterable[SeriesExceeding]
) -> dict[int, tuple[Level, ...]]:
    """The levels of each series with all that was said of them; what is said of an unknown one is left out."""
    known: dict[int, dict[int, SeriesLevel]] = defaultdict(dict)
    for head in heads:
        known[head.series].setdefault(head.number, head)
    counts: dict[int, list[SeriesAbove]] = defaultdict(list)
    for part in above:
        counts[part.series].append(part)
    lists: dict[int, list[Exceeding]] = defaultdict(list)
    for one in exceeding:
        lists[one.series].append(one.exceeding)
    return {series: _levels(some, _add_above(counts[series]), lists[series]) for series, some in known.items()}


def _levels(heads: dict[int, SeriesLevel], counts: Above, lists: list[Exceeding]) -> tuple[Level, ...]:
    index, due_ns, value, members = (
        np.concatenate([EMPTY, *(getattr(one, name) for one in lists)])
        for name in ("index", "due_ns", "value", "lists")
    )
    listed = Exceeding(index, due_ns, value, members, reduce(or_, (one.ended for one in lists), 0))
    return tuple(_level(head, counts, listed) for _, head in sorted(heads.items()))


def _level(head: SeriesLevel, counts: Above, listed: Exceeding) -> Level:
    mine, own = counts.level == head.number, listed.lists >> head.number & 1 > 0
    return Level(
        number=head.number,
        value=head.value,
        learned=head.learned,
        since_ns=head.since_ns,
        share=head.share / 1_000_000,
        taught=head.taught,
        second=counts.second[mine],
        ran=counts.ran[mine],
        missed=counts.missed[mine],
        index=listed.index[own],
        due_ns=listed.due_ns[own],
        above=listed.value[own],
        list_ended=bool(listed.ended >> head.number & 1),
    )


def _add_above(parts: list[SeriesAbove]) -> Above:
    """All parts by increasing second and level. Each of them begins at its own first second."""
    if not parts:
        return Above(EMPTY, EMPTY, EMPTY, EMPTY)
    numbers = leb128_decode(b"".join(part.numbers for part in parts), 3 * sum(part.entries for part in parts))
    step, ran, missed = np.ascontiguousarray(numbers.reshape(-1, 3).T.astype(np.int64))
    sizes = np.array([part.entries for part in parts], dtype=np.int64)
    seconds, level = np.cumsum(step // MOST_LEVELS), step % MOST_LEVELS
    starts = np.cumsum(sizes) - sizes
    key = (seconds + np.repeat([part.first for part in parts] - seconds[starts], sizes)) * MOST_LEVELS + level
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    ran, missed = (np.add.reduceat(count[order], first) for count in (ran, missed))
    return Above(key[first] // MOST_LEVELS, key[first] % MOST_LEVELS, ran, missed)


def merge_counters(names: list[CounterName], ticks: list[Tick]) -> tuple[Counter, ...]:
    """Every counter with its readings; readings of a counter without a name are left out."""
    entries = np.frombuffer(b"".join(tick.entries for tick in ticks), dtype=TICK_DTYPE)
    sizes = np.array([len(tick.entries) // TICK_ENTRY.size for tick in ticks], dtype=np.int64)
    times = np.repeat(np.array([tick.time_ns for tick in ticks], dtype=np.int64), sizes)
    return tuple(_counter(name, entries["id"] == name.id, times, entries["value"]) for name in names)


def _counter(name: CounterName, mine: NDArray[np.bool_], times: Int64Array, values: Int64Array) -> Counter:
    return Counter(name.id, name.grows, name.name, name.unit, times[mine], values[mine].astype(np.int64))
