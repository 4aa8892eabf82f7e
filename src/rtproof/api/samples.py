# SPDX-License-Identifier: Apache-2.0
"""The single latencies of a run as arrays, all at once or in pieces of bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtproof.record.activations import number_activations
from rtproof.record.contents import Block, Record, Series
from rtproof.summary import per_second

View: TypeAlias = Literal["observed", "schedule"]
"""observed: the activations that ran. schedule: all that were due, the missed ones with their lateness."""
MOST_ROWS = 1 << 18
"""Of a piece: 4 MiB of times."""


@dataclass(frozen=True, eq=False, repr=False)
class SampleChunk:
    """A piece of the samples: consecutive activations of one thread, as arrays of equal length.

    Attributes:
        thread: The number of the measuring thread.
        latency_ns: int64.
        due_ns: int64; from the origin of the record.
        ran: bool; False for a missed activation, which only the view "schedule" has.
    """

    thread: int
    latency_ns: NDArray[np.int64]
    due_ns: NDArray[np.int64]
    ran: NDArray[np.bool_]

    def __len__(self) -> int:
        """The number of activations."""
        return int(self.latency_ns.size)

    def __repr__(self) -> str:
        """The thread and the number of activations."""
        return f"<SampleChunk of thread {self.thread}: {len(self):,} activations>"


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """The samples of a run: thread after thread, each in the order of time.

    Nothing is read before an array or a piece is asked for. ``for chunk in samples.chunks()`` reads piece by piece, so
    a record of any length takes little memory. The arrays hold everything, and stay in memory as long as this object.

    Attributes:
        view: "observed" or "schedule".
        threads: The numbers of the threads.
        origin_ns: The origin of all due times, as time since 1970.
    """

    view: View
    threads: tuple[int, ...]
    origin_ns: int
    _record: Record
    _series: tuple[Series, ...]

    def chunks(self) -> Iterator[SampleChunk]:
        """The samples in pieces of at most 262,144 activations, which are read one after the other."""
        for series in self._series:
            for block in self._record.blocks(series.id):
                per_second.refuse_impossible_stall(series, block)
                yield from _chunks_of_block(series, block, with_missed=self.view == "schedule")

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        parts = list(self.chunks())
        none = np.zeros(0, np.int64)
        return (
            np.concatenate([none, *(np.full(len(part), part.thread, np.int64) for part in parts)]),
            np.concatenate([none, *(part.due_ns for part in parts)]),
            np.concatenate([none, *(part.latency_ns for part in parts)]),
            np.concatenate([none.astype(np.bool_), *(part.ran for part in parts)]),
        )

    @property
    def thread(self) -> NDArray[np.int64]:
        """The thread of each sample."""
        return self._columns[0]

    @property
    def due_ns(self) -> NDArray[np.int64]:
        """When each activation was due, from the origin of the record."""
        return self._columns[1]

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        """How late each activation was."""
        return self._columns[2]

    @property
    def ran(self) -> NDArray[np.bool_]:
        """False for the missed activations of the view "schedule"."""
        return self._columns[3]

    def __len__(self) -> int:
        """The number of activations. It reads all of them."""
        return int(self.latency_ns.size)

    def __repr__(self) -> str:
        """The view and the threads."""
        names = ", ".join(map(str, self.threads))
        return f"<Samples, view {self.view}, of the thread{'s' * (len(self.threads) > 1)} {names}>"


def _chunks_of_block(series: Series, block: Block, *, with_missed: bool) -> Iterator[SampleChunk]:
    """The activations of a block in the order of their due times.

    One stall may have more missed activations than the memory holds, so pieces are cut by the number of rows.
    """
    missed = np.zeros(block.values.size, np.int64)
    missed[block.gap_position] = block.gap_missed
    ran = number_activations(series, block.first_index, block.first_due_ns, block.values, missed)
    rows = 1 + missed if with_missed else np.ones(missed.size, np.int64)
    ends = np.cumsum(rows)
    for start in range(0, int(rows.sum()), MOST_ROWS):
        row = np.arange(start, min(start + MOST_ROWS, int(ends[-1])))
        owner = np.searchsorted(ends, row, side="right")
        later_ns = (row - (ends - rows)[owner]) * series.period_ns
        yield SampleChunk(series.thread, ran.value[owner] - later_ns, ran.due_ns[owner] + later_ns, later_ns == 0)
