# SPDX-License-Identifier: Apache-2.0
"""Read a record: one walk over the file, then everything but the samples is in memory; samples are read on demand.

Chunks that each hold a part are merged: seconds, largest values, levels, counters. Bytes without a valid meaning become
a Damage in words. The only errors are a file that is no record and a file of a later format.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import NoRecordError, RecordError
from rtproof.record import decoding, encoding
from rtproof.record.activations import AboveCounts, ExceedingLists, largest
from rtproof.record.chunks import (
    CHUNK_HEADER,
    MAJOR,
    MINOR,
    SAMPLES_FIELDS,
    SHORT_COUNT,
    TICK_ENTRY_FIELDS,
    TICK_FIELDS,
    ChunkType,
    FileWindow,
    Frame,
    Hole,
    frame_at,
    garbage_collector_paused,
    missing_sequences,
    places_in_order,
    walk_chunks,
)
from rtproof.record.contents import (
    Begin,
    Block,
    ChunkRef,
    Condition,
    Conditions,
    Counter,
    Damage,
    Deviation,
    End,
    Event,
    Fact,
    Int64Array,
    Level,
    Record,
    Seconds,
    Series,
    SystemFile,
    Top,
)
from rtproof.record.decoding import (
    LIMIT_64,
    CounterName,
    Item,
    NewerFormat,
    SamplesHead,
    SeriesAbove,
    SeriesExceeding,
    SeriesLevel,
    SeriesSeconds,
    SeriesTop,
    Tick,
    decode_gaps,
    decode_payload,
)
from rtproof.record.encoding import Cursor, MalformedError
from rtproof.record.histogram_bins import StoredSlice

EMPTY = np.zeros(0, dtype=np.int64)
NO_COUNTS = AboveCounts(EMPTY, EMPTY, EMPTY, EMPTY)
NO_LIST = ExceedingLists(EMPTY, EMPTY, EMPTY, EMPTY)
SMALLEST = np.iinfo(np.int64).min
TICK_DTYPE = np.dtype([("id", "<u2"), ("value", "<i8")])


Small = TypeVar("Small", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding)
Whole = TypeVar("Whole")


def _decode_by_series(parts: Iterable[Small], decode: Callable[[list[bytes]], Whole]) -> dict[int, Whole]:
    """What the payloads of each series say together."""
    payloads: dict[int, list[bytes]] = defaultdict(list)
    for part in parts:
        payloads[part.series].append(part.payload)
    return {series: decode(some) for series, some in payloads.items()}


def merge_seconds(parts: Iterable[SeriesSeconds]) -> dict[int, Seconds]:
    """One Seconds per series, by increasing second. Where one occurs twice, counts add, the larger value holds.

    This and the three below: MalformedError if any payload is wrong.
    """
    return {series: _add_seconds(some) for series, some in _decode_by_series(parts, decoding.decode_seconds).items()}


def _add_seconds(parts: decoding.SecondsRows) -> Seconds:
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
    return {series: largest(*some) for series, some in _decode_by_series(parts, decoding.decode_top).items()}


def merge_above(parts: Iterable[SeriesAbove]) -> dict[int, AboveCounts]:
    """The counts above levels of each series."""
    return _decode_by_series(parts, decoding.decode_above)


def merge_exceeding(parts: Iterable[SeriesExceeding]) -> dict[int, ExceedingLists]:
    """The lists of exceedances of each series."""
    return _decode_by_series(parts, decoding.decode_exceeding)


def merge_levels(
    heads: Iterable[SeriesLevel], above: dict[int, AboveCounts], exceeding: dict[int, ExceedingLists]
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


def _level(head: SeriesLevel, counts: AboveCounts, listed: ExceedingLists) -> Level:
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


CONDITION_COLUMNS = tuple(one.name for one in fields(Conditions) if one.name not in ("thread", "deviations"))


def merge_conditions(parts: Iterable[Conditions]) -> dict[int, Conditions]:
    """One Conditions per thread: rows in the order of the file, deviations of the same kind and text added up."""
    of_thread: dict[int, list[Conditions]] = defaultdict(list)
    for part in parts:
        of_thread[part.thread].append(part)
    return {thread: _join_conditions(thread, some) for thread, some in of_thread.items()}


def _join_conditions(thread: int, parts: list[Conditions]) -> Conditions:
    counts: dict[tuple[Condition, str], int] = defaultdict(int)
    for deviation in (one for part in parts for one in part.deviations):
        counts[deviation.kind, deviation.seen] += deviation.count
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in CONDITION_COLUMNS}
    deviations = tuple(Deviation(kind, n, seen) for (kind, seen), n in counts.items())
    return Conditions(thread=thread, deviations=deviations, **columns)


def merge_counters(names: list[CounterName], ticks: list[Tick]) -> tuple[Counter, ...]:
    """Every counter with its readings; readings of a counter without a name are left out."""
    entries = np.frombuffer(b"".join(tick.entries for tick in ticks), dtype=TICK_DTYPE)
    sizes = np.array([len(tick.entries) // TICK_ENTRY_FIELDS.size for tick in ticks], dtype=np.int64)
    times = np.repeat(np.array([tick.time_ns for tick in ticks], dtype=np.int64), sizes)
    return tuple(_counter(name, entries["id"] == name.id, times, entries["value"]) for name in names)


def _counter(name: CounterName, mine: NDArray[np.bool_], times: Int64Array, values: Int64Array) -> Counter:
    return Counter(name.id, name.grows, name.name, name.unit, times[mine], values[mine].astype(np.int64))


@dataclass(frozen=True)
class BlockReader:
    """Reads blocks of one file. Can be pickled, so that worker processes get it with their share of the refs.

    Each checksum is verified again. It costs less than a tenth of the time, and without it a file that was written
    over since the scan, or a medium that fails now, would give wrong samples.
    """

    path: str

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        """The samples of some chunks, in the order of the refs; RecordError if the file has changed."""
        with open_regular(self.path) as file:
            window = FileWindow(file.fileno(), os.fstat(file.fileno()).st_size)
            for ref in refs:
                frame = frame_at(window, ref.offset - CHUNK_HEADER.size)
                if frame is None or len(frame.payload) != ref.length:
                    raise RecordError(f"{self.path} has changed since it was opened: samples at {ref.offset} are gone")
                yield decode_block(frame.payload)


def decode_block(payload: memoryview) -> Block:
    """The samples in a payload that the scan has checked."""
    cursor = Cursor(payload)
    series, _, first_index, first_due_ns = cursor.take(SAMPLES_FIELDS)
    values, at = encoding.decode_array(payload, cursor.at)
    position, missed, _ = decode_gaps(payload, at, values.size)
    return Block(series, first_index, first_due_ns, values, position, missed)


def open_regular(path: str) -> FileIO:
    """Open a file to read; RecordError with the reason if that is not possible, or if it is not a file."""
    place = Path(path)
    try:
        # Asked before it is opened: opening a pipe would wait for a writer.
        found = place.stat()
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            raise RecordError(f"{path} is not a file")
        # A file that the kernel makes up as it is read, such as /proc/kmsg, has no size, and reading it may wait.
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            raise RecordError(f"{path} is empty")
        return place.open("rb", buffering=0)
    except OSError as problem:
        raise RecordError(f"cannot read {path}: {problem.strerror}") from None


SmallItem = SeriesSeconds | SeriesTop | SeriesAbove | SeriesExceeding
Kind = TypeVar("Kind", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding, SeriesLevel, StoredSlice)
SmallKind = TypeVar("SmallKind", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding)
Merged = TypeVar("Merged")

SMALL_TYPES: dict[int, type[SmallItem]] = {
    ChunkType.SECONDS: SeriesSeconds,
    ChunkType.TOP: SeriesTop,
    ChunkType.ABOVE: SeriesAbove,
    ChunkType.EXCEEDED: SeriesExceeding,
}
"""Chunks of which there are many: they are decoded together once all are found."""
TICK_TYPE = int(ChunkType.TICK)
"""There is one a second; it is read without the detours over a cursor and over what names the fields of a tuple."""
_new = tuple.__new__


class ScannedChunk(NamedTuple):
    """A valid chunk and what it says; ``item`` is None if its type is unknown or its payload is wrong."""

    offset: int
    length: int
    sequence: int
    item: Item | None


@garbage_collector_paused()
def open_record(path: str | os.PathLike[str]) -> Record:
    """Read a record; RecordError if it is none or has a newer format. One that still grows is one that was cut off."""
    name = os.fspath(path)
    damage: list[Damage] = []
    with open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        found = _scan(name, FileWindow(file.fileno(), size), damage)
    begin = _begin(name, size, found)
    kept = _keep_in_order(found, damage)
    if not kept or not isinstance(kept[-1].item, End):
        damage.append(Damage(size, 0, f"the record was cut off: there is no END behind its {len(kept)} chunks"))
    return _assemble(name, size, begin, kept, damage)


def _scan(name: str, window: FileWindow, damage: list[Damage]) -> list[ScannedChunk]:
    found = []
    for part in walk_chunks(window):
        if isinstance(part, Hole):
            damage.append(_hole(part, window.size))
        else:
            found.append(_read_chunk(name, part, damage))
    return found


def _hole(hole: Hole, size: int) -> Damage:
    end = hole.offset + hole.length
    what = f"the last {hole.length} bytes are no whole" if end == size else f"{hole.length} bytes are no valid"
    return Damage(hole.offset, hole.length, f"at offset {hole.offset}, {what} chunk and were passed over")


def _read_chunk(name: str, frame: Frame, damage: list[Damage]) -> ScannedChunk:
    offset, kind, sequence, payload = frame
    length = len(payload)
    if kind == TICK_TYPE and length >= TICK_FIELDS.size:
        raw = bytes(payload)
        time_ns, count = TICK_FIELDS.unpack_from(raw)
        if length == TICK_FIELDS.size + count * TICK_ENTRY_FIELDS.size:
            return _new(ScannedChunk, (offset, length, sequence, _new(Tick, (time_ns, raw[TICK_FIELDS.size :]))))
    item: Item | None = None
    small = SMALL_TYPES.get(kind)
    if small and length >= SHORT_COUNT.size:
        return ScannedChunk(offset, length, sequence, small(payload[0] | payload[1] << 8, bytes(payload)))
    try:
        item = decode_payload(kind, payload)
    except MalformedError as problem:
        damage.append(_not_used(kind, offset, length, problem))
    if isinstance(item, NewerFormat):
        theirs, ours = f"{item.major}.{item.minor}", f"{MAJOR}.{MINOR}"
        raise RecordError(f"{name} has format {theirs}, and this version reads up to {ours}: use a newer rtproof")
    return ScannedChunk(offset, length, sequence, item)


def _not_used(kind: int, offset: int, length: int, problem: MalformedError) -> Damage:
    sentence = f"the {ChunkType(kind).name} chunk at offset {offset} was not used: {problem}"
    return Damage(offset, CHUNK_HEADER.size + length, sentence)


def _begin(name: str, size: int, found: list[ScannedChunk]) -> Begin:
    for chunk in found:
        if isinstance(chunk.item, Begin):
            return chunk.item
    if not size:
        raise RecordError(f"{name} is empty")
    raise NoRecordError(f"{name} is not a record: it has no valid BEGIN chunk")


def _keep_in_order(found: list[ScannedChunk], damage: list[Damage]) -> list[ScannedChunk]:
    places = places_in_order([chunk.sequence for chunk in found])
    kept = [found[place] for place in places]
    for place in sorted(set(range(len(found))).difference(places)) if len(places) < len(found) else ():
        chunk = found[place]
        sentence = f"chunk {chunk.sequence} at offset {chunk.offset} stands out of order and was not used"
        damage.append(Damage(chunk.offset, CHUNK_HEADER.size + chunk.length, sentence))
    for place, first, last in missing_sequences([chunk.sequence for chunk in kept]):
        gone = f"chunk {first} is" if first == last else f"chunks {first} to {last} are"
        damage.append(Damage(kept[place].offset, 0, f"{gone} gone before offset {kept[place].offset}"))
    return kept


def _assemble(name: str, size: int, begin: Begin, kept: list[ScannedChunk], damage: list[Damage]) -> Record:
    last = kept[-1].item
    ticks = [chunk.item for chunk in kept if type(chunk.item) is Tick]
    kept = [chunk for chunk in kept if type(chunk.item) is not Tick]
    items: dict[type, list[Any]] = defaultdict(list)
    for chunk in kept:
        items[type(chunk.item)].append(chunk.item)
    series = _series(kept, begin, damage)
    refs = _sample_refs(kept, series, damage)
    _tell_unknown(kept, series, damage)

    def of_known(kind: type[Kind]) -> list[Kind]:
        return [item for item in items[kind] if item.series in series]

    def together(merge: Callable[[list[SmallKind]], Merged], kind: type[SmallKind]) -> Merged:
        try:
            return merge(of_known(kind))
        except MalformedError:
            right = [one.item for one in kept if isinstance(one.item, kind) and _is_valid_alone(one, one.item, damage)]
            return merge([item for item in right if item.series in series])

    return Record(
        path=name,
        size=size,
        begin=begin,
        facts=tuple(items[Fact]),
        files=tuple(items[SystemFile]),
        series=tuple(series.values()),
        slices=tuple(of_known(StoredSlice)),
        seconds=together(merge_seconds, SeriesSeconds),
        top=together(merge_top, SeriesTop),
        counters=merge_counters(items[CounterName], ticks),
        events=tuple(items[Event]),
        end=last if isinstance(last, End) else None,
        damage=tuple(sorted(damage, key=lambda one: one.offset)),
        chunk_refs=refs,
        read_blocks=BlockReader(name),
        conditions=merge_conditions(items[Conditions]),
        levels=merge_levels(
            of_known(SeriesLevel), together(merge_above, SeriesAbove), together(merge_exceeding, SeriesExceeding)
        ),
    )


def _is_valid_alone(chunk: ScannedChunk, item: SmallItem, damage: list[Damage]) -> bool:
    """Whether a small chunk alone is right; if not, it is damage."""
    kind = next(kind for kind, small in SMALL_TYPES.items() if isinstance(item, small))
    try:
        decode_payload(kind, memoryview(item.payload))
    except MalformedError as problem:
        damage.append(_not_used(kind, chunk.offset, chunk.length, problem))
        return False
    return True


def _series(kept: list[ScannedChunk], begin: Begin, damage: list[Damage]) -> dict[int, Series]:
    """Series by number, in a record of 1.0 with the flags that later ones have.

    A second one with the same number would give the samples another meaning.
    """
    series: dict[int, Series] = {}
    for chunk in kept:
        if isinstance(chunk.item, Series) and series.setdefault(chunk.item.id, chunk.item) != chunk.item:
            sentence = f"series {chunk.item.id} is described twice; the one at offset {chunk.offset} was not used"
            damage.append(Damage(chunk.offset, CHUNK_HEADER.size + chunk.length, sentence))
    return series if begin.minor else {number: _flagged(one) for number, one in series.items()}


def _flagged(series: Series) -> Series:
    """A series of 1.0, whose names alone say what it is."""
    external = not series.on_grid and bool({"gpio", "timerlat"} & {series.probe, series.method})
    return replace(series, external=external, chained=external, loop=series.method == "loop")


def _sample_refs(kept: list[ScannedChunk], series: dict[int, Series], damage: list[Damage]) -> tuple[ChunkRef, ...]:
    """Blocks of samples that go forward, each series for itself, and lie on its grid."""
    refs = []
    following: dict[int, int] = defaultdict(int)
    for chunk in kept:
        head = chunk.item
        if not isinstance(head, SamplesHead) or head.series not in series:
            continue
        if head.first_index < following[head.series] or not _on_grid(head, series[head.series]):
            sentence = f"the samples at offset {chunk.offset} contradict what stands before them and were not used"
            damage.append(Damage(chunk.offset, CHUNK_HEADER.size + chunk.length, sentence))
            continue
        following[head.series] = head.next_index
        refs.append(
            ChunkRef(chunk.offset + CHUNK_HEADER.size, chunk.length, head.series, head.first_index, head.samples)
        )
    return tuple(refs)


def _on_grid(head: SamplesHead, series: Series) -> bool:
    """Whether a block's due time follows from its index, and its last one is still a 64-bit number."""
    due_ns = series.first_due_ns + head.first_index * series.period_ns
    end_ns = series.first_due_ns + head.next_index * series.period_ns
    return not series.on_grid or (head.first_due_ns == due_ns and end_ns < LIMIT_64)


def _tell_unknown(kept: list[ScannedChunk], series: dict[int, Series], damage: list[Damage]) -> None:
    told = set(series)
    for chunk in kept:
        number = getattr(chunk.item, "series", None)
        if number is not None and number not in told:
            told.add(number)
            sentence = f"series {number} is nowhere described and was not used (first at offset {chunk.offset})"
            damage.append(Damage(chunk.offset, CHUNK_HEADER.size + chunk.length, sentence, number))
