# SPDX-License-Identifier: Apache-2.0
"""Writes records in the agent's format: for tests, benches, simulations and importers."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import ArrayLike

from rtproof.record import (
    Begin,
    Block,
    Conditions,
    Counter,
    End,
    Event,
    Fact,
    Seconds,
    Series,
    Slice,
    SystemFile,
    Top,
    layouts,
    packed,
)
from rtproof.record.framing import ChunkType, frame_bytes
from rtproof.record.levels import MOST as MOST_LEVELS
from rtproof.record.levels import Above, Exceeding, Head
from rtproof.record.stored import histogram_bytes
from rtproof.record.wire import leb128_encode, text_bytes, zigzags

LOW_HALF = (1 << 64) - 1


class RecordWriter:
    """Appends chunks to a new file; one method per chunk type. ``chunk`` writes what the others cannot, for tests."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """FileExistsError if there is such a file: a record is never written over."""
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

    def begin(self, begin: Begin) -> None:
        head = layouts.BEGIN.pack(
            begin.major, begin.minor, begin.run_id, begin.origin_realtime_ns, begin.origin_monotonic_ns
        )
        texts = (begin.agent_version, begin.machine, begin.kernel_release, begin.kernel_version)
        self.chunk(ChunkType.BEGIN, head, *map(text_bytes, texts))

    def fact(self, fact: Fact) -> None:
        head = layouts.FACT.pack(fact.time_ns, fact.thread, fact.moment.value)
        self.chunk(ChunkType.FACT, head, text_bytes(fact.key), text_bytes(fact.value))

    def file(self, file: SystemFile) -> None:
        head = layouts.FILE.pack(file.time_ns, file.moment.value, file.cut, file.errno)
        length = layouts.LONG_COUNT.pack(len(file.content))
        self.chunk(ChunkType.FILE, head, text_bytes(file.path), length, file.content)

    def series(self, series: Series) -> None:
        flags = (
            series.on_grid * layouts.ON_GRID
            | series.has_samples * layouts.HAS_SAMPLES
            | series.external * layouts.EXTERNAL
            | series.loop * layouts.LOOP
        )
        head = layouts.SERIES.pack(
            series.id, series.thread, series.cpu, flags, series.period_ns, series.first_due_ns
        )  # fmt: skip
        texts = (series.probe, series.method, series.field, series.unit)
        self.chunk(ChunkType.SERIES, head, *map(text_bytes, texts))

    def samples(self, block: Block) -> None:
        head = layouts.SAMPLES.pack(block.series, 0, block.first_index, block.first_due_ns)
        self._packed(ChunkType.SAMPLES, head, block.values, block.gap_position, block.gap_missed)

    def summary(self, part: Slice) -> None:
        squares, products = part.sum_squares, part.sum_products % (1 << 128)
        head = layouts.SUMMARY.pack(
            part.series, part.view.value, 0, part.first_due_ns, part.last_due_ns, part.count, part.lost,
            part.min, part.max, part.sum, squares & LOW_HALF, squares >> 64,
            part.pairs, products & LOW_HALF, products >> 64, part.catch_up_pairs,
        )  # fmt: skip
        count = layouts.LONG_COUNT.pack(part.bins.size)
        self.chunk(ChunkType.SUMMARY, head, count, histogram_bytes(part.bins, part.bin_counts))

    def seconds(self, series: int, seconds: Seconds) -> None:
        """``seconds.second`` must be consecutive, as the chunk names only the first."""
        first = int(seconds.second[0]) if seconds.second.size else 0
        if not np.array_equal(seconds.second, np.arange(first, first + seconds.second.size)):
            raise ValueError("the seconds of a chunk must be consecutive")
        head = layouts.SECONDS.pack(series, 0, first)
        self._packed(ChunkType.SECONDS, head, seconds.obtained, seconds.missed, seconds.max)

    def top(self, series: int, top: Top) -> None:
        self._packed(ChunkType.TOP, layouts.TOP.pack(series, top.k), top.index, top.due_ns, top.value)

    def level(self, series: int, level: Head) -> None:
        learned = level.share > 0
        head = layouts.LEVEL.pack(
            series, level.number, learned, level.value, level.since_ns, level.share, level.taught if learned else 0
        )
        self.chunk(ChunkType.LEVEL, head)

    def above(self, series: int, above: Above) -> None:
        steps = np.diff(above.second, prepend=above.second[:1])
        numbers = np.stack((steps * MOST_LEVELS + above.level, above.ran, above.missed), axis=1)
        head = layouts.ABOVE.pack(series, 0, int(above.second[0])) + layouts.LONG_COUNT.pack(above.second.size)
        self.chunk(ChunkType.ABOVE, head, leb128_encode(numbers.reshape(-1).astype(np.uint64)))

    def exceeded(self, series: int, some: Exceeding) -> None:
        head = layouts.EXCEEDED.pack(series, some.ended)
        numbers = np.stack(
            (np.diff(some.index, prepend=0), zigzags(np.diff(some.due_ns, prepend=0)), zigzags(some.value), some.lists),
            axis=1,
        )
        count = layouts.LONG_COUNT.pack(some.index.size)
        self.chunk(ChunkType.EXCEEDED, head + count, leb128_encode(numbers.reshape(-1).view(np.uint64)))

    def conditions(self, some: Conditions) -> None:
        """One chunk with all rows; times are kept in whole ms, run delays in whole us."""
        deviations = [
            layouts.DEVIATION.pack(one.kind.value, one.count) + text_bytes(one.seen) for one in some.deviations
        ]
        numbers = (
            np.diff(some.time_ns // 1_000_000, prepend=0), some.noted, some.elsewhere, some.checks, some.other_policy,
            some.other_priority, some.other_affinity, some.run_delay_ns // 1_000, some.involuntary_switches,
        )  # fmt: skip
        rows = leb128_encode(np.stack(numbers, axis=1).reshape(-1).astype(np.uint64))
        head = layouts.CONDITIONS.pack(some.thread, len(deviations), some.time_ns.size)
        self.chunk(ChunkType.CONDITIONS, head, *deviations, rows)

    def counter(self, counter: Counter) -> None:
        """The counter's name; its readings go through ``tick``."""
        head = layouts.COUNTER.pack(counter.id, 0 if counter.grows else 1, 0)
        self.chunk(ChunkType.COUNTER, head, text_bytes(counter.name), text_bytes(counter.unit))

    def tick(self, time_ns: int, readings: Iterable[tuple[int, int]]) -> None:
        """Values of counters at a time, as pairs of counter id and value."""
        entries = [layouts.TICK_ENTRY.pack(number, value) for number, value in readings]
        self.chunk(ChunkType.TICK, layouts.TICK.pack(time_ns, len(entries)), *entries)

    def event(self, event: Event) -> None:
        head = layouts.EVENT.pack(event.time_ns, event.thread)
        self.chunk(ChunkType.EVENT, head, text_bytes(event.kind), text_bytes(event.text))

    def end(self, end: End) -> None:
        head = layouts.END.pack(end.time_ns, end.reason.value)
        totals = [layouts.TOTALS.pack(one.series, one.obtained, one.missed, one.lost) for one in end.totals]
        self.chunk(ChunkType.END, head, text_bytes(end.text), layouts.SHORT_COUNT.pack(len(totals)), *totals)

    def _packed(self, kind: ChunkType, head: bytes, *arrays: ArrayLike) -> None:
        self.chunk(kind, head, *map(packed.encode, arrays))
