# SPDX-License-Identifier: Apache-2.0
"""Count the samples of a large record with the compiled scanner (scanner/scan.c).

It gives the same numbers as ``series.part_of_samples``. That numpy code stays the reference and the fallback;
tests/test_native_scan.py holds both to the same numbers.
"""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import RecordError
from rtproof.record.chunks import CHUNK_HEADER, padded
from rtproof.record.compiled_scanner import Scanner, ScanState
from rtproof.record.contents import ChunkRef, Int64Array, Seconds, Series, Top
from rtproof.record.reading import open_regular
from rtproof.summary import dependence, per_second, tally
from rtproof.summary.dependence import BlockCounts, LevelPlan
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Lag
from rtproof.summary.tally import WINDOW, Tally

DONE, CHANGED, UNSORTED, STALL = range(4)
"""What ``scan_blocks`` returns (enum scan_code)."""
WORTH_SAMPLES = 400_000
"""From so many samples of a task on, the scanner needs less time than numpy: it looks through its window once."""
MOST_SAMPLES = 1 << 18
"""About so many samples go into one call. Their bytes fit into the cache."""
LARGEST_BLOCK = 65_536
LONGEST_PERIOD_NS = SECOND_NS
"""With a longer period some seconds have no activation at all. Such records are small, and numpy counts them."""
COUNT_BITS = 26
"""A count has so many bits in the scanner; the bits above them hold the class of the value."""
FLUSH = 1 << COUNT_BITS
"""Before a count can have more bits, all are added to 64-bit ones."""


class TaskScan:
    """Counts the samples of some consecutive chunks of one series, whose period is at most LONGEST_PERIOD_NS."""

    def __init__(
        self, series: Series, slice_starts: Int64Array, k: int, plan: LevelPlan | None, longest_gap_ns: int
    ) -> None:
        self.series, self.plan, self.k = series, plan, k
        room = MOST_SAMPLES + LARGEST_BLOCK
        self._counted = Tally()
        self._since_flush = 0
        self._rest = np.empty(room, np.int64)
        self._gaps, self._seconds = np.empty((3, room), np.int64), np.empty((3, room), np.int64)
        self._top = np.empty((3, max(k, 1)), np.int64)
        self._kept_gaps: list[Int64Array] = []
        self._kept_seconds: list[Int64Array] = []
        self._slice_starts = np.ascontiguousarray(slice_starts, np.int64)
        self._scratch = np.empty(LARGEST_BLOCK + 8, np.int64)
        units, levels = (plan.units, plan.levels) if plan else (0, np.empty(0, np.int64))
        self._levels = np.ascontiguousarray(levels, np.int64)
        self._classes = _classes(self._levels)
        self.counts = self._classes.copy()
        self._above = np.zeros((max(units, 1), self._levels.size + 1), np.int64)
        self.state = ScanState(
            on_grid=series.on_grid,
            by_period=series.by_period,
            chained_cycles=not series.on_grid and not series.external,
            period_ns=series.period_ns,
            longest_gap_ns=longest_gap_ns,
            n_slice_starts=self._slice_starts.size,
            slice_starts=self._slice_starts.ctypes.data,
            window=WINDOW,
            counts=self.counts.ctypes.data,
            rest=self._rest.ctypes.data,
            gap_due_ns=self._gaps[0].ctypes.data,
            gap_value=self._gaps[1].ctypes.data,
            gap_missed=self._gaps[2].ctypes.data,
            second=self._seconds[0].ctypes.data,
            obtained=self._seconds[1].ctypes.data,
            largest=self._seconds[2].ctypes.data,
            k=k,
            top_value=self._top[0].ctypes.data,
            top_index=self._top[1].ctypes.data,
            top_due_ns=self._top[2].ctypes.data,
            origin_ns=plan.origin_ns if plan else 0,
            unit_ns=plan.unit_ns if plan else 1,
            units=units,
            n_levels=self._levels.size,
            levels=self._levels.ctypes.data,
            above=self._above.ctypes.data,
            scratch=self._scratch.ctypes.data,
        )

    def drain(self) -> None:
        """Keep what one call gave, so that the next call can use its memory again."""
        state = self.state
        if state.n_rest:
            self._counted.add(self._rest[: state.n_rest].copy())
        if state.n_gaps:
            self._kept_gaps.append(self._gaps[:, : state.n_gaps].copy())
        if state.n_seconds:
            self._kept_seconds.append(self._seconds[:, : state.n_seconds].copy())
        if state.samples - self._since_flush > FLUSH - MOST_SAMPLES - LARGEST_BLOCK:
            self._flush()

    def _flush(self) -> None:
        self.counts -= self._classes
        self._counted.add_dense(self.counts)
        self.counts[:] = self._classes
        self._since_flush = self.state.samples

    def observed(self) -> tally.Tallied:
        self._flush()
        return self._counted.result()

    def gaps(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Due time and latency of each activation after which some were missed, and how many were missed."""
        kept = np.concatenate(self._kept_gaps, axis=1) if self._kept_gaps else np.empty((3, 0), np.int64)
        return kept[0], kept[1], kept[2]

    def seconds(self) -> Seconds:
        second, obtained, largest = (
            np.concatenate(self._kept_seconds, axis=1) if self._kept_seconds else np.empty((3, 0), np.int64)
        )
        ran = Seconds(second, obtained, np.zeros_like(obtained), largest)
        due_ns, _, missed = self.gaps()
        return per_second.merge_seconds((ran, per_second.missed_seconds(self.series, due_ns, missed)))

    def top(self) -> Top:
        value, index, due_ns = self._top[:, : self.state.n_top]
        return per_second.merge_tops((Top(self.k, index.copy(), due_ns.copy(), value.copy()),))

    def lag(self) -> Lag:
        products = (int(self.state.products_high) << 64) + (int(self.state.products_low) & (1 << 64) - 1)
        return Lag(self.state.pairs, products, self.state.catch_up_pairs)

    def blocks(self) -> BlockCounts | None:
        if not self.plan:
            return None
        counter = dependence.BlockCounter(self.series, self.plan)
        # Class c is above exactly c levels, so a level is exceeded by every class beyond it.
        beyond = np.cumsum(self._above[:, ::-1], axis=1)[:, ::-1]
        counter.add_counted(beyond[:, 0].copy(), beyond[:, 1:].T.copy(), self.gaps())
        return counter.result()


def _classes(levels: Int64Array) -> NDArray[np.uint32]:
    """For each value of the window, the number of levels below it, in the bits above those of a count."""
    edges = np.clip(levels + 1, 0, WINDOW)
    sizes = np.diff(edges, prepend=0, append=WINDOW)
    return np.repeat(np.arange(levels.size + 1, dtype=np.uint32) << COUNT_BITS, sizes)


def scan_task(task: TaskScan, path: str, refs: Sequence[ChunkRef], lead: int, library: Scanner) -> int:
    """Count the chunks; the code of the last call. RecordError if the file has changed since it was opened."""
    with open_regular(path) as file:
        for piece in tally.array_pieces(np.array([ref.count for ref in refs], np.int64), MOST_SAMPLES):
            some = refs[piece]
            data, start = _read(file.fileno(), some)
            length = np.array([ref.length for ref in some], np.int64)
            code = library.scan(task.state, data, start, length, lead) if data.size else CHANGED
            if code == CHANGED:
                raise RecordError(f"{path} has changed since it was opened: samples from {some[0].offset} on are gone")
            if code != DONE:
                return code
            task.drain()
            lead = max(lead - len(some), 0)
    return DONE


def _read(descriptor: int, refs: Sequence[ChunkRef]) -> tuple[NDArray[np.uint8], Int64Array]:
    """The bytes of the chunks, and where each begins in them. No bytes if the file ends too early."""
    sizes = np.array([CHUNK_HEADER.size + padded(ref.length) for ref in refs], np.int64)
    places = np.cumsum(sizes) - sizes
    data = np.empty(int(sizes.sum()), np.uint8)
    for ref, place, size in zip(refs, places.tolist(), sizes.tolist(), strict=True):
        if os.preadv(descriptor, [data[place : place + size].data], ref.offset - CHUNK_HEADER.size) < size:
            return data[:0], places
    return data, places
