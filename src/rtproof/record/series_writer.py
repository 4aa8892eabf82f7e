# SPDX-License-Identifier: Apache-2.0
"""Writes a series from plain arrays of latencies, with everything that an agent writes about it at its checkpoints."""

import numpy as np
from numpy.typing import ArrayLike

from rtproof.record import Block, Int64Array, Seconds, Series, SeriesTotals, packed, slicing
from rtproof.record.level_writer import LevelWriter
from rtproof.record.slicing import Activations
from rtproof.record.top_writer import TopWriter
from rtproof.record.writer import RecordWriter

BLOCK = 4096
CHECKPOINT_NS = 10_000_000_000


class SeriesWriter:
    """Takes the activations of a series in pieces of any size.

    limits_ns: the user's; None for a field before the last, which has no learned levels either. summary=False leaves
    out all but SAMPLES.
    """

    def __init__(
        self,
        writer: RecordWriter,
        series: Series,
        *,
        checkpoint_ns: int = CHECKPOINT_NS,
        limits_ns: tuple[int, ...] | None = (),
        summary: bool = True,
    ) -> None:
        """Writes LEVEL of the limits, so that SERIES must be there."""
        self._writer = writer
        self._series = series
        self._checkpoint_ns = checkpoint_ns
        self._summary = summary
        self._pending = slicing.NONE
        self._slice: list[Activations] = []
        self._slice_began = 0
        self._index = 0
        self._due_ns = series.first_due_ns
        self._top = TopWriter(writer, series.id)
        self._obtained = 0
        self._missed = 0
        self._levels = LevelWriter(writer, series, limits_ns if summary else None)

    def add(self, values: ArrayLike, gap_position: ArrayLike = (), gap_missed: ArrayLike = ()) -> None:
        """The next activations; after values[gap_position[i]], gap_missed[i] due times had none."""
        value = np.asarray(values, dtype=np.int64)
        missed = np.zeros_like(value)
        missed[np.asarray(gap_position, dtype=np.int64)] = gap_missed
        if not value.size:
            return
        new = slicing.activations(self._series, self._index, self._due_ns, value, missed)
        self._advance(new)
        some = self._pending.then(new)
        cuts = np.flatnonzero(np.diff(some.due_ns // self._checkpoint_ns)) + 1
        for start, stop in zip([0, *cuts.tolist()], cuts.tolist(), strict=False):
            self._checkpoint(some.part(start, stop), last=False)
        self._pending = some.part(int(cuts[-1]) if cuts.size else 0, some.value.size)

    def finish(self) -> SeriesTotals:
        """Write what is pending; the totals are for END."""
        if self._pending.value.size:
            self._checkpoint(self._pending, last=True)
        elif self._slice:
            self._end_slice()
        self._pending = slicing.NONE
        return SeriesTotals(self._series.id, self._obtained, self._missed, 0)

    def _advance(self, new: Activations) -> None:
        series, steps = self._series, 1 + int(new.missed[-1])
        self._index = int(new.index[-1]) + steps
        after_ns = steps * series.period_ns if series.by_period else int(new.value[-1]) + series.period_ns
        self._due_ns = int(new.due_ns[-1]) + after_ns
        self._obtained += new.value.size
        self._missed += int(new.missed.sum())

    def _checkpoint(self, some: Activations, *, last: bool) -> None:
        if self._series.has_samples:
            for start in range(0, some.value.size, BLOCK):
                self._writer.samples(_block(self._series, some.part(start, start + BLOCK)))
        if not self._summary:
            return
        write_seconds(self._writer, self._series.id, slicing.seconds(self._series, some))
        self._top.add(some.index, some.due_ns, some.value)
        self._levels.add(some)
        self._slice.append(some)
        checkpoints = int(some.due_ns[0]) // self._checkpoint_ns + 1
        if last or slicing.slice_ends(checkpoints, self._slice_began, self._checkpoint_ns):
            self._slice_began = checkpoints
            self._end_slice()

    def _end_slice(self) -> None:
        for part in slicing.slices(self._series, slicing.together(self._slice)):
            self._writer.summary(part)
        self._slice = []


def write_seconds(writer: RecordWriter, series: int, seconds: Seconds) -> None:
    """Consecutive seconds of a series, in as many chunks as they need."""
    for start in range(0, seconds.second.size, packed.MOST):
        where = slice(start, start + packed.MOST)
        part = Seconds(seconds.second[where], seconds.obtained[where], seconds.missed[where], seconds.max[where])
        writer.seconds(series, part)


def write_series_samples(
    writer: RecordWriter,
    series: Series,
    values: Int64Array,
    gaps: tuple[ArrayLike, ArrayLike] = ((), ()),
    *,
    summary: bool = True,
) -> SeriesTotals:
    """All of one series at once; see ``SeriesWriter`` for pieces. ``gaps``: positions and numbers missed behind them.

    SERIES itself is written by the caller, before.
    """
    feed = SeriesWriter(writer, series, summary=summary)
    feed.add(values, *gaps)
    return feed.finish()


def _block(series: Series, some: Activations) -> Block:
    gaps = np.flatnonzero(some.missed)
    return Block(
        series.id, int(some.index[0]), int(some.due_ns[0]), some.value, gaps.astype(np.int64), some.missed[gaps]
    )
