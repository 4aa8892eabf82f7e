# SPDX-License-Identifier: Apache-2.0
"""Opens a record: one walk over the file, after which everything but the samples is in memory.

Bytes that say nothing valid become a Damage in words. Only a file that is no record or has a later format is an error.
"""

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from rtproof.errors import NoRecordError, RecordError
from rtproof.record import Begin, ChunkRef, Conditions, Damage, End, Event, Fact, Record, Series, SystemFile
from rtproof.record.blocks import BlockReader, open_regular
from rtproof.record.framing import HEADER, ChunkType, Frame, Hole, Window, no_search_for_garbage, walk
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
from rtproof.record.layouts import MAJOR, MINOR, SHORT_COUNT, TICK, TICK_ENTRY
from rtproof.record.merge import (
    merge_above,
    merge_conditions,
    merge_counters,
    merge_exceeding,
    merge_levels,
    merge_seconds,
    merge_top,
)
from rtproof.record.order import in_order, missing
from rtproof.record.payloads import LIMIT_64, decode
from rtproof.record.stored import StoredSlice
from rtproof.record.wire import MalformedError

Small = SeriesSeconds | SeriesTop | SeriesAbove | SeriesExceeding
Kind = TypeVar("Kind", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding, SeriesLevel, StoredSlice)
SmallKind = TypeVar("SmallKind", SeriesSeconds, SeriesTop, SeriesAbove, SeriesExceeding)
Merged = TypeVar("Merged")

SMALL: dict[int, type[Small]] = {
    ChunkType.SECONDS: SeriesSeconds,
    ChunkType.TOP: SeriesTop,
    ChunkType.ABOVE: SeriesAbove,
    ChunkType.EXCEEDED: SeriesExceeding,
}
"""Chunks of which there are many: they are decoded together once all are found."""
TICK_TYPE = int(ChunkType.TICK)
"""There is one a second; it is read without the detours over a cursor and over what names the fields of a tuple."""
_new = tuple.__new__


class Found(NamedTuple):
    """A valid chunk and what it says; ``item`` is None if its type is unknown or its payload is wrong."""

    offset: int
    length: int
    sequence: int
    item: Item | None


@no_search_for_garbage()
def open_record(path: str | os.PathLike[str]) -> Record:
    """Read a record; RecordError if it is none or has a newer format. One that still grows is one that was cut off."""
    name = os.fspath(path)
    damage: list[Damage] = []
    with open_regular(name) as file:
        size = os.fstat(file.fileno()).st_size
        found = _scan(name, Window(file.fileno(), size), damage)
    begin = _begin(name, size, found)
    kept = _keep_in_order(found, damage)
    if not kept or not isinstance(kept[-1].item, End):
        damage.append(Damage(size, 0, f"the record was cut off: there is no END behind its {len(kept)} chunks"))
    return _assemble(name, size, begin, kept, damage)


def _scan(name: str, window: Window, damage: list[Damage]) -> list[Found]:
    found = []
    for part in walk(window):
        if isinstance(part, Hole):
            damage.append(_hole(part, window.size))
        else:
            found.append(_read(name, part, damage))
    return found


def _hole(hole: Hole, size: int) -> Damage:
    end = hole.offset + hole.length
    what = f"the last {hole.length} bytes are no whole" if end == size else f"{hole.length} bytes are no valid"
    return Damage(hole.offset, hole.length, f"at offset {hole.offset}, {what} chunk and were passed over")


def _read(name: str, frame: Frame, damage: list[Damage]) -> Found:
    offset, kind, sequence, payload = frame
    length = len(payload)
    if kind == TICK_TYPE and length >= TICK.size:
        raw = bytes(payload)
        time_ns, count = TICK.unpack_from(raw)
        if length == TICK.size + count * TICK_ENTRY.size:
            return _new(Found, (offset, length, sequence, _new(Tick, (time_ns, raw[TICK.size :]))))
    item: Item | None = None
    small = SMALL.get(kind)
    if small and length >= SHORT_COUNT.size:
        return Found(offset, length, sequence, small(payload[0] | payload[1] << 8, bytes(payload)))
    try:
        item = decode(kind, payload)
    except MalformedError as problem:
        damage.append(_not_used(kind, offset, length, problem))
    if isinstance(item, Newer):
        theirs, ours = f"{item.major}.{item.minor}", f"{MAJOR}.{MINOR}"
        raise RecordError(f"{name} has format {theirs}, and this version reads up to {ours}: use a newer rtproof")
    return Found(offset, length, sequence, item)


def _not_used(kind: int, offset: int, length: int, problem: MalformedError) -> Damage:
    sentence = f"the {ChunkType(kind).name} chunk at offset {offset} was not used: {problem}"
    return Damage(offset, HEADER.size + length, sentence)


def _begin(name: str, size: int, found: list[Found]) -> Begin:
    for chunk in found:
        if isinstance(chunk.item, Begin):
            return chunk.item
    if not size:
        raise RecordError(f"{name} is empty")
    raise NoRecordError(f"{name} is not a record: it has no valid BEGIN chunk")


def _keep_in_order(found: list[Found], damage: list[Damage]) -> list[Found]:
    places = in_order([chunk.sequence for chunk in found])
    kept = [found[place] for place in places]
    for place in sorted(set(range(len(found))).difference(places)) if len(places) < len(found) else ():
        chunk = found[place]
        sentence = f"chunk {chunk.sequence} at offset {chunk.offset} stands out of order and was not used"
        damage.append(Damage(chunk.offset, HEADER.size + chunk.length, sentence))
    for place, first, last in missing([chunk.sequence for chunk in kept]):
        gone = f"chunk {first} is" if first == last else f"chunks {first} to {last} are"
        damage.append(Damage(kept[place].offset, 0, f"{gone} gone before offset {kept[place].offset}"))
    return kept


def _assemble(name: str, size: int, begin: Begin, kept: list[Found], damage: list[Damage]) -> Record:
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
            right = [one.item for one in kept if isinstance(one.item, kind) and _right(one, one.item, damage)]
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


def _right(chunk: Found, item: Small, damage: list[Damage]) -> bool:
    """Whether a small chunk alone is right; if not, it is damage."""
    kind = next(kind for kind, small in SMALL.items() if isinstance(item, small))
    try:
        decode(kind, memoryview(item.payload))
    except MalformedError as problem:
        damage.append(_not_used(kind, chunk.offset, chunk.length, problem))
        return False
    return True


def _series(kept: list[Found], begin: Begin, damage: list[Damage]) -> dict[int, Series]:
    """Series by number, in a record of 1.0 with the flags that later ones have.

    A second one with the same number would give the samples another meaning.
    """
    series: dict[int, Series] = {}
    for chunk in kept:
        if isinstance(chunk.item, Series) and series.setdefault(chunk.item.id, chunk.item) != chunk.item:
            sentence = f"series {chunk.item.id} is described twice; the one at offset {chunk.offset} was not used"
            damage.append(Damage(chunk.offset, HEADER.size + chunk.length, sentence))
    return series if begin.minor else {number: _flagged(one) for number, one in series.items()}


def _flagged(series: Series) -> Series:
    """A series of 1.0, whose names alone say what it is."""
    external = not series.on_grid and bool({"gpio", "timerlat"} & {series.probe, series.method})
    return replace(series, external=external, chained=external, loop=series.method == "loop")


def _sample_refs(kept: list[Found], series: dict[int, Series], damage: list[Damage]) -> tuple[ChunkRef, ...]:
    """Blocks of samples that go forward, each series for itself, and lie on its grid."""
    refs = []
    following: dict[int, int] = defaultdict(int)
    for chunk in kept:
        head = chunk.item
        if not isinstance(head, SamplesHead) or head.series not in series:
            continue
        if head.first_index < following[head.series] or not _on_grid(head, series[head.series]):
            sentence = f"the samples at offset {chunk.offset} contradict what stands before them and were not used"
            damage.append(Damage(chunk.offset, HEADER.size + chunk.length, sentence))
            continue
        following[head.series] = head.next_index
        refs.append(ChunkRef(chunk.offset + HEADER.size, chunk.length, head.series, head.first_index, head.samples))
    return tuple(refs)


def _on_grid(head: SamplesHead, series: Series) -> bool:
    """Whether a block's due time follows from its index, and its last one is still a 64-bit number."""
    due_ns = series.first_due_ns + head.first_index * series.period_ns
    end_ns = series.first_due_ns + head.next_index * series.period_ns
    return not series.on_grid or (head.first_due_ns == due_ns and end_ns < LIMIT_64)


def _tell_unknown(kept: list[Found], series: dict[int, Series], damage: list[Damage]) -> None:
    told = set(series)
    for chunk in kept:
        number = getattr(chunk.item, "series", None)
        if number is not None and number not in told:
            told.add(number)
            sentence = f"series {number} is nowhere described and was not used (first at offset {chunk.offset})"
            damage.append(Damage(chunk.offset, HEADER.size + chunk.length, sentence, number))
