# SPDX-License-Identifier: Apache-2.0
"""What another tool kept of every activation: due time and latency. So it can be judged like a record of ours."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.record.contents import (
    WHOLE_RUN,
    Begin,
    Block,
    ChunkRef,
    End,
    EndReason,
    Event,
    Int64Array,
    Moment,
    Record,
    Series,
    SeriesTotals,
    SystemFile,
)

BLOCK_SAMPLES = 4096
IMPORTED_EVENT = "imported"
"""The kind of an event that is a sentence on what the other tool does not tell."""


@dataclass(frozen=True)
class ImportedThread:
    """The activations of one thread, as arrays of equal length.

    cpu: the CPU on which it ran, None if the tool does not say. index: the number of each activation, increasing. A
    number that is missing ran, and its latency was lost. value_ns: the latencies. lost_at_ends: how many more ran
    before the first or behind the last.
    """

    number: int
    cpu: int | None
    first_due_ns: int
    index: Int64Array
    value_ns: Int64Array
    lost_at_ends: int = 0

    @property
    def ran(self) -> int:
        """How many activations ran."""
        return int(self.index[-1] - self.index[0] + 1) + self.lost_at_ends


@dataclass(frozen=True)
class ImportedSamples:
    """Every activation that a tool kept. The threads have one period, and times of one clock.

    identity: 16 bytes that are the same for the same samples. files: path and content of files of the target. notes:
    sentences on what the tool does not tell.
    """

    tool: str
    method: str
    period_ns: int
    threads: tuple[ImportedThread, ...]
    identity: bytes = b""
    machine: str = ""
    release: str = ""
    version: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BlocksInMemory:
    """Reads blocks of samples from memory, as ``BlockReader`` does from a file."""

    blocks: tuple[Block, ...]

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        return (self.blocks[ref.offset] for ref in refs)


def record_of_samples(samples: ImportedSamples, path: str, size: int) -> Record:
    """The same as a record. path, size: of the file that the samples come from. Its origin is the first due time."""
    origin_ns = min(thread.first_due_ns + int(thread.index[0]) * samples.period_ns for thread in samples.threads)
    series = tuple(_series(samples, thread, origin_ns) for thread in samples.threads)
    blocks = tuple(block for one, thread in zip(series, samples.threads, strict=True) for block in _blocks(one, thread))
    totals = tuple(
        SeriesTotals(thread.number, thread.index.size, 0, thread.ran - thread.index.size) for thread in samples.threads
    )
    end_ns = max(
        one.first_due_ns + int(thread.index[-1]) * samples.period_ns + max(int(thread.value_ns[-1]), samples.period_ns)
        for one, thread in zip(series, samples.threads, strict=True)
    )
    return Record(
        path=path,
        size=size,
        begin=Begin(1, 0, samples.identity, 0, origin_ns, "", samples.machine, samples.release, samples.version),
        facts=(),
        files=tuple(SystemFile(0, Moment.START, name, 0, False, content) for name, content in samples.files),
        series=series,
        slices=(),
        seconds={},
        top={},
        counters=(),
        events=tuple(Event(0, WHOLE_RUN, IMPORTED_EVENT, note) for note in samples.notes),
        end=End(end_ns, EndReason.AS_ASKED, "", totals),
        damage=(),
        chunk_refs=tuple(
            ChunkRef(at, 0, block.series, block.first_index, block.values.size) for at, block in enumerate(blocks)
        ),
        read_blocks=BlocksInMemory(blocks),
    )


def _series(samples: ImportedSamples, thread: ImportedThread, origin_ns: int) -> Series:
    return Series(
        id=thread.number,
        thread=thread.number,
        cpu=-1 if thread.cpu is None else thread.cpu,
        on_grid=True,
        has_samples=True,
        period_ns=samples.period_ns,
        first_due_ns=thread.first_due_ns - origin_ns,
        probe=samples.tool,
        method=samples.method,
        field="latency",
        unit="ns",
    )


def _blocks(series: Series, thread: ImportedThread) -> Iterator[Block]:
    """The blocks of a thread. A new one begins behind each gap, so that what lies in the gap counts as lost."""
    none = np.zeros(0, np.int64)
    gaps = np.flatnonzero(np.diff(thread.index) != 1) + 1
    starts = np.unique(np.concatenate((gaps, np.arange(0, thread.index.size, BLOCK_SAMPLES))))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), thread.index.size], strict=True):
        first = int(thread.index[start])
        due_ns = series.first_due_ns + first * series.period_ns
        yield Block(series.id, first, due_ns, thread.value_ns[start:stop], none, none)
