# SPDX-License-Identifier: Apache-2.0
"""Records made of plain numbers for the tests of analysis, and the same numbers counted one by one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rtproof.record import histogram_bins
from rtproof.record.contents import (
    WHOLE_RUN,
    Begin,
    Block,
    ChunkRef,
    End,
    EndReason,
    Fact,
    Int64Array,
    Moment,
    Record,
    Series,
    SeriesTotals,
    Slice,
    SystemFile,
    View,
)

MS = 1_000_000
SECOND = 1_000_000_000
BEGIN = Begin(1, 0, bytes(16), 1_700_000_000 * SECOND, 0, "0.1.0", "x86_64", "6.1.0-rt", "#1 SMP PREEMPT_RT")
SERIES = Series(0, 0, 2, True, True, MS, 0, "timer", "clock_nanosleep", "latency", "ns")


def array(*values: int) -> Int64Array:
    return np.array(values, np.int64)


def block(
    values: Iterable[int], gaps: dict[int, int] | None = None, first_index: int = 0, series: Series = SERIES
) -> Block:
    """A block on the grid; gaps: position and how many activations were missed behind it."""
    places = sorted(gaps or {})
    due_ns = series.first_due_ns + first_index * series.period_ns
    missed = array(*(gaps[at] for at in places)) if gaps else array()
    return Block(series.id, first_index, due_ns, np.array(list(values), np.int64), array(*places), missed)


def record(blocks: Sequence[Block], series: Sequence[Series] = (SERIES,), **parts: Any) -> Record:
    """A record of these blocks that ended as asked, with whatever other parts a test gives it."""
    refs = tuple(ChunkRef(number, 1, b.series, b.first_index, b.values.size) for number, b in enumerate(blocks))

    def read(wanted: tuple[ChunkRef, ...]) -> Iterator[Block]:
        return (blocks[ref.offset] for ref in wanted)

    whole = Record("", 0, BEGIN, (), (), tuple(series), (), {}, {}, (), (), end(blocks), (), refs, read)
    return replace(whole, **parts)


def end(blocks: Sequence[Block], reason: EndReason = EndReason.AS_ASKED, text: str = "") -> End:
    """END a period after the last due time, with totals that are right."""
    totals = [
        SeriesTotals(
            series,
            sum(b.values.size for b in blocks if b.series == series),
            int(sum(b.gap_missed.sum() for b in blocks if b.series == series)),
            0,
        )
        for series in sorted({b.series for b in blocks})
    ]
    last = max((b.first_due_ns + (b.values.size + int(b.gap_missed.sum())) * MS for b in blocks), default=0)
    return End(last, reason, text, tuple(totals))


def fact(key: str, value: object, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> Fact:
    return Fact(0, thread, moment, key, str(value))


def file(path: str, content: str, moment: Moment = Moment.START) -> SystemFile:
    return SystemFile(0, moment, path, 0, False, content.encode())


@dataclass
class Counted:
    """What the record's page says of some activations, counted one by one."""

    observed: list[int] = field(default_factory=list)
    charged: list[int] = field(default_factory=list)
    seconds: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    top: list[tuple[int, int, int]] = field(default_factory=list)
    pairs: int = 0
    products: int = 0
    catch_up: int = 0


def count(series: Series, blocks: Sequence[Block], starts: Sequence[int] = ()) -> Counted:
    """The slow way. starts: due times at which slices begin, across which no pair is counted."""
    counted = Counted()
    for stretch in _stretches(series, blocks, set(starts)):
        for index, due, value, missed in stretch:
            counted.observed.append(value)
            counted.top.append((-value, index, due))
            _second(counted, due, value)
            for j in range(1, missed + 1):
                counted.charged.append(value - j * series.period_ns)
                _second(counted, due + j * series.period_ns, None)
        wakes = [due + value for _, due, value, _ in stretch]
        cycles = [b - a for a, b in pairwise(wakes)]
        counted.pairs += len(cycles)
        counted.products += sum(a[2] * b[2] for a, b in pairwise(stretch))
        counted.catch_up += sum(
            5 * a > 6 * series.period_ns and 5 * b < 4 * series.period_ns for a, b in pairwise(cycles)
        )
    counted.top.sort()
    return counted


def slice_of(series: Series, view: View, values: Sequence[int], dues: Sequence[int], counted: Counted) -> Slice:
    """A SUMMARY chunk as the agent would write it; counted: for its pairs, which view CHARGED has none of."""
    lag = (counted.pairs, counted.products, counted.catch_up) if view is View.OBSERVED else (0, 0, 0)
    places, n = np.unique(histogram_bins.bin_of(np.array(values, np.int64)), return_counts=True)
    squares = sum(v * v for v in values)
    ends = (min(values), max(values)) if values else (0, 0)
    stored = histogram_bins.histogram_bytes(places, n)
    return Slice(series.id, view, min(dues), max(dues), len(values), 0, *ends, sum(values), squares, *lag, stored)


def _stretches(series: Series, blocks: Sequence[Block], starts: set[int]) -> list[list[tuple[int, int, int, int]]]:
    """(index, due, value, missed behind) of every sample, cut at holes and where a slice begins."""
    found: list[list[tuple[int, int, int, int]]] = []
    following = None
    for one in blocks:
        if one.first_index != following or one.first_due_ns in starts:
            found.append([])
        index, due = one.first_index, one.first_due_ns
        gaps = dict(zip(one.gap_position.tolist(), one.gap_missed.tolist(), strict=True))
        for position, value in enumerate(one.values.tolist()):
            missed = gaps.get(position, 0)
            found[-1].append((index, due, value, missed))
            index += 1 + missed
            due += series.period_ns + (missed * series.period_ns if series.by_period else value)
        following = index
    return found


def _second(counted: Counted, due: int, value: int | None) -> None:
    obtained, missed, largest = counted.seconds.get(due // SECOND, (0, 0, 0))
    if value is None:
        counted.seconds[due // SECOND] = (obtained, missed + 1, largest)
    else:
        largest = value if obtained == 0 else max(largest, value)
        counted.seconds[due // SECOND] = (obtained + 1, missed, largest)
