# SPDX-License-Identifier: Apache-2.0
"""Decode the payload of a chunk, with one function for each type. MalformedError if a payload is impossible."""

import zlib
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.record import chunks, encoding
from rtproof.record.activations import MOST_LEVELS, AboveCounts, ExceedingLists, largest
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import (
    NONE,
    Begin,
    ChunkRef,
    Condition,
    Conditions,
    Counter,
    Deviation,
    End,
    EndReason,
    Event,
    Fact,
    Int64Array,
    Level,
    Moment,
    Seconds,
    Series,
    SeriesTotals,
    Slice,
    Snapshot,
    SnapshotPages,
    SnapshotReason,
    SystemFile,
    Top,
    View,
)
from rtproof.record.encoding import CONTINUED, ByteArray, Cursor, MalformedError, leb128_check, leb128_decode, unzigzags


class SeriesPayload(NamedTuple):
    """A whole SECONDS, TOP, ABOVE or EXCEEDED payload, still as bytes: all those of a series are decoded together."""

    kind: int
    series: int
    payload: bytes


class Tick(NamedTuple):
    """A TICK chunk. ``entries``: pairs of a counter's id and value, still as bytes, because each second has a TICK."""

    time_ns: int
    entries: bytes


class NewerFormatError(MalformedError):
    """A BEGIN chunk of a later major version, which this reader does not know."""


Item = (
    Begin | Fact | SystemFile | Series | ChunkRef | Slice | SeriesPayload | Level
    | Counter | Tick | Event | End | Conditions | Snapshot
)  # fmt: skip


# Decode all payloads of one type and series together. Each function takes the payloads and returns their joint content.
# MalformedError if any payload is wrong. ``decode_payload``, which takes a single payload, then finds out which one.


SECONDS_HEAD = np.dtype([("series", "<u2"), ("reserved", "<u2"), ("first", "<u4")])
TOP_HEAD = np.dtype([("series", "<u2"), ("k", "<u2")])
ABOVE_HEAD = np.dtype([("series", "<u2"), ("reserved", "<u2"), ("first", "<u4"), ("entries", "<u4")])
EXCEEDED_HEAD = np.dtype([("series", "<u2"), ("ended", "<u2"), ("entries", "<u4")])
LARGEST_INDEX = 1 << 62
LARGEST_COUNT = 1 << 42
"""Larger than the activations of any second, and small enough that a sum over any run fits into 64 bits."""
SMALLEST = np.iinfo(np.int64).min


_Joined = tuple[ByteArray, NDArray[np.void], Int64Array, Int64Array]
"""The bytes of all payloads, the head of each, and where the bytes after each head begin and end."""
_Rows = tuple[NDArray[np.void], NDArray[np.uint64], Int64Array, Int64Array, NDArray[np.bool_]]


def _join_payloads(payloads: Sequence[bytes], head: np.dtype[np.void]) -> _Joined:
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    if (sizes < head.itemsize).any():
        raise MalformedError(f"it ends within its first {head.itemsize} bytes")
    ends = np.cumsum(sizes)
    return data, encoding.fields_at(data, ends - sizes, head), ends - sizes + head.itemsize, ends


def decode_seconds(payloads: Sequence[bytes]) -> Seconds:
    """The SECONDS payloads of one series, sorted by second. MalformedError if any is wrong.

    If a second occurs twice, its counts add up, and the larger of its two maxima stays.
    """
    data, head, at, ends = _join_payloads(payloads, SECONDS_HEAD)
    columns = _packed_columns(data, at, ends)
    n = columns[0].n
    obtained, missed, most = (encoding.decode_array_batch(data, column) for column in columns)
    if n.sum() and min(obtained.min(), missed.min()) < 0:
        raise MalformedError("its seconds have negative counts")
    before = np.cumsum(n) - n
    second = np.repeat(head["first"].astype(np.int64) - before, n) + np.arange(int(n.sum()))
    if second.size and (np.diff(second) <= 0).any():
        order = np.argsort(second, kind="stable")
        second = second[order]
        first = np.flatnonzero(np.diff(second, prepend=-1))
        most = np.maximum.reduceat(np.where(obtained > 0, most, SMALLEST)[order], first)
        second = second[first]
        obtained, missed = (np.add.reduceat(count[order], first) for count in (obtained, missed))
    return Seconds(second, obtained, missed, np.where(obtained > 0, most, 0))


def decode_top(payloads: Sequence[bytes]) -> Top:
    """The TOP payloads of one series: the K largest values, of equal ones the earlier first.

    If chunks state different K, only as many values as the smallest K are certainly the largest of all. MalformedError
    if any is wrong.
    """
    data, head, at, ends = _join_payloads(payloads, TOP_HEAD)
    if not head["k"].all():
        raise MalformedError("its list of the largest values has room for none")
    columns = _packed_columns(data, at, ends)
    index, due_ns, value = (encoding.decode_array_batch(data, column) for column in columns)
    return largest(int(head["k"].min()), index, due_ns, value)


def _packed_columns(data: ByteArray, at: Int64Array, ends: Int64Array) -> list[encoding.ArrayLayout[Int64Array]]:
    """The layouts of the three packed arrays that follow each head. MalformedError unless their lengths are equal."""
    columns = []
    for _ in range(3):
        columns.append(encoding.array_layouts(data, at, ends))
        at = columns[-1].end
    if (at != ends).any() or any((column.n != columns[0].n).any() for column in columns):
        raise MalformedError("the lengths of its arrays do not add up")
    return columns


def _leb128_rows(payloads: Sequence[bytes], kind: np.dtype[np.void], columns: int) -> _Rows:
    """The heads, and the LEB128 numbers of all payloads in columns. Each head says how many rows it has.

    Then where the rows of each payload begin, how many there are, and whether each row follows one of its payload.
    """
    data, head, at, ends = _join_payloads(payloads, kind)
    inside = np.ones(data.size, np.bool_)
    inside[(at - kind.itemsize)[:, None] + np.arange(kind.itemsize)] = False
    raw, sizes, rows = data[inside], ends - at, head["entries"].astype(np.int64)
    complete = np.concatenate(([0], np.cumsum(raw < CONTINUED)))
    ends = np.cumsum(sizes)
    found = complete[ends] - complete[ends - sizes]
    if not rows.all() or (sizes < 1).any() or (found != columns * rows).any() or (raw[ends - 1] >= CONTINUED).any():
        raise MalformedError("it does not have as many numbers as it says")
    numbers = np.ascontiguousarray(leb128_decode(raw.data, int(found.sum())).reshape(-1, columns).T)
    starts = np.cumsum(rows) - rows
    follows = np.ones(numbers.shape[1], np.bool_)
    follows[starts] = False
    return head, numbers, starts, rows, follows


def decode_above(payloads: Sequence[bytes]) -> AboveCounts:
    """The ABOVE payloads of one series, decoded and sorted by second, then by level. MalformedError if any is wrong."""
    head, numbers, starts, sizes, follows = _leb128_rows(payloads, ABOVE_HEAD, 3)
    if int(numbers.max()) >= LARGEST_COUNT:
        raise MalformedError("its counts above levels are impossible")
    step, ran, missed = numbers.astype(np.int64)
    step, level = step // MOST_LEVELS, step % MOST_LEVELS
    ordered = (step > 0) | (np.diff(level, prepend=0) > 0)
    if step[starts].any() or not ordered[follows].all() or not (ran + missed).all():
        raise MalformedError("its counts above levels are out of order or empty")
    since = np.cumsum(step)
    second = since + np.repeat(head["first"].astype(np.int64) - since[starts], sizes)
    if int(second.min()) < 0 or int(second.max()) >= LARGEST_COUNT:
        raise MalformedError("its seconds are later than any run can be")
    key = second * MOST_LEVELS + level
    if (np.diff(key) <= 0).any():
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        key, ran, missed = key[first], *(np.add.reduceat(count[order], first) for count in (ran, missed))
    return AboveCounts(key // MOST_LEVELS, key % MOST_LEVELS, ran, missed)


def decode_exceeding(payloads: Sequence[bytes]) -> ExceedingLists:
    """Decode the EXCEEDED payloads of one series. MalformedError if any is wrong."""
    head, (index, due_ns, value, lists), starts, sizes, follows = _leb128_rows(payloads, EXCEEDED_HEAD, 4)
    if int(index.max()) >= LARGEST_INDEX or int(lists.max()) >= 1 << MOST_LEVELS or not lists.all():
        raise MalformedError("one of its activations is in no list, or in an impossible one")
    steps = index.view(np.int64)
    indices = _sums_from_starts(steps, starts, sizes)
    if not steps[follows].all() or (indices < 0).any():
        raise MalformedError("its activations are out of order")
    ended = int(np.bitwise_or.reduce(head["ended"]))
    return ExceedingLists(
        indices, _sums_from_starts(unzigzags(due_ns), starts, sizes), unzigzags(value), lists.view(np.int64), ended
    )


def _sums_from_starts(steps: Int64Array, starts: Int64Array, sizes: Int64Array) -> Int64Array:
    """Running sums that begin anew at each start."""
    sums = np.cumsum(steps)
    return sums - np.repeat(sums[starts] - steps[starts], sizes)


LIMIT_64 = 1 << 63
LARGEST_TIME_NS = 1 << 61
"""73 years."""
ROW_NUMBERS = 9
"""Numbers in one row of a CONDITIONS chunk."""
ROW_LARGEST = 1 << 40
"""No number of a CONDITIONS row comes near this: it is 34 years in ms, or 12 days of delay in us."""
MS_NS, US_NS = 1_000_000, 1_000
MILLION = 1_000_000
NO_GAPS = 2 * encoding.encode_array(())
"""The two empty arrays that end nearly every block of samples. Comparing these bytes is faster than decoding them."""

Member = TypeVar("Member", bound=Enum)


def decode_payload(kind: int, payload: memoryview) -> Item | None:
    """Decode one payload. None if the chunk's type is unknown; MalformedError if the payload is wrong."""
    if together := TOGETHER.get(kind):
        whole = bytes(payload)
        together([whole])
        return SeriesPayload(kind, int.from_bytes(whole[:2], "little"), whole)
    function = DECODERS.get(kind)
    if function is None:
        return None
    cursor = Cursor(payload)
    item = function(cursor)
    cursor.finish()
    return item


def _member(kind: type[Member], value: int) -> Member:
    try:
        return kind(value)
    except ValueError:
        raise MalformedError(f"{value} is no {kind.__name__}") from None


def _possible_times(*times_ns: int) -> None:
    """MalformedError for a time that no run comes near. The difference of two possible ones fits into 64 bits."""
    for time_ns in times_ns:
        if not -LARGEST_TIME_NS < time_ns < LARGEST_TIME_NS:
            raise MalformedError(f"a time of {time_ns} ns is impossible")


def _begin(cursor: Cursor) -> Begin:
    major, minor, run_id, realtime, monotonic = cursor.take(chunks.BEGIN_FIELDS)
    if major > chunks.MAJOR:
        raise NewerFormatError(f"{major}.{minor}")
    if major < chunks.MAJOR:
        raise MalformedError(f"there is no major version {major}")
    texts = [cursor.text() for _ in range(4)]
    return Begin(major, minor, run_id, realtime, monotonic, *texts)


def _fact(cursor: Cursor) -> Fact:
    time_ns, thread, moment = cursor.take(chunks.FACT_FIELDS)
    _possible_times(time_ns)
    return Fact(time_ns, thread, _member(Moment, moment), cursor.text(), cursor.text())


def _file(cursor: Cursor) -> SystemFile:
    time_ns, moment, cut, errno = cursor.take(chunks.FILE_FIELDS)
    _possible_times(time_ns)
    path = cursor.text()
    (length,) = cursor.take(chunks.LONG_COUNT)
    content = cursor.raw(length)
    if path.endswith(chunks.DEFLATED) and not errno:
        path, content = path.removesuffix(chunks.DEFLATED), _inflated(content)
    return SystemFile(time_ns, _member(Moment, moment), path, errno, cut != 0, content)


def _inflated(content: bytes) -> bytes:
    """What a stream of DEFLATE holds. MalformedError if it is none, or is longer than the agent makes them."""
    unpacked = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        plain = unpacked.decompress(content, chunks.DEFLATED_MOST + 1)
    except zlib.error as error:
        raise MalformedError(f"its content cannot be unpacked: {error}") from None
    if len(plain) > chunks.DEFLATED_MOST:
        raise MalformedError(f"its content is longer than {chunks.DEFLATED_MOST} bytes when it is unpacked")
    if not unpacked.eof or unpacked.unused_data:
        raise MalformedError("its packed content ends in the wrong place")
    return plain


def _series(cursor: Cursor) -> Series:
    number, thread, cpu, flags, period_ns, first_due_ns = cursor.take(chunks.SERIES_FIELDS)
    _possible_times(period_ns, first_due_ns)
    if period_ns < 0:
        raise MalformedError(f"a period of {period_ns} ns is impossible")
    probe, method, field, unit = (cursor.text() for _ in range(4))
    on_grid, has_samples = bool(flags & chunks.SERIES_ON_GRID), bool(flags & chunks.SERIES_HAS_SAMPLES)
    external, loop = bool(flags & chunks.SERIES_EXTERNAL), bool(flags & chunks.SERIES_OF_LOOP)
    if on_grid and external:
        raise MalformedError("due times on the grid cannot come from outside")
    return Series(
        number, thread, cpu, on_grid, has_samples, period_ns, first_due_ns, probe, method, field, unit, external, loop
    )


def decode_gaps(data: memoryview | bytes, at: int, count: int) -> tuple[Int64Array, Int64Array, int]:
    """The positions and sizes of the gaps between ``count`` samples, and the offset after these two arrays.

    MalformedError if the gaps are out of order, empty or impossibly large.
    """
    if data[at : at + len(NO_GAPS)] == NO_GAPS:
        return NONE, NONE, at + len(NO_GAPS)
    position, at = encoding.decode_array(data, at)
    missed, at = encoding.decode_array(data, at)
    if position.size != missed.size:
        raise MalformedError("the arrays of gaps differ in length")
    if position.size:
        increasing = (position[1:] > position[:-1]).all()
        if not increasing or position[0] < 0 or position[-1] >= count or missed.min() < 1:
            raise MalformedError("its gaps are out of order or empty")
        if int(missed.max()) > LIMIT_64 // position.size:
            raise MalformedError("its gaps are larger than any run can be")
    return position, missed, at


def _samples(cursor: Cursor) -> ChunkRef:
    """What is known of the chunk but its place in the file."""
    series, _, first_index, first_due_ns = cursor.take(chunks.SAMPLES_FIELDS)
    _possible_times(first_due_ns)
    head = encoding.array_layout(cursor.data, cursor.at)
    if head.exceptions:
        encoding.check_exceptions(cursor.data, head)
    _, missed, cursor.at = decode_gaps(cursor.data, head.end, head.n)
    next_index = first_index + head.n + (int(missed.sum()) if missed.size else 0)
    if next_index >= LIMIT_64 or not head.n:
        raise MalformedError(f"{head.n} samples from the activation {first_index} on are impossible")
    return ChunkRef(0, len(cursor.data), series, first_index, head.n, first_due_ns, next_index)


def _summary(cursor: Cursor) -> Slice:
    fields = cursor.take(chunks.SUMMARY_FIELDS)
    series, view, _, first_due_ns, last_due_ns, count, lost, least, most, total = fields[:10]
    _possible_times(first_due_ns, last_due_ns)
    squares_low, squares_high, pairs, products_low, products_high, catch_up_pairs = fields[10:]
    (bins,) = cursor.take(chunks.LONG_COUNT)
    histogram = cursor.raw(len(cursor.data) - cursor.at)
    leb128_check(histogram, 2 * bins)
    if products_high >= LIMIT_64:
        products_high -= 1 << 64
    return Slice(
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
        stored=histogram,
    )


TOGETHER: dict[int, Callable[[Sequence[bytes]], Any]] = {
    ChunkType.SECONDS: decode_seconds,
    ChunkType.TOP: decode_top,
    ChunkType.ABOVE: decode_above,
    ChunkType.EXCEEDED: decode_exceeding,
}
"""A record has many chunks of these types. Those of a series are decoded together once all are found."""


def _level(cursor: Cursor) -> Level:
    series, number, kind, value, since_ns, share, taught = cursor.take(chunks.LEVEL_FIELDS)
    _possible_times(since_ns)
    if kind > 1 or number >= MOST_LEVELS or share > MILLION:
        raise MalformedError(f"a level of kind {kind} with number {number} and share {share} is impossible")
    return Level(number, value, kind == 1, since_ns, share / MILLION, taught, series=series)


def _conditions(cursor: Cursor) -> Conditions:
    thread, deviations, rows = cursor.take(chunks.CONDITIONS_FIELDS)
    seen = []
    for _ in range(deviations):
        kind, count = cursor.take(chunks.DEVIATION_FIELDS)
        seen.append(Deviation(_member(Condition, kind), count, cursor.text()))
    numbers = leb128_decode(cursor.raw(len(cursor.data) - cursor.at), ROW_NUMBERS * rows)
    if numbers.size and int(numbers.max()) >= ROW_LARGEST:
        raise MalformedError("a number of a row is larger than in any run")
    columns = list(numbers.astype(np.int64).reshape(rows, ROW_NUMBERS).T)
    time_ms, noted, elsewhere, checks, policy, priority, affinity, run_delay_us, switches = columns
    if (elsewhere > noted).any() or (np.maximum(policy, priority) > checks).any():
        raise MalformedError("it counts more deviations than activations or checks")
    time_ns, run_delay_ns = np.cumsum(time_ms) * MS_NS, run_delay_us * US_NS
    counts = (noted, elsewhere, checks, policy, priority, affinity)
    return Conditions(thread, time_ns, *counts, run_delay_ns, switches, tuple(seen))


def _snapshot(cursor: Cursor) -> Snapshot:
    series, reason, _, index, due_ns, value, from_ns, to_ns, cpus = cursor.take(chunks.SNAPSHOT_FIELDS)
    _possible_times(due_ns, from_ns, to_ns)
    pages = []
    for _ in range(cpus):
        cpu, whole, _, count = cursor.take(chunks.SNAPSHOT_CPU_FIELDS)
        stamps = np.frombuffer(cursor.raw(8 * count), dtype="<u8")
        pages.append(SnapshotPages(cpu, whole == 1, tuple(stamps.tolist())))
    if to_ns < from_ns or index >= LARGEST_INDEX:
        raise MalformedError(f"a window from {from_ns} ns to {to_ns} ns of the activation {index} is impossible")
    if any(one.cpu >= other.cpu for one, other in pairwise(pages)):
        raise MalformedError("its CPUs are out of order")
    return Snapshot(series, _member(SnapshotReason, reason), index, due_ns, value, from_ns, to_ns, tuple(pages))


def _counter(cursor: Cursor) -> Counter:
    number, kind, _ = cursor.take(chunks.COUNTER_FIELDS)
    if kind > 1:
        raise MalformedError(f"{kind} is no kind of counter")
    return Counter(number, kind == 0, cursor.text(), cursor.text(), NONE, NONE)


def _tick(cursor: Cursor) -> Tick:
    time_ns, count = cursor.take(chunks.TICK_FIELDS)
    _possible_times(time_ns)
    return Tick(time_ns, cursor.raw(count * chunks.TICK_ENTRY_FIELDS.size))


def _event(cursor: Cursor) -> Event:
    time_ns, thread = cursor.take(chunks.EVENT_FIELDS)
    _possible_times(time_ns)
    return Event(time_ns, thread, cursor.text(), cursor.text())


def _end(cursor: Cursor) -> End:
    time_ns, reason = cursor.take(chunks.END_FIELDS)
    _possible_times(time_ns)
    text = cursor.text()
    (count,) = cursor.take(chunks.SHORT_COUNT)
    totals = tuple(SeriesTotals(*cursor.take(chunks.TOTALS_FIELDS)) for _ in range(count))
    return End(time_ns, _member(EndReason, reason), text, totals)


DECODERS: dict[int, Callable[[Cursor], Item]] = {
    ChunkType.BEGIN: _begin,
    ChunkType.FACT: _fact,
    ChunkType.FILE: _file,
    ChunkType.SERIES: _series,
    ChunkType.SAMPLES: _samples,
    ChunkType.SUMMARY: _summary,
    ChunkType.COUNTER: _counter,
    ChunkType.TICK: _tick,
    ChunkType.EVENT: _event,
    ChunkType.END: _end,
    ChunkType.LEVEL: _level,
    ChunkType.CONDITIONS: _conditions,
    ChunkType.SNAPSHOT: _snapshot,
}
