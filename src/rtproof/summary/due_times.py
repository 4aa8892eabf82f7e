# SPDX-License-Identifier: Apache-2.0
"""Due times of activations, and blocks of samples joined to long arrays, because numpy is fast on long arrays only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.record.contents import Block, Int64Array, Series

# Due times off the grid: each follows from the one before, unless a block tells it anew.
#
# Behind a sleep it is the last wake-up and a period (docs/record-format.md, SAMPLES). Events from outside come when
# they
# like, so an agent begins a new block where they have drifted too far from their period. Such blocks may be short,
# and
# are still joined to long arrays.


@dataclass(frozen=True)
class PreviousDueTime:
    """Positions in joined blocks at which one began, the first of them 0, and the due times that these blocks told."""

    positions: Int64Array
    due_ns: Int64Array


def off_grid_due_times(series: Series, block: Block, told: PreviousDueTime | None = None) -> Int64Array:
    """Due time of every sample of a block, or of joined blocks that told theirs."""
    derived: Int64Array = block.first_due_ns + np.concatenate(([0], np.cumsum(_steps(series, block))))
    if told is None:
        return derived
    lengths = np.diff(told.positions, append=block.values.size)
    shifted: Int64Array = derived + np.repeat(told.due_ns - derived[told.positions], lengths)
    return shifted


def _steps(series: Series, block: Block) -> Int64Array:
    """From each due time to that of the next sample."""
    if not series.by_period:
        return block.values[:-1] + series.period_ns
    steps = np.full(block.values.size - 1, series.period_ns)
    inside = block.gap_position < steps.size
    steps[block.gap_position[inside]] += block.gap_missed[inside] * series.period_ns
    return steps


LONGEST = 1 << 18
"""Samples after which a stretch is handed on (2 MiB): longer ones leave the cache, shorter ones cost more calls."""
TAIL = 2
"""Samples before a stretch that its first pairs and cycles begin with."""


NO_CUTS = np.empty(0, np.int64)
"""For those who look at no pairs."""


@dataclass(frozen=True)
class SampleStretch:
    """Samples whose activation indices follow on from each other.

    cuts: positions of samples that begin a slice of the record's summary; no pair reaches across one. tail: the last
    blocks before, whose pairs with the stretch are its own, and None behind a hole. told: what the blocks told of
    their due times, which off the grid cannot all be derived from the first.
    """

    block: Block
    cuts: Int64Array
    tail: "SampleStretch | None" = None
    told: PreviousDueTime | None = None


def count_activations(block: Block) -> int:
    """Activations that the block stands for, those that ran and those that were missed."""
    return int(block.values.size + block.gap_missed.sum())


def sample_stretches(
    blocks: Iterable[Block], slice_starts: Int64Array = NO_CUTS, lead: int = 0
) -> Iterator[SampleStretch]:
    """Join the blocks of one series; a stretch ends at a hole or when it is long.

    slice_starts: sorted due times at which the slices of the record's summary begin; each begins a block. The first
    ``lead`` blocks are tail only.
    """
    waiting: list[Block] = []
    size = 0
    tail: SampleStretch | None = None
    for number, block in enumerate(blocks):
        follows = bool(waiting) and block.first_index == waiting[-1].first_index + count_activations(waiting[-1])
        if waiting and (not follows or number == lead or size >= LONGEST):
            whole = _stretch(waiting, slice_starts, tail)
            if number > lead:
                yield whole
            tail, waiting, size = _tail(whole) if follows else None, [], 0
        waiting.append(block)
        size += block.values.size
    if waiting:
        yield _stretch(waiting, slice_starts, tail)


def join_blocks(a: SampleStretch, b: SampleStretch) -> SampleStretch:
    """Two stretches of which the second follows on from the first."""
    size = a.block.values.size
    told = None
    if a.told and b.told:
        places = np.concatenate((a.told.positions, b.told.positions + size))
        told = PreviousDueTime(places, np.concatenate((a.told.due_ns, b.told.due_ns)))
    return SampleStretch(_join([a.block, b.block]), np.concatenate((a.cuts, b.cuts + size)), None, told)


def _stretch(blocks: list[Block], slice_starts: Int64Array, tail: SampleStretch | None) -> SampleStretch:
    starts = _starts(blocks)
    due = np.array([block.first_due_ns for block in blocks])
    begins = np.searchsorted(slice_starts, due, side="right") > np.searchsorted(slice_starts, due)
    return SampleStretch(_join(blocks), starts[begins], tail, PreviousDueTime(starts, due))


def _starts(blocks: list[Block]) -> Int64Array:
    return np.cumsum([0] + [block.values.size for block in blocks[:-1]])


def _join(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    return Block(
        first.series,
        first.first_index,
        first.first_due_ns,
        np.concatenate([block.values for block in blocks]),
        np.concatenate([b.gap_position + start for b, start in zip(blocks, _starts(blocks), strict=True)]),
        np.concatenate([block.gap_missed for block in blocks]),
    )


def _tail(stretch: SampleStretch) -> SampleStretch:
    """The last blocks of a stretch, whole, since only their first due time is told. Tails need no index: it is 0."""
    if stretch.tail and stretch.block.values.size < TAIL:
        stretch = join_blocks(stretch.tail, stretch)
    block, told = stretch.block, stretch.told
    assert told is not None
    first = np.searchsorted(told.positions, max(block.values.size - TAIL, 0), side="right") - 1
    start, due_ns = int(told.positions[first]), told.due_ns[first:]
    kept = block.gap_position >= start
    gaps = block.gap_position[kept] - start, block.gap_missed[kept]
    last = Block(block.series, 0, int(due_ns[0]), block.values[start:], *gaps)
    return SampleStretch(
        last, stretch.cuts[stretch.cuts >= start] - start, None, PreviousDueTime(told.positions[first:] - start, due_ns)
    )
