# SPDX-License-Identifier: Apache-2.0
"""What another tool kept of every activation: due time and latency. So it can be judged like a record of ours."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import (
    WHOLE_RUN,
    Begin,
    Block,
    ChunkRef,
    End,
    EndReason,
    Event,
    Moment,
    Record,
    Series,
    SeriesTotals,
    SystemFile,
)

BLOCK_SAMPLES = 4096
IMPORTED_EVENT = "imported"
"""The kind of an event that is a sentence on what the other tool does not tell."""


Stretch = tuple[int, NDArray[np.integer]]
"""The number of an activation, and the latencies in ns of this one and those that follow, in 32 or 64 bits."""


@dataclass(frozen=True)
class ImportedThread:
    """The activations of one thread.

    cpu: the CPU on which it ran, None if the tool does not say. stretches: with increasing numbers. A number that is
    missing ran, and its latency was lost. lost_at_ends: how many more ran before the first or behind the last.
    """

    number: int
    cpu: int | None
    first_due_ns: int
    stretches: tuple[Stretch, ...]
    lost_at_ends: int = 0

    @property
    def count(self) -> int:
        """How many latencies there are."""
        return sum(values_ns.size for _, values_ns in self.stretches)

    @property
    def first_index(self) -> int:
        return self.stretches[0][0]

    @property
    def last_index(self) -> int:
        index, values_ns = self.stretches[-1]
        return index + values_ns.size - 1

    @property
    def ran(self) -> int:
        """How many activations ran."""
        return self.last_index - self.first_index + 1 + self.lost_at_ends


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


@dataclass(frozen=True)
class _StretchesInMemory:
    """The same, of latencies in 32 bits. stretches: first due time and latencies of each block."""

    stretches: tuple[tuple[int, NDArray[np.integer]], ...]

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        none = np.zeros(0, np.int64)
        for ref in refs:
            due_ns, values_ns = self.stretches[ref.offset]
            yield Block(ref.series, ref.first_index, due_ns, values_ns.astype(np.int64), none, none)


def record_of_samples(samples: ImportedSamples, path: str, size: int) -> Record:
    """The same as a record. path, size: of the file that the samples come from. Its origin is the first due time."""
    origin_ns = min(thread.first_due_ns + thread.first_index * samples.period_ns for thread in samples.threads)
    series = tuple(_series(samples, thread, origin_ns) for thread in samples.threads)
    blocks = [(one, *block) for one, thread in zip(series, samples.threads, strict=True) for block in _blocks(thread)]
    totals = tuple(SeriesTotals(each.number, each.count, 0, each.ran - each.count) for each in samples.threads)
    end_ns = max(
        one.first_due_ns
        + thread.last_index * samples.period_ns
        + max(int(thread.stretches[-1][1][-1]), samples.period_ns)
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
            ChunkRef(at, 0, one.id, index, values_ns.size) for at, (one, index, values_ns) in enumerate(blocks)
        ),
        read_blocks=_StretchesInMemory(
            tuple((one.first_due_ns + index * one.period_ns, values_ns) for one, index, values_ns in blocks)
        ),
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


def _blocks(thread: ImportedThread) -> Iterator[Stretch]:
    """The blocks of a thread. A new one begins behind each gap, so that what lies in the gap counts as lost."""
    for first, values_ns in thread.stretches:
        for at in range(0, values_ns.size, BLOCK_SAMPLES):
            yield first + at, values_ns[at : at + BLOCK_SAMPLES]
