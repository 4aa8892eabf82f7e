# SPDX-License-Identifier: Apache-2.0
"""Write records in the agent's format: for tests, benches, simulations and importers.

``RecordWriter`` writes single chunks. ``SeriesWriter`` takes plain arrays of latencies and writes everything that an
agent writes about them at its checkpoints.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike

from rtproof.record import activations, chunks, encoding
from rtproof.record.activations import (
    MOST_LEVELS,
    SLICE_MOST_NS,
    SLICE_SHARE,
    AboveCounts,
    Activations,
    ExceedingLists,
    largest,
)
from rtproof.record.chunks import ChunkType, frame_bytes
from rtproof.record.contents import (
    Begin,
    Block,
    Conditions,
    Counter,
    End,
    Event,
    Fact,
    Int64Array,
    Level,
    Seconds,
    Series,
    SeriesTotals,
    Slice,
    Snapshot,
    SystemFile,
    Top,
)
from rtproof.record.encoding import leb128_encode, text_bytes, zigzags

LOW_HALF = (1 << 64) - 1


class RecordWriter:
    """Appends chunks to a new file, with one method for each chunk type. Tests write any other chunk with ``chunk``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Create the file. FileExistsError if it exists, because no record is ever overwritten."""
        self._file: BinaryIO = Path(path).open("xb", buffering=1 << 20)  # noqa: SIM115 - close() does
        self.sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def flush(self) -> None:
        self._file.flush()

    def chunk(self, kind: int, *parts: bytes) -> None:
        self._file.write(frame_bytes(kind, self.sequence, b"".join(parts)))
        self.sequence += 1

    def _texted(self, kind: ChunkType, fields: Struct, numbers: Sequence[object], *texts: str) -> None:
        self.chunk(kind, fields.pack(*numbers), *map(text_bytes, texts))

    def begin(self, begin: Begin) -> None:
        head = begin.major, begin.minor, begin.run_id, begin.origin_realtime_ns, begin.origin_monotonic_ns
        texts = begin.agent_version, begin.machine, begin.kernel_release, begin.kernel_version
        self._texted(ChunkType.BEGIN, chunks.BEGIN_FIELDS, head, *texts)

    def fact(self, fact: Fact) -> None:
        head = fact.time_ns, fact.thread, fact.moment.value
        self._texted(ChunkType.FACT, chunks.FACT_FIELDS, head, fact.key, fact.value)

    def file(self, file: SystemFile) -> None:
        head = chunks.FILE_FIELDS.pack(file.time_ns, file.moment.value, file.cut, file.errno)
        length = chunks.LONG_COUNT.pack(len(file.content))
        self.chunk(ChunkType.FILE, head, text_bytes(file.path), length, file.content)

    def series(self, series: Series) -> None:
        flags = (
            series.on_grid * chunks.SERIES_ON_GRID
            | series.has_samples * chunks.SERIES_HAS_SAMPLES
            | series.external * chunks.SERIES_EXTERNAL
            | series.loop * chunks.SERIES_OF_LOOP
        )
        head = series.id, series.thread, series.cpu, flags, series.period_ns, series.first_due_ns
        texts = series.probe, series.method, series.field, series.unit
        self._texted(ChunkType.SERIES, chunks.SERIES_FIELDS, head, *texts)

    def samples(self, block: Block) -> None:
        head = chunks.SAMPLES_FIELDS.pack(block.series, 0, block.first_index, block.first_due_ns)
        self._packed(ChunkType.SAMPLES, head, block.values, block.gap_position, block.gap_missed)

    def summary(self, part: Slice) -> None:
        squares, products = part.sum_squares, part.sum_products % (1 << 128)
        head = chunks.SUMMARY_FIELDS.pack(
            part.series, part.view.value, 0, part.first_due_ns, part.last_due_ns, part.count, part.lost,
            part.min, part.max, part.sum, squares & LOW_HALF, squares >> 64,
            part.pairs, products & LOW_HALF, products >> 64, part.catch_up_pairs,
        )  # fmt: skip
        count = chunks.LONG_COUNT.pack(part.bins.size)
        self.chunk(ChunkType.SUMMARY, head, count, part.stored)

    def seconds(self, series: int, seconds: Seconds) -> None:
        """Write a SECONDS chunk. ValueError unless the seconds are consecutive: the chunk names only the first."""
        first = int(seconds.second[0]) if seconds.second.size else 0
        if not np.array_equal(seconds.second, np.arange(first, first + seconds.second.size)):
            raise ValueError("the seconds of a chunk must be consecutive")
        head = chunks.SECONDS_FIELDS.pack(series, 0, first)
        self._packed(ChunkType.SECONDS, head, seconds.obtained, seconds.missed, seconds.max)

    def top(self, series: int, top: Top) -> None:
        self._packed(ChunkType.TOP, chunks.TOP_FIELDS.pack(series, top.k), top.index, top.due_ns, top.value)

    def level(self, level: Level) -> None:
        share = round(level.share * 1_000_000)
        head = level.series, level.number, level.learned, level.value, level.since_ns, share, level.taught
        self.chunk(ChunkType.LEVEL, chunks.LEVEL_FIELDS.pack(*head))

    def above(self, series: int, above: AboveCounts) -> None:
        steps = np.diff(above.second, prepend=above.second[:1])
        numbers = np.stack((steps * MOST_LEVELS + above.level, above.ran, above.missed), axis=1)
        head = chunks.ABOVE_FIELDS.pack(series, 0, int(above.second[0])) + chunks.LONG_COUNT.pack(above.second.size)
        self.chunk(ChunkType.ABOVE, head, leb128_encode(numbers.reshape(-1).astype(np.uint64)))

    def exceeded(self, series: int, some: ExceedingLists) -> None:
        head = chunks.EXCEEDED_FIELDS.pack(series, some.ended)
        numbers = np.stack(
            (np.diff(some.index, prepend=0), zigzags(np.diff(some.due_ns, prepend=0)), zigzags(some.value), some.lists),
            axis=1,
        )
        count = chunks.LONG_COUNT.pack(some.index.size)
        self.chunk(ChunkType.EXCEEDED, head + count, leb128_encode(numbers.reshape(-1).view(np.uint64)))

    def conditions(self, some: Conditions) -> None:
        """Write one CONDITIONS chunk with all rows. Times are rounded down to ms, and run delays to us."""
        deviations = [
            chunks.DEVIATION_FIELDS.pack(one.kind.value, one.count) + text_bytes(one.seen) for one in some.deviations
        ]
        numbers = (
            np.diff(some.time_ns // 1_000_000, prepend=0), some.noted, some.elsewhere, some.checks, some.other_policy,
            some.other_priority, some.other_affinity, some.run_delay_ns // 1_000, some.involuntary_switches,
        )  # fmt: skip
        rows = leb128_encode(np.stack(numbers, axis=1).reshape(-1).astype(np.uint64))
        head = chunks.CONDITIONS_FIELDS.pack(some.thread, len(deviations), some.time_ns.size)
        self.chunk(ChunkType.CONDITIONS, head, *deviations, rows)

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write one SNAPSHOT chunk. The pages that it names are files of the trace."""
        head = chunks.SNAPSHOT_FIELDS.pack(
            snapshot.series, snapshot.reason.value, 0, snapshot.index, snapshot.due_ns, snapshot.value,
            snapshot.from_ns, snapshot.to_ns, len(snapshot.pages),
        )  # fmt: skip
        cpus = [
            chunks.SNAPSHOT_CPU_FIELDS.pack(one.cpu, one.whole, 0, len(one.stamps))
            + np.array(one.stamps, dtype="<u8").tobytes()
            for one in snapshot.pages
        ]
        self.chunk(ChunkType.SNAPSHOT, head, *cpus)

    def counter(self, counter: Counter) -> None:
        """Write the counter's name and unit. ``tick`` writes its readings."""
        head = counter.id, 0 if counter.grows else 1, 0
        self._texted(ChunkType.COUNTER, chunks.COUNTER_FIELDS, head, counter.name, counter.unit)

    def tick(self, time_ns: int, readings: Iterable[tuple[int, int]]) -> None:
        """Write the values of counters at one time, as pairs of counter id and value."""
        entries = [chunks.TICK_ENTRY_FIELDS.pack(number, value) for number, value in readings]
        self.chunk(ChunkType.TICK, chunks.TICK_FIELDS.pack(time_ns, len(entries)), *entries)

    def event(self, event: Event) -> None:
        self._texted(ChunkType.EVENT, chunks.EVENT_FIELDS, (event.time_ns, event.thread), event.kind, event.text)

    def end(self, end: End) -> None:
        head = chunks.END_FIELDS.pack(end.time_ns, end.reason.value)
        totals = [chunks.TOTALS_FIELDS.pack(one.series, one.obtained, one.missed, one.lost) for one in end.totals]
        self.chunk(ChunkType.END, head, text_bytes(end.text), chunks.SHORT_COUNT.pack(len(totals)), *totals)

    def _packed(self, kind: ChunkType, head: bytes, *arrays: ArrayLike) -> None:
        self.chunk(kind, head, *map(encoding.encode_array, arrays))


LISTED_AT_ONCE = 256


class LevelWriter:
    """Writes LEVEL, ABOVE and EXCEEDED for the user's limits, of the activations of one checkpoint after the other.

    The constructor writes LEVEL for each limit. A limit counts from the first due time on. Unlike an agent, this writer
    learns no levels.
    """

    def __init__(self, writer: RecordWriter, series: Series, limits_ns: Sequence[int]) -> None:
        self._writer = writer
        self._series = series
        since_ns = series.first_due_ns
        self._levels = [Level(number, each, False, since_ns, series=series.id) for number, each in enumerate(limits_ns)]
        self._listed = [0] * len(self._levels)
        for level in self._levels:
            writer.level(level)

    def add(self, some: Activations) -> None:
        """Write the activations above each limit."""
        counts = activations.count_above(self._series, some, self._levels)
        if counts.second.size:
            self._writer.above(self._series.id, counts)
        listed = activations.list_exceeding(some, self._levels, self._listed)
        for start in range(0, listed.value.size, LISTED_AT_ONCE):
            self._writer.exceeded(self._series.id, listed.part(start, start + LISTED_AT_ONCE))


TOP_K = 256


class TopWriter:
    """Keeps the K largest values of one series, and writes each value that joins them."""

    def __init__(self, writer: RecordWriter, series: int) -> None:
        self._writer = writer
        self._series = series
        self._top = Top(TOP_K, *(np.zeros(0, dtype=np.int64) for _ in range(3)))

    @property
    def lacks(self) -> int:
        """How many values are still missing until there are K."""
        return TOP_K - self._top.value.size

    def add(self, index: Int64Array, due_ns: Int64Array, value: Int64Array) -> None:
        """Take some activations, and write a TOP chunk with those that are now among the K largest."""
        before = self._top
        candidates = np.arange(value.size)
        if before.value.size == TOP_K:
            candidates = np.flatnonzero(value > before.value[-1])
        self._top = largest(
            TOP_K,
            np.concatenate((before.index, index[candidates])),
            np.concatenate((before.due_ns, due_ns[candidates])),
            np.concatenate((before.value, value[candidates])),
        )
        fresh = ~np.isin(self._top.index, before.index)
        if fresh.any():
            new = Top(TOP_K, self._top.index[fresh], self._top.due_ns[fresh], self._top.value[fresh])
            self._writer.top(self._series, new)


BLOCK_SAMPLES = 4096
CHECKPOINT_NS = 10_000_000_000


class SeriesWriter:
    """Writes everything about a series. It takes the activations in pieces of any size.

    ``limits_ns``: the user's limits. With summary=False only SAMPLES are written.
    """

    def __init__(
        self,
        writer: RecordWriter,
        series: Series,
        *,
        checkpoint_ns: int = CHECKPOINT_NS,
        limits_ns: Sequence[int] = (),
        summary: bool = True,
    ) -> None:
        """Write LEVEL for each limit. The SERIES chunk must already be written."""
        self._writer = writer
        self._series = series
        self._checkpoint_ns = checkpoint_ns
        self._summary = summary
        self._pending = activations.NO_ACTIVATIONS
        self._slice: list[Activations] = []
        self._slice_began = 0
        self._index = 0
        self._due_ns = series.first_due_ns
        self._top = TopWriter(writer, series.id)
        self._obtained = 0
        self._missed = 0
        self._levels = LevelWriter(writer, series, limits_ns if summary else ())

    def add(self, values: ArrayLike, gap_position: ArrayLike = (), gap_missed: ArrayLike = ()) -> None:
        """Take the next activations. After values[gap_position[i]], gap_missed[i] activations were missed."""
        value = np.asarray(values, dtype=np.int64)
        missed = np.zeros_like(value)
        missed[np.asarray(gap_position, dtype=np.int64)] = gap_missed
        if not value.size:
            return
        new = activations.number_activations(self._series, self._index, self._due_ns, value, missed)
        series, steps = self._series, 1 + int(new.missed[-1])
        self._index = int(new.index[-1]) + steps
        after_ns = steps * series.period_ns if series.by_period else int(new.value[-1]) + series.period_ns
        self._due_ns = int(new.due_ns[-1]) + after_ns
        self._obtained += new.value.size
        self._missed += int(new.missed.sum())
        some = self._pending.then(new)
        cuts = np.flatnonzero(np.diff(some.due_ns // self._checkpoint_ns)) + 1
        for start, stop in zip([0, *cuts.tolist()], cuts.tolist(), strict=False):
            self._checkpoint(some.part(start, stop), last=False)
        self._pending = some.part(int(cuts[-1]) if cuts.size else 0, some.value.size)

    def finish(self) -> SeriesTotals:
        """Write what is pending, and return the series' totals for the END chunk."""
        if self._pending.value.size:
            self._checkpoint(self._pending, last=True)
        elif self._slice:
            self._end_slice()
        self._pending = activations.NO_ACTIVATIONS
        return SeriesTotals(self._series.id, self._obtained, self._missed, 0)

    def _checkpoint(self, some: Activations, *, last: bool) -> None:
        if self._series.has_samples:
            for start in range(0, some.value.size, BLOCK_SAMPLES):
                self._writer.samples(_block(self._series, some.part(start, start + BLOCK_SAMPLES)))
        if not self._summary:
            return
        write_seconds(self._writer, self._series.id, activations.seconds_of(self._series, some))
        self._top.add(some.index, some.due_ns, some.value)
        self._levels.add(some)
        self._slice.append(some)
        checkpoints = int(some.due_ns[0]) // self._checkpoint_ns + 1
        length = checkpoints - self._slice_began
        long = SLICE_SHARE * length >= self._slice_began or length * self._checkpoint_ns >= SLICE_MOST_NS
        if last or long:
            self._slice_began = checkpoints
            self._end_slice()

    def _end_slice(self) -> None:
        for part in activations.slices_of_views(self._series, activations.join_activations(self._slice)):
            self._writer.summary(part)
        self._slice = []


def write_seconds(writer: RecordWriter, series: int, seconds: Seconds) -> None:
    """Write consecutive seconds of a series, in as many SECONDS chunks as needed."""
    for start in range(0, seconds.second.size, encoding.MOST_ELEMENTS):
        where = slice(start, start + encoding.MOST_ELEMENTS)
        part = Seconds(seconds.second[where], seconds.obtained[where], seconds.missed[where], seconds.max[where])
        writer.seconds(series, part)


def _block(series: Series, some: Activations) -> Block:
    gaps = np.flatnonzero(some.missed)
    return Block(
        series.id, int(some.index[0]), int(some.due_ns[0]), some.value, gaps.astype(np.int64), some.missed[gaps]
    )
