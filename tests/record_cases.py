# SPDX-License-Identifier: Apache-2.0
"""A small record with every type of chunk, and what is true of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtproof.record.chunks import CHUNK_HEADER, FileWindow, Frame, walk_chunks
from rtproof.record.contents import (
    WHOLE_RUN,
    Begin,
    Block,
    Counter,
    End,
    EndReason,
    Event,
    Fact,
    Int64Array,
    Moment,
    Record,
    Series,
    SystemFile,
)
from rtproof.record.writing import RecordWriter, SeriesWriter

MS = 1_000_000
NONE = np.zeros(0, dtype=np.int64)
BEGIN = Begin(1, 0, bytes(range(16)), 1_700_000_000_000_000_000, 5_000_000_000, "0.1.0", "x86_64", "6.1.0-rt", "#1 SMP")
ON_GRID = Series(0, 0, 2, True, True, MS, 250_000, "timer", "clock_nanosleep", "latency", "ns")
OFF_GRID = Series(1, 1, -1, False, True, MS, 0, "timer", "nanosleep", "latency", "ns")
EXTERNAL = Series(2, 2, 3, False, True, MS, 0, "edges", "answer", "latency", "ns", external=True)
FACTS = (
    Fact(0, WHOLE_RUN, Moment.ASKED, "period_ns", "1000000"),
    Fact(5, 1, Moment.START, "policy", "fifo"),
    Fact(6, 1, Moment.START, "policy", "other"),
)
FILES = (
    SystemFile(-7, Moment.START, "/proc/cmdline", 0, False, b"quiet\n"),
    SystemFile(9, Moment.END, "/dev/none", 2, True, b""),
)
EVENTS = (Event(40 * MS, WHOLE_RUN, "kernel", "hrtimer: interrupt took 12345 ns"),)
LOAD = Counter(3, True, "load.sched", "messages", NONE, NONE)
HEAT = Counter(4, False, "temperature.0", "m°C", NONE, NONE)
UNKNOWN_TYPE = 4711
LIMITS = (3_000, 1_500)


@dataclass(frozen=True)
class Truth:
    """The samples of a series in order."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array


def latencies(seed: int, count: int) -> Int64Array:
    drawn = np.random.default_rng(seed).gamma(3.0, 900.0, count).astype(np.int64)
    return drawn - 300


def write_small(path: Path, count: int = 120) -> dict[int, Truth]:
    """Two series, four checkpoints, gaps in the one on the grid; returns what was written, computed one by one."""
    gaps = {7: 1, 55: 3, count - 1: 2}
    first, second = latencies(1, count), latencies(2, count)
    with RecordWriter(path) as writer:
        _write_head(writer)
        feeds = [
            SeriesWriter(writer, series, checkpoint_ns=30 * MS, limits_ns=LIMITS) for series in (ON_GRID, OFF_GRID)
        ]
        for half in (slice(0, count // 2), slice(count // 2, count)):
            inside = {at - half.start: m for at, m in gaps.items() if half.start <= at < half.stop}
            feeds[0].add(first[half], list(inside), list(inside.values()))
            feeds[1].add(second[half])
            writer.tick(half.stop * MS, [(LOAD.id, half.stop), (HEAT.id, -half.stop)])
        totals = tuple(feed.finish() for feed in feeds)
        writer.event(EVENTS[0])
        writer.chunk(UNKNOWN_TYPE, b"from a later minor version")
        writer.end(End(130 * MS, EndReason.AS_ASKED, "as asked", totals))
    return {0: _truth(ON_GRID, first, gaps), 1: _truth(OFF_GRID, second, {})}


def _write_head(writer: RecordWriter) -> None:
    writer.begin(BEGIN)
    for series in (ON_GRID, OFF_GRID):
        writer.series(series)
    for counter in (LOAD, HEAT):
        writer.counter(counter)
    for fact in FACTS:
        writer.fact(fact)
    for file in FILES:
        writer.file(file)


def _truth(series: Series, values: Int64Array, gaps: dict[int, int]) -> Truth:
    rows = _rows(series, (0, series.first_due_ns), values, gaps)
    return Truth(*np.array(rows, dtype=np.int64).T)


def block_rows(series: Series, block: Block) -> list[tuple[int, int, int]]:
    """(index, due time, value) of each sample of a block."""
    gaps = dict(zip(block.gap_position.tolist(), block.gap_missed.tolist(), strict=True))
    return _rows(series, (block.first_index, block.first_due_ns), block.values, gaps)


def _rows(
    series: Series, start: tuple[int, int], values: Int64Array, gaps: dict[int, int]
) -> list[tuple[int, int, int]]:
    """As the format page says it, one by one."""
    index, due_ns = start
    rows = []
    for place, value in enumerate(values.tolist()):
        rows.append((index, due_ns, value))
        steps = 1 + gaps.get(place, 0)
        index += steps
        due_ns += steps * series.period_ns if series.by_period else value + series.period_ns
    return rows


def sample_rows(record: Record, series: Series) -> list[tuple[int, int, int]]:
    return [row for block in record.blocks(series.id) for row in block_rows(series, block)]


def true_rows(truth: Truth) -> list[tuple[int, int, int]]:
    return list(zip(truth.index.tolist(), truth.due_ns.tolist(), truth.value.tolist(), strict=True))


def chunks(path: Path) -> Iterator[bytes]:
    """The chunks of an undamaged record, each with its padding."""
    whole = path.read_bytes()
    starts = []
    with path.open("rb") as file:
        for part in walk_chunks(FileWindow(file.fileno(), len(whole))):
            assert isinstance(part, Frame), part
            starts.append(part.offset)
    for start, stop in zip(starts, [*starts[1:], len(whole)], strict=True):
        yield whole[start:stop]


def payload_of(chunk: bytes) -> bytes:
    length = CHUNK_HEADER.unpack_from(chunk)[1]
    return chunk[CHUNK_HEADER.size : CHUNK_HEADER.size + length]
