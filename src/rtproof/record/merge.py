# SPDX-License-Identifier: Apache-2.0
"""Chunks that each hold a part, put together: seconds, largest values, counters."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Condition, Conditions, Counter, Deviation, Int64Array, Level, Seconds, Top, many
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
from rtproof.record.levels import Above, Exceeding

EMPTY = np.zeros(0, dtype=np.int64)
NO_COUNTS = Above(EMPTY, EMPTY, EMPTY, EMPTY)
NO_LIST = Exceeding(EMPTY, EMPTY, EMPTY, EMPTY)
SMALLEST = np.iinfo(np.int64).min
TICK_DTYPE = np.dtype([("id", "<u2"), ("value", "<i8")])


Small = TypeVar("Small", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding)
Whole = TypeVar("Whole")


def _each(parts: Iterable[Small], decode: Callable[[list[bytes]], Whole]) -> dict[int, Whole]:
    """What the payloads of each series say together."""
    payloads: dict[int, list[bytes]] = defaultdict(list)
    for part in parts:
        payloads[part.series].append(part.payload)
    return {series: decode(some) for series, some in payloads.items()}


def merge_seconds(parts: Iterable[SeriesSeconds]) -> dict[int, Seconds]:
    """One Seconds per series, by increasing second. Where one occurs twice, counts add, the larger value holds.

    This and the three below: MalformedError if any payload is wrong.
    """
    return {series: _add_seconds(some) for series, some in _each(parts, many.seconds).items()}


def _add_seconds(parts: many.Parts) -> Seconds:
    second, obtained, missed, most = parts
    if second.size and (np.diff(second) <= 0).any():
        order = np.argsort(second, kind="stable")
        second = second[order]
        first = np.flatnonzero(np.diff(second, prepend=-1))
        most = np.maximum.reduceat(np.where(obtained > 0, most, SMALLEST)[order], first)
        second = second[first]
        obtained, missed = (np.add.reduceat(count[order], first) for count in (obtained, missed))
    return Seconds(second, obtained, missed, np.where(obtained > 0, most, 0))


def merge_top(parts: Iterable[SeriesTop]) -> dict[int, Top]:
    """The K largest of each series, largest first, ties: the earlier first."""
    # Only the smallest K is exact over all parts, should they differ.
    return {series: largest(*some) for series, some in _each(parts, many.top).items()}


def merge_above(parts: Iterable[SeriesAbove]) -> dict[int, Above]:
    """The counts above levels of each series."""
    return _each(parts, many.above)


def merge_exceeding(parts: Iterable[SeriesExceeding]) -> dict[int, Exceeding]:
    """The lists of exceedances of each series."""
    return _each(parts, many.exceeding)


def largest(k: int, index: Int64Array, due_ns: Int64Array, value: Int64Array) -> Top:
    """The k largest of some activations; one that is named twice counts once."""
    index, once = np.unique(index, return_index=True)
    due_ns, value = due_ns[once], value[once]
    # ~value falls as value grows and, unlike -value, exists for every value.
    order = np.argsort(~value, kind="stable")[:k]
    return Top(k, index[order], due_ns[order], value[order])


def merge_levels(
    heads: Iterable[SeriesLevel], above: dict[int, Above], exceeding: dict[int, Exceeding]
) -> dict[int, tuple[Level, ...]]:
    """The levels of each series with all that was said of them; what is said of an unknown one is left out."""
    known: dict[int, dict[int, SeriesLevel]] = defaultdict(dict)
    for head in heads:
        known[head.series].setdefault(head.number, head)
    found = {}
    for series, some in known.items():
        counts, listed = above.get(series, NO_COUNTS), exceeding.get(series, NO_LIST)
        found[series] = tuple(_level(some[number], counts, listed) for number in sorted(some))
    return found


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


COLUMNS = tuple(one.name for one in fields(Conditions) if one.name not in ("thread", "deviations"))


def merge_conditions(parts: Iterable[Conditions]) -> dict[int, Conditions]:
    """One Conditions per thread: rows in the order of the file, deviations of the same kind and text added up."""
    of_thread: dict[int, list[Conditions]] = defaultdict(list)
    for part in parts:
        of_thread[part.thread].append(part)
    return {thread: _joined(thread, some) for thread, some in of_thread.items()}


def _joined(thread: int, parts: list[Conditions]) -> Conditions:
    counts: dict[tuple[Condition, str], int] = defaultdict(int)
    for deviation in (one for part in parts for one in part.deviations):
        counts[deviation.kind, deviation.seen] += deviation.count
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    deviations = tuple(Deviation(kind, n, seen) for (kind, seen), n in counts.items())
    return Conditions(thread=thread, deviations=deviations, **columns)


def merge_counters(names: list[CounterName], ticks: list[Tick]) -> tuple[Counter, ...]:
    """Every counter with its readings; readings of a counter without a name are left out."""
    entries = np.frombuffer(b"".join(tick.entries for tick in ticks), dtype=TICK_DTYPE)
    sizes = np.array([len(tick.entries) // TICK_ENTRY.size for tick in ticks], dtype=np.int64)
    times = np.repeat(np.array([tick.time_ns for tick in ticks], dtype=np.int64), sizes)
    return tuple(_counter(name, entries["id"] == name.id, times, entries["value"]) for name in names)


def _counter(name: CounterName, mine: NDArray[np.bool_], times: Int64Array, values: Int64Array) -> Counter:
    return Counter(name.id, name.grows, name.name, name.unit, times[mine], values[mine].astype(np.int64))
