# SPDX-License-Identifier: Apache-2.0
"""Read a record: one walk over the file loads everything except the samples, which are read on demand.

Seconds, largest values, levels, conditions and counters lie in many chunks and are merged. Bytes without a valid
meaning become a ``Damage``, which one sentence describes. Only a file that cannot be read, a file that is no record,
or a record of a later format is an error.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import structs

from rtproof.core.bounded import MOST_BYTES, Room
from rtproof.core.errors import NoRecordError, RecordError
from rtproof.record import compiled_scanner, decoding, encoding
from rtproof.record.activations import SECOND_NS, AboveCounts, ExceedingLists
from rtproof.record.chunks import (
    CHUNK_HEADER,
    MAJOR,
    MINOR,
    SAMPLES_FIELDS,
    SHORT_COUNT,
    TICK_ENTRY_FIELDS,
    ChunkType,
    FileWindow,
    Frame,
    Hole,
    frame_at,
    missing_sequences,
    places_in_order,
    walk_chunks,
)
from rtproof.record.compiled_scanner import Scanner
from rtproof.record.contents import (
    NONE,
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
    Level,
    Record,
    Series,
    Slice,
    Snapshot,
    SystemFile,
)
from rtproof.record.decoding import (
    LIMIT_64,
    Item,
    NewerFormatError,
    SeriesPayload,
    Tick,
    decode_gaps,
    decode_payload,
)
from rtproof.record.encoding import Cursor, MalformedError

NO_COUNTS = AboveCounts(NONE, NONE, NONE, NONE)
NO_LIST = ExceedingLists(NONE, NONE, NONE, NONE)
TICK_DTYPE = np.dtype([("id", "<u2"), ("value", "<i8")])


def merge_levels(
    levels: Iterable[Level], above: dict[int, AboveCounts], exceeding: dict[int, ExceedingLists]
) -> dict[int, tuple[Level, ...]]:
    """The levels of each series, with their counts and lists. Counts and lists without a LEVEL chunk are left out."""
    known: dict[int, dict[int, Level]] = defaultdict(dict)
    for level in levels:
        known[level.series].setdefault(level.number, level)
    found = {}
    for series, some in known.items():
        counts, listed = above.get(series, NO_COUNTS), exceeding.get(series, NO_LIST)
        found[series] = tuple(_with_counts(level, counts, listed) for _, level in sorted(some.items()))
    return found


def _with_counts(level: Level, counts: AboveCounts, listed: ExceedingLists) -> Level:
    mine, own = counts.level == level.number, listed.lists >> level.number & 1 > 0
    return structs.replace(
        level,
        second=counts.second[mine],
        ran=counts.ran[mine],
        missed=counts.missed[mine],
        index=listed.index[own],
        due_ns=listed.due_ns[own],
        above=listed.value[own],
        list_ended=bool(listed.ended >> level.number & 1),
    )


CONDITION_COLUMNS = tuple(name for name in Conditions.__struct_fields__ if name not in ("thread", "deviations"))


def merge_conditions(parts: Iterable[Conditions]) -> dict[int, Conditions]:
    """Merge the CONDITIONS of each thread: the rows in the order of the file, equal deviations added up."""
    of_thread: dict[int, list[Conditions]] = defaultdict(list)
    for part in parts:
        of_thread[part.thread].append(part)
    found = {}
    for thread, some in of_thread.items():
        counts: dict[tuple[Condition, str], int] = defaultdict(int)
        for deviation in (one for part in some for one in part.deviations):
            counts[deviation.kind, deviation.seen] += deviation.count
        columns = {name: np.concatenate([getattr(part, name) for part in some]) for name in CONDITION_COLUMNS}
        deviations = tuple(Deviation(kind, n, seen) for (kind, seen), n in counts.items())
        found[thread] = Conditions(thread=thread, deviations=deviations, **columns)
    return found


def merge_counters(named: list[Counter], ticks: list[Tick]) -> tuple[Counter, ...]:
    """Every counter with its readings. Readings of a counter that no chunk names are left out."""
    entries = np.frombuffer(b"".join(tick.entries for tick in ticks), dtype=TICK_DTYPE)
    sizes = np.array([len(tick.entries) // TICK_ENTRY_FIELDS.size for tick in ticks], dtype=np.int64)
    times = np.repeat(np.array([tick.time_ns for tick in ticks], dtype=np.int64), sizes)
    mine = [(one, entries["id"] == one.id) for one in named]
    return tuple(replace(one, time_ns=times[at], value=entries["value"][at].astype(np.int64)) for one, at in mine)


class BlockReader(msgspec.Struct, frozen=True):
    """Reads blocks of samples from one file. A reader can be pickled and sent to worker processes.

    Each checksum is verified again, which costs less than a tenth of the time. Otherwise a file that was overwritten
    after the scan, or a medium that fails now, would give wrong samples.
    """

    path: str

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        """The blocks of samples of the given chunks, in this order. RecordError if the file has changed."""
        with open_regular(self.path) as file:
            window = FileWindow(file.fileno(), os.fstat(file.fileno()).st_size)
            for ref in refs:
                frame = frame_at(window, ref.offset - CHUNK_HEADER.size)
                if frame is None or len(frame.payload) != ref.length:
                    raise RecordError(f"{self.path} has changed since it was opened: samples at {ref.offset} are gone")
                yield decode_block(frame.payload)


def decode_block(payload: memoryview) -> Block:
    """The block of samples in a SAMPLES payload that the scan has checked."""
    cursor = Cursor(payload)
    series, _, first_index, first_due_ns = cursor.take(SAMPLES_FIELDS)
    values, at = encoding.decode_array(payload, cursor.at)
    position, missed, _ = decode_gaps(payload, at, values.size)
    return Block(series, first_index, first_due_ns, values, position, missed)


def open_regular(path: str) -> FileIO:
    """Open a file for reading. RecordError with the reason if it cannot be opened, is empty, or is no file."""
    place = Path(path)
    try:
        # The kind is checked before the file is opened, because opening a pipe waits for a writer.
        found = place.stat()
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            raise RecordError(f"{path} is not a file")
        # The kernel produces files such as /proc/kmsg while they are read. Their size is 0, and reading them may wait.
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            raise RecordError(f"{path} is empty")
        return place.open("rb", buffering=0)
    except OSError as problem:
        raise RecordError(f"cannot read {path}: {problem.strerror}") from None


Kind = TypeVar("Kind", SeriesPayload, Level, Slice, Snapshot)
_new = tuple.__new__


class ScannedChunk(NamedTuple):
    """A valid chunk and its decoded content. ``item`` is None if the type is unknown or the payload is wrong."""

    offset: int
    length: int
    sequence: int
    item: Item | None


def open_record(path: str | os.PathLike[str]) -> Record:
    """Read a record. A record that is still being written counts as cut off.

    RecordError if the file cannot be read, is no record or has a newer format.
    """
    name = os.fspath(path)
    damage: list[Damage] = []
    with open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        found = _scan(name, FileWindow(file.fileno(), size), damage)
        begin = _begin(name, size, found)
        kept = _keep_in_order(found, damage, file.fileno())
    if not kept or not isinstance(kept[-1].item, End):
        _add_damage(damage, Damage(size, 0, f"the record was cut off: there is no END after its {len(kept)} chunks"))
    return _assemble(name, size, begin, kept, damage)


ROWS_FACTOR = 12
"""What a run counts each second may take so many times the record's size: at most 11 in what an agent writes.

Otherwise a day of 64 CPUs could not be read.
"""
CHUNK_BYTES = 400
"""Of memory for each chunk. A day of 64 CPUs at a period of 1 ms has 1.4 million chunks."""
ROW_BYTES = 60
"""For each row of a SECONDS or TOP chunk."""
CONDITIONS_ROW_BYTES = 120
SAMPLED_SECOND_BYTES = 120
"""For each second of a thread's samples. A block of 65,536 equal samples has 88 bytes."""
BYTES_PER_BYTE: dict[int, int] = {ChunkType.ABOVE: 32, ChunkType.EXCEEDED: 32, ChunkType.SNAPSHOT: 6}
"""Bytes of memory for each byte of the payload of other chunks that are kept decoded, by their types."""
MOST_DAMAGE = 100_000
WORTH_BYTES = 4 << 20
"""From so many bytes on, the compiled scanner walks over a record in less time than it takes to load the library."""


def _scan(name: str, window: FileWindow, damage: list[Damage]) -> list[ScannedChunk]:
    library = compiled_scanner.scanner() if window.size >= WORTH_BYTES else None
    found = []
    content, rows = _room(name), _room(name, window.size)
    for part in walk_chunks(window, partial(_frames_of_library, library) if library else None):
        if isinstance(part, Hole):
            at_end = part.offset + part.length == window.size
            what = f"the last {part.length} bytes are no whole" if at_end else f"{part.length} bytes are no valid"
            sentence = f"at offset {part.offset}, {what} chunk and were passed over"
            _add_damage(damage, Damage(part.offset, part.length, sentence))
        else:
            chunk = _read_chunk(name, part, damage)
            room = content if isinstance(chunk.item, SystemFile | Snapshot) else rows
            room.take(_memory_bytes(part, chunk.item))
            found.append(chunk)
    return found


def _room(name: str, size: int = 0) -> Room:
    """For what a record holds beside the samples. size: of the record, for what is known of each second."""
    most_bytes = max(MOST_BYTES, ROWS_FACTOR * size)
    what = f"what it holds beside the samples takes more than {most_bytes >> 20} MiB"
    return Room(most_bytes, f"{name} is damaged or too large: {what}", RecordError)


def _memory_bytes(frame: Frame, item: Item | None) -> int:
    """About what a chunk takes until the record is read."""
    if type(item) is ChunkRef or item is None:
        return CHUNK_BYTES
    if isinstance(item, SystemFile):
        return CHUNK_BYTES + len(item.content)
    if isinstance(item, Conditions):
        return CHUNK_BYTES + CONDITIONS_ROW_BYTES * item.time_ns.size
    if isinstance(item, SeriesPayload) and frame.type in (ChunkType.SECONDS, ChunkType.TOP):
        head = decoding.SECONDS_HEAD if frame.type == ChunkType.SECONDS else decoding.TOP_HEAD
        rows = int.from_bytes(item.payload[head.itemsize : head.itemsize + 4], "little")
        return CHUNK_BYTES + ROW_BYTES * min(rows, encoding.MOST_ELEMENTS)
    return CHUNK_BYTES + BYTES_PER_BYTE.get(frame.type, 1) * len(frame.payload)


def _add_damage(damage: list[Damage], one: Damage) -> None:
    """RecordError if there is too much of it to be told."""
    if len(damage) >= MOST_DAMAGE:
        raise RecordError(f"the record is damaged in more than {MOST_DAMAGE:,} places: nothing can be proven by it")
    damage.append(one)


def _drop(
    damage: list[Damage], chunk: ScannedChunk, sentence: str, *, lost: bool = True, series: int | None = None
) -> None:
    _add_damage(damage, Damage(chunk.offset, CHUNK_HEADER.size + chunk.length, sentence, lost=lost, series=series))


def _frames_of_library(library: Scanner, window: FileWindow, at: int) -> Iterator[Frame]:
    """The next chunks that are in memory, blocks without gaps already checked: see ``chunks.walk_chunks``."""
    start, filled, data = window.here(at)
    new, head = tuple.__new__, CHUNK_HEADER.size
    for place, length, kind, sequence, plain, *block in library.walk(data, at - start, filled - start):
        begin = at - start + place + head
        yield new(Frame, (at + place, kind, sequence, data[begin : begin + length], block if plain else ()))


def _read_chunk(name: str, frame: Frame, damage: list[Damage]) -> ScannedChunk:
    offset, kind, sequence, payload, block = frame
    place, length = offset + CHUNK_HEADER.size, len(payload)
    if block:
        series, index, due_ns, count = block
        ref = ChunkRef(place, length, series, index, count, due_ns, index + count)
        return _new(ScannedChunk, (offset, length, sequence, ref))
    item: Item | None = None
    if kind in decoding.TOGETHER and length >= SHORT_COUNT.size:
        small = SeriesPayload(kind, payload[0] | payload[1] << 8, bytes(payload))
        return ScannedChunk(offset, length, sequence, small)
    try:
        item = decode_payload(kind, payload)
        if isinstance(item, ChunkRef):
            item = structs.replace(item, offset=place)
    except NewerFormatError as newer:
        reads = f"this version reads up to {MAJOR}.{MINOR}: use a newer rtproof"
        raise RecordError(f"{name} has format {newer}, and {reads}") from None
    except MalformedError as problem:
        whole = ScannedChunk(offset, length, sequence, None)
        _drop(damage, whole, f"the {ChunkType(kind).name} chunk at offset {offset} was not used: {problem}")
    return ScannedChunk(offset, length, sequence, item)


def _begin(name: str, size: int, found: list[ScannedChunk]) -> Begin:
    for chunk in found:
        if isinstance(chunk.item, Begin):
            return chunk.item
    if not size:
        raise RecordError(f"{name} is empty")
    raise NoRecordError(f"{name} is not a record: it has no valid BEGIN chunk")


def _keep_in_order(found: list[ScannedChunk], damage: list[Damage], descriptor: int) -> list[ScannedChunk]:
    places = places_in_order([chunk.sequence for chunk in found])
    kept = [found[place] for place in places]
    unused = sorted(set(range(len(found))).difference(places)) if len(places) < len(found) else ()
    of_number = {chunk.sequence: chunk for chunk in kept} if unused else {}
    for place in unused:
        chunk = found[place]
        used = of_number.get(chunk.sequence, chunk)
        one, another = (os.pread(descriptor, CHUNK_HEADER.size + c.length, c.offset) for c in (used, chunk))
        other = one != another
        told = "is there a second time, with other content," if other else "is out of order"
        _drop(damage, chunk, f"chunk {chunk.sequence} at offset {chunk.offset} {told} and was not used", lost=other)
    for place, first, last in missing_sequences([chunk.sequence for chunk in kept]):
        gone = f"chunk {first} is" if first == last else f"chunks {first} to {last} are"
        _add_damage(damage, Damage(kept[place].offset, 0, f"{gone} gone before offset {kept[place].offset}", lost=True))
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
    sampled_ns = sum(each.count * series[each.series].period_ns for each in refs)
    _room(name, size).take(SAMPLED_SECOND_BYTES * sampled_ns // SECOND_NS)
    _tell_unknown(kept, series, damage)

    def of_known(kind: type[Kind]) -> list[Kind]:
        return [item for item in items[kind] if item.series in series]

    def together(kind: ChunkType) -> dict[int, Any]:
        """The joint content of the chunks of each series. Those that are wrong are found one by one."""
        small = [(one, one.item) for one in kept if isinstance(one.item, SeriesPayload) and one.item.kind == kind]
        try:
            return _decode_by_series(kind, (item for _, item in small if item.series in series))
        except MalformedError:
            right = [item for chunk, item in small if _is_valid_alone(chunk, item, damage)]
            return _decode_by_series(kind, (item for item in right if item.series in series))

    return Record(
        path=name,
        size=size,
        begin=begin,
        facts=tuple(items[Fact]),
        files=tuple(items[SystemFile]),
        series=tuple(series.values()),
        slices=tuple(of_known(Slice)),
        seconds=together(ChunkType.SECONDS),
        top=together(ChunkType.TOP),
        counters=merge_counters(items[Counter], ticks),
        events=tuple(items[Event]),
        end=last if isinstance(last, End) else None,
        damage=tuple(sorted(damage, key=lambda one: one.offset)),
        chunk_refs=refs,
        read_blocks=BlockReader(name),
        conditions=merge_conditions(items[Conditions]),
        snapshots=tuple(of_known(Snapshot)),
        levels=merge_levels(of_known(Level), together(ChunkType.ABOVE), together(ChunkType.EXCEEDED)),
    )


def _decode_by_series(kind: int, parts: Iterable[SeriesPayload]) -> dict[int, Any]:
    payloads: dict[int, list[bytes]] = defaultdict(list)
    for part in parts:
        payloads[part.series].append(part.payload)
    return {series: decoding.TOGETHER[kind](some) for series, some in payloads.items()}


def _is_valid_alone(chunk: ScannedChunk, item: SeriesPayload, damage: list[Damage]) -> bool:
    """Whether a small chunk can be decoded on its own. If not, a ``Damage`` is added."""
    try:
        decode_payload(item.kind, memoryview(item.payload))
    except MalformedError as problem:
        _drop(damage, chunk, f"the {ChunkType(item.kind).name} chunk at offset {chunk.offset} was not used: {problem}")
        return False
    return True


def _series(kept: list[ScannedChunk], begin: Begin, damage: list[Damage]) -> dict[int, Series]:
    """The series by their ids. In a record of format 1.0 they get the flags that later formats have.

    If two different chunks describe the same series, the first one counts: the second would change what samples mean.
    A second series of the same field of the same thread is not used either: its samples would count twice.
    """
    series: dict[int, Series] = {}
    of_field: dict[tuple[int, str], int] = {}
    for chunk in kept:
        one = chunk.item
        if not isinstance(one, Series):
            continue
        if series.get(one.id, one) != one:
            sentence = f"series {one.id} is described twice; the one at offset {chunk.offset} was not used"
        elif (first := of_field.setdefault((one.thread, one.field), one.id)) != one.id:
            sentence = f"series {one.id} has the same thread and field as series {first} and was not used"
        else:
            series[one.id] = one
            continue
        _drop(damage, chunk, sentence)
    if not begin.minor:
        # In format 1.0 the flags follow from the names of probe and method.
        for number, one in series.items():
            external = not one.on_grid and bool({"gpio", "timerlat"} & {one.probe, one.method})
            series[number] = replace(one, external=external, chained=external, loop=one.method == "loop")
    return series


def _sample_refs(kept: list[ScannedChunk], series: dict[int, Series], damage: list[Damage]) -> tuple[ChunkRef, ...]:
    """Where the usable blocks of samples lie. In each series, indices must increase and due times must fit the grid."""
    refs = []
    following: dict[int, int] = defaultdict(int)
    for chunk in kept:
        head = chunk.item
        if not isinstance(head, ChunkRef) or head.series not in series:
            continue
        if head.first_index < following[head.series] or not _on_grid(head, series[head.series]):
            what = f"the samples at offset {chunk.offset} contradict what comes before them and were not used"
            _drop(damage, chunk, what)
            continue
        following[head.series] = head.next_index
        refs.append(head)
    return tuple(refs)


def _on_grid(head: ChunkRef, series: Series) -> bool:
    """Whether a block's due time fits its index, and its last due time is still a 64-bit number.

    A series that is not on the grid always passes.
    """
    due_ns = series.first_due_ns + head.first_index * series.period_ns
    end_ns = series.first_due_ns + head.next_index * series.period_ns
    return not series.on_grid or (head.first_due_ns == due_ns and end_ns < LIMIT_64)


def _tell_unknown(kept: list[ScannedChunk], series: dict[int, Series], damage: list[Damage]) -> None:
    told = set(series)
    for chunk in kept:
        number = getattr(chunk.item, "series", None)
        if number is not None and number not in told:
            told.add(number)
            what = f"series {number} is described nowhere and was not used (first at offset {chunk.offset})"
            _drop(damage, chunk, what, series=number)
