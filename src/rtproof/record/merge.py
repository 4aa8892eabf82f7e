# SPDX-License-Identifier: Apache-2.0
"""Chunks that each hold a part, put together: seconds, largest values, counters."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Counter, Int64Array, Seconds, Top, packed
from rtproof.record.items import CounterName, SeriesSeconds, SeriesTop, Tick
from rtproof.record.layouts import TICK_ENTRY

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


def merge_counters(names: list[CounterName], ticks: list[Tick]) -> tuple[Counter, ...]:
    """Every counter with its readings; readings of a counter without a name are left out."""
    entries = np.frombuffer(b"".join(tick.entries for tick in ticks), dtype=TICK_DTYPE)
    sizes = np.array([len(tick.entries) // TICK_ENTRY.size for tick in ticks], dtype=np.int64)
    times = np.repeat(np.array([tick.time_ns for tick in ticks], dtype=np.int64), sizes)
    return tuple(_counter(name, entries["id"] == name.id, times, entries["value"]) for name in names)


def _counter(name: CounterName, mine: NDArray[np.bool_], times: Int64Array, values: Int64Array) -> Counter:
    return Counter(name.id, name.grows, name.name, name.unit, times[mine], values[mine].astype(np.int64))
