# SPDX-License-Identifier: Apache-2.0
"""Payloads of chunks into data, one function per type. What cannot be is a MalformedError."""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

import numpy as np

from rtproof.record import (
    Begin,
    Condition,
    Conditions,
    Deviation,
    End,
    EndReason,
    Event,
    Fact,
    Int64Array,
    Moment,
    Series,
    SeriesTotals,
    SystemFile,
    View,
    layouts,
    many,
    packed,
)
from rtproof.record.framing import ChunkType
from rtproof.record.items import (
    CounterName,
    Item,
    Newer,
    SamplesHead,
    SeriesAbove,
    SeriesExceeding,
    SeriesLevel,
    SeriesSeconds,
    SeriesTop,
    Tick,
)
from rtproof.record.levels import MOST as MOST_LEVELS
from rtproof.record.stored import StoredSlice
from rtproof.record.wire import Cursor, MalformedError, leb128_check, leb128_decode

LIMIT_64 = 1 << 63
ROW_NUMBERS = 9
"""Numbers in a row of CONDITIONS."""
ROW_LARGEST = 1 << 40
"""No number of such a row comes near it: 34 years in ms, 12 days of delay in us."""
MS_NS, US_NS = 1_000_000, 1_000
MILLION = 1_000_000
NO_GAPS = 2 * packed.encode(())
"""What nearly every block of samples ends with, recognised as it stands: a record has tens of thousands of them."""
NONE = np.zeros(0, dtype=np.int64)

Member = TypeVar("Member", bound=Enum)


def decode(kind: int, payload: memoryview) -> Item | None:
    """What a chunk says; None if its type is unknown."""
    function = DECODERS.get(kind)
    if function is None:
        return None
    cursor = Cursor(payload)
    item = function(cursor)
    if not isinstance(item, Newer):
        cursor.finish()
    return item


def _member(kind: type[Member], value: int) -> Member:
    try:
        return kind(value)
    except ValueError:
        raise MalformedError(f"{value} is no {kind.__name__}") from None


def _equal_length(what: str, *arrays: Int64Array) -> None:
    if [array.size for array in arrays] != [arrays[0].size] * len(arrays):
        raise MalformedError(f"the arrays of {what} differ in length")


def _begin(cursor: Cursor) -> Begin | Newer:
    major, minor, run_id, realtime, monotonic = cursor.take(layouts.BEGIN)
    if major > layouts.MAJOR:
        return Newer(major, minor)
    if major < layouts.MAJOR:
        raise MalformedError(f"there never was a major version {major}")
    texts = [cursor.text() for _ in range(4)]
    return Begin(major, minor, run_id, realtime, monotonic, *texts)


def _fact(cursor: Cursor) -> Fact:
    time_ns, thread, moment = cursor.take(layouts.FACT)
    return Fact(time_ns, thread, _member(Moment, moment), cursor.text(), cursor.text())


def _file(cursor: Cursor) -> SystemFile:
    time_ns, moment, cut, errno = cursor.take(layouts.FILE)
    path = cursor.text()
    (length,) = cursor.take(layouts.LONG_COUNT)
    return SystemFile(time_ns, _member(Moment, moment), path, errno, cut == 1, cursor.raw(length))


def _series(cursor: Cursor) -> Series:
    number, thread, cpu, flags, period_ns, first_due_ns = cursor.take(layouts.SERIES)
    if period_ns < 0:
        raise MalformedError(f"a period of {period_ns} ns is impossible")
    probe, method, field, unit = (cursor.text() for _ in range(4))
    on_grid, has_samples = bool(flags & layouts.ON_GRID), bool(flags & layouts.HAS_SAMPLES)
    external, loop = bool(flags & layouts.EXTERNAL), bool(flags & layouts.LOOP)
    if on_grid and external:
        raise MalformedError("due times on the grid cannot come from outside")
    return Series(
        number, thread, cpu, on_grid, has_samples, period_ns, first_due_ns, probe, method, field, unit, external, loop
    )


def gaps(data: memoryview | bytes, at: int, count: int) -> tuple[Int64Array, Int64Array, int]:
    """Positions and sizes of the gaps between so many samples, and the offset behind them."""
    if data[at : at + len(NO_GAPS)] == NO_GAPS:
        return NONE, NONE, at + len(NO_GAPS)
    position, at = packed.decode(data, at)
    missed, at = packed.decode(data, at)
    _equal_length("gaps", position, missed)
    if position.size:
        increasing = (position[1:] > position[:-1]).all()
        if not increasing or position[0] < 0 or position[-1] >= count or missed.min() < 1:
            raise MalformedError("its gaps are out of order or empty")
        if int(missed.max()) > LIMIT_64 // position.size:
            raise MalformedError("its gaps are larger than any run")
    return position, missed, at


def _samples(cursor: Cursor) -> SamplesHead:
    series, _, first_index, first_due_ns = cursor.take(layouts.SAMPLES)
    head = packed.layout(cursor.data, cursor.at)
    if head.exceptions:
        packed.check_exceptions(cursor.data, head)
    _, missed, cursor.at = gaps(cursor.data, head.end, head.n)
    next_index = first_index + head.n + (int(missed.sum()) if missed.size else 0)
    if next_index >= LIMIT_64 or not head.n:
        raise MalformedError(f"{head.n} samples from the activation {first_index} on are impossible")
    return SamplesHead(series, first_index, first_due_ns, head.n, next_index)


def _summary(cursor: Cursor) -> StoredSlice:
    fields = cursor.take(layouts.SUMMARY)
    series, view, _, first_due_ns, last_due_ns, count, lost, least, most, total = fields[:10]
    squares_low, squares_high, pairs, products_low, products_high, catch_up_pairs = fields[10:]
    (bins,) = cursor.take(layouts.LONG_COUNT)
    histogram = cursor.raw(len(cursor.data) - cursor.at)
    leb128_check(histogram, 2 * bins)
    if products_high >= LIMIT_64:
        products_high -= 1 << 64
    return StoredSlice.of(
        histogram,
        series=series,
        view=_member(View, view),
        first_due_ns=first_due_ns,
        last_due_ns=last_due_ns,
        count=count,
        lost=lost,
        min=least,
        max=most,
        sum=total,
        sum_squares=squares_high << 64 | squares_low,
        pairs=pairs,
        sum_products=(products_high << 64) + products_low,
        catch_up_pairs=catch_up_pairs,
    )


def _seconds(cursor: Cursor) -> SeriesSeconds:
    many.seconds([bytes(cursor.data)])
    return SeriesSeconds(*_whole(cursor))


def _top(cursor: Cursor) -> SeriesTop:
    many.top([bytes(cursor.data)])
    return SeriesTop(*_whole(cursor))


def _above(cursor: Cursor) -> SeriesAbove:
    many.above([bytes(cursor.data)])
    return SeriesAbove(*_whole(cursor))


def _exceeded(cursor: Cursor) -> SeriesExceeding:
    many.exceeding([bytes(cursor.data)])
    return SeriesExceeding(*_whole(cursor))


def _whole(cursor: Cursor) -> tuple[int, bytes]:
    """The series that a payload begins with, and all of the payload."""
    (series,) = cursor.take(layouts.SHORT_COUNT)
    cursor.at = len(cursor.data)
    return series, bytes(cursor.data)


def _level(cursor: Cursor) -> SeriesLevel:
    series, number, kind, value, since_ns, share, taught = cursor.take(layouts.LEVEL)
    if kind > 1 or number >= MOST_LEVELS or share > MILLION:
        raise MalformedError(f"a level of kind {kind} with number {number} and share {share} is impossible")
    return SeriesLevel(series, number, kind == 1, value, since_ns, share, taught)


def _conditions(cursor: Cursor) -> Conditions:
    thread, deviations, rows = cursor.take(layouts.CONDITIONS)
    seen = tuple(_deviation(cursor) for _ in range(deviations))
    numbers = leb128_decode(cursor.raw(len(cursor.data) - cursor.at), ROW_NUMBERS * rows)
    if numbers.size and int(numbers.max()) >= ROW_LARGEST:
        raise MalformedError("a number of a row is larger than any run")
    columns = list(numbers.astype(np.int64).reshape(rows, ROW_NUMBERS).T)
    time_ms, noted, elsewhere, checks, policy, priority, affinity, run_delay_us, switches = columns
    if (elsewhere > noted).any() or (np.maximum(policy, priority) > checks).any():
        raise MalformedError("more activations differ than there were")
    time_ns, run_delay_ns = np.cumsum(time_ms) * MS_NS, run_delay_us * US_NS
    counts = (noted, elsewhere, checks, policy, priority, affinity)
    return Conditions(thread, time_ns, *counts, run_delay_ns, switches, seen)


def _deviation(cursor: Cursor) -> Deviation:
    kind, count = cursor.take(layouts.DEVIATION)
    return Deviation(_member(Condition, kind), count, cursor.text())


def _counter(cursor: Cursor) -> CounterName:
    number, kind, _ = cursor.take(layouts.COUNTER)
    if kind > 1:
        raise MalformedError(f"{kind} is no kind of counter")
    return CounterName(number, kind == 0, cursor.text(), cursor.text())


def _tick(cursor: Cursor) -> Tick:
    time_ns, count = cursor.take(layouts.TICK)
    return Tick(time_ns, cursor.raw(count * layouts.TICK_ENTRY.size))


def _event(cursor: Cursor) -> Event:
    time_ns, thread = cursor.take(layouts.EVENT)
    return Event(time_ns, thread, cursor.text(), cursor.text())


def _end(cursor: Cursor) -> End:
    time_ns, reason = cursor.take(layouts.END)
    text = cursor.text()
    (count,) = cursor.take(layouts.SHORT_COUNT)
    totals = tuple(SeriesTotals(*cursor.take(layouts.TOTALS)) for _ in range(count))
    return End(time_ns, _member(EndReason, reason), text, totals)


DECODERS: dict[int, Callable[[Cursor], Item]] = {
    ChunkType.BEGIN: _begin,
    ChunkType.FACT: _fact,
    ChunkType.FILE: _file,
    ChunkType.SERIES: _series,
    ChunkType.SAMPLES: _samples,
    ChunkType.SUMMARY: _summary,
    ChunkType.SECONDS: _seconds,
    ChunkType.TOP: _top,
    ChunkType.COUNTER: _counter,
    ChunkType.TICK: _tick,
    ChunkType.EVENT: _event,
    ChunkType.END: _end,
    ChunkType.LEVEL: _level,
    ChunkType.ABOVE: _above,
    ChunkType.EXCEEDED: _exceeded,
    ChunkType.CONDITIONS: _conditions,
}
