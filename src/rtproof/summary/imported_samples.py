# SPDX-License-Identifier: Apache-2.0
"""What another tool kept, every activation or its trace of the kernel, as a record that is read like ours."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
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
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import TRACE_PREFIX
from rtproof.summary.recorded_facts import IMPORTED_EVENT
from rtproof.summary.trace_pages import page_events
from rtproof.summary.trace_text import event_number

BLOCK_SAMPLES = 4096


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
    """Reads blocks of samples from memory, as ``BlockReader`` does from a file. Latencies may have 32 bits."""

    blocks: tuple[Block, ...]

    @property
    def refs(self) -> tuple[ChunkRef, ...]:
        """A reference to each block."""
        found = enumerate(self.blocks)
        return tuple(ChunkRef(at, 0, block.series, block.first_index, block.values.size) for at, block in found)

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        for ref in refs:
            block = self.blocks[ref.offset]
            yield replace(block, values=block.values.astype(np.int64, copy=False))


def _record(path: str, size: int, begin: Begin, files: Iterable[SystemFile], notes: tuple[str, ...]) -> Record:
    events = tuple(Event(0, WHOLE_RUN, IMPORTED_EVENT, note) for note in notes)
    none = BlocksInMemory(())
    return Record(path, size, begin, (), tuple(files), (), (), {}, {}, (), events, None, (), none.refs, none)


def record_of_samples(samples: ImportedSamples, path: str, size: int) -> Record:
    """The same as a record. path, size: of the file that the samples come from. Its origin is the first due time."""
    origin_ns = min(thread.first_due_ns + thread.first_index * samples.period_ns for thread in samples.threads)
    series = tuple(_series(samples, thread, origin_ns) for thread in samples.threads)
    blocks = tuple(each for one, thread in zip(series, samples.threads, strict=True) for each in _blocks(one, thread))
    totals = tuple(SeriesTotals(each.number, each.count, 0, each.ran - each.count) for each in samples.threads)
    end_ns = max(
        one.first_due_ns
        + thread.last_index * samples.period_ns
        + max(int(thread.stretches[-1][1][-1]), samples.period_ns)
        for one, thread in zip(series, samples.threads, strict=True)
    )
    begin = Begin(1, 0, samples.identity, 0, origin_ns, "", samples.machine, samples.release, samples.version)
    files = (SystemFile(0, Moment.START, name, 0, False, content) for name, content in samples.files)
    empty, kept = _record(path, size, begin, files, samples.notes), BlocksInMemory(blocks)
    end = End(end_ns, EndReason.AS_ASKED, "", totals)
    return replace(empty, series=series, chunk_refs=kept.refs, read_blocks=kept, end=end)


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
    for first, values_ns in thread.stretches:
        for at in range(0, values_ns.size, BLOCK_SAMPLES):
            due_ns = series.first_due_ns + (first + at) * series.period_ns
            values = cast(Int64Array, values_ns[at : at + BLOCK_SAMPLES])
            yield Block(series.id, first + at, due_ns, values, none, none)


FORMAT_PREFIX = "events/"


@dataclass(frozen=True)
class ImportedTrace:
    """A trace. files: by the names that a record has below ``trace/``. identity: the same for the same file.

    big: the byte order. missing: sentences on what the file lacks. system: what uname said, "" if it is not told.
    """

    tool: str
    files: dict[str, bytes]
    big: bool
    identity: bytes
    missing: tuple[str, ...] = ()
    system: str = ""


def record_of_trace(trace: ImportedTrace, path: str, size: int) -> Record:
    """The trace as a record with the formats of the events that occur. UserError if its pages have no layout."""
    about = f"endian {'big' if trace.big else 'little'}\nbuffer_kib 0\nplace {trace.tool}\nmissing\n".encode()
    words = [*trace.system.split(maxsplit=2), "", "", ""][:3]
    begin = Begin(1, 4, trace.identity, 0, 0, "", trace.system.rpartition(" ")[2], words[2].partition(" ")[0], "")
    files = (
        SystemFile(0, Moment.END, TRACE_PREFIX + name, 0, False, content)
        for name, content in (trace.files | {"about": about}).items()
    )
    whole = _record(path, size, begin, files, trace.missing)
    layout = kernel_trace.page_layout(whole)
    seen: set[bytes] = set()
    for cpu in kernel_trace.trace_cpus(whole):
        seen |= {bytes(event[:2]) for event in page_events(kernel_trace.cpu_pages(whole, cpu, layout), layout)}
    numbers = {int.from_bytes(each, "big" if layout.big else "little") for each in seen}
    if not numbers:
        raise UserError(f"{path} holds no events")
    return replace(whole, files=tuple(file for file in whole.files if _is_of_use(file, numbers)))


def _is_of_use(file: SystemFile, numbers: set[int]) -> bool:
    name = file.path.removeprefix(TRACE_PREFIX)
    if not name.startswith(FORMAT_PREFIX) or name.startswith(f"{FORMAT_PREFIX}ftrace/"):
        return True
    return event_number(file.content.decode(errors="replace")) in numbers
