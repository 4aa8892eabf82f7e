# SPDX-License-Identifier: Apache-2.0
"""Joining blocks of samples to long stretches, because numpy is fast on long arrays only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.duetimes import Told
from rtproof.record import Block, Int64Array

LONGEST = 1 << 18
"""Samples after which a stretch is handed on (2 MiB): longer ones leave the cache, shorter ones cost more calls."""
TAIL = 2
"""Samples before a stretch that its first pairs and cycles begin with."""


NO_CUTS = np.empty(0, np.int64)
"""For those who look at no pairs."""


@dataclass(frozen=True)
class Stretch:
    """Samples whose activation indices follow on from each other.

    cuts: positions of samples that begin a slice of the record's summary; no pair reaches across one. tail: the last
    blocks before, whose pairs with the stretch are its own, and None behind a hole. told: what the blocks told of
    their due times, which off the grid cannot all be derived from the first.
    """

    block: Block
    cuts: Int64Array
    tail: "Stretch | None" = None
    told: Told | None = None


def activations(block: Block) -> int:
    """Activations that the block stands for, those that ran and those that were missed."""
    return int(block.values.size + block.gap_missed.sum())


def stretches(blocks: Iterable[Block], slice_starts: Int64Array = NO_CUTS, lead: int = 0) -> Iterator[Stretch]:
    """Join the blocks of one series; a stretch ends at a hole or when it is long.

    slice_starts: sorted due times at which the slices of the record's summary begin; each begins a block. The first
    ``lead`` blocks are tail only.
    """
    waiting: list[Block] = []
    size = 0
    tail: Stretch | None = None
    for number, block in enumerate(blocks):
        follows = bool(waiting) and block.first_index == waiting[-1].first_index + activations(waiting[-1])
        if waiting and (not follows or number == lead or size >= LONGEST):
            whole = _stretch(waiting, slice_starts, tail)
            if number > lead:
                yield whole
            tail, waiting, size = _tail(whole) if follows else None, [], 0
        waiting.append(block)
        size += block.values.size
    if waiting:
        yield _stretch(waiting, slice_starts, tail)


def join(a: Stretch, b: Stretch) -> Stretch:
    """Two stretches of which the second follows on from the first."""
    size = a.block.values.size
    told = None
    if a.told and b.told:
        places = np.concatenate((a.told.positions, b.told.positions + size))
        told = Told(places, np.concatenate((a.told.due_ns, b.told.due_ns)))
    return Stretch(_join([a.block, b.block]), np.concatenate((a.cuts, b.cuts + size)), None, told)


def _stretch(blocks: list[Block], slice_starts: Int64Array, tail: Stretch | None) -> Stretch:
    starts = _starts(blocks)
    due = np.array([block.first_due_ns for block in blocks])
    begins = np.searchsorted(slice_starts, due, side="right") > np.searchsorted(slice_starts, due)
    return Stretch(_join(blocks), starts[begins], tail, Told(starts, due))


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


def _tail(stretch: Stretch) -> Stretch:
    """The last blocks of a stretch, whole, since only their first due time is told. Tails need no index: it is 0."""
    if stretch.tail and stretch.block.values.size < TAIL:
        stretch = join(stretch.tail, stretch)
    block, told = stretch.block, stretch.told
    assert told is not None
    first = np.searchsorted(told.positions, max(block.values.size - TAIL, 0), side="right") - 1
    start, due_ns = int(told.positions[first]), told.due_ns[first:]
    kept = block.gap_position >= start
    gaps = block.gap_position[kept] - start, block.gap_missed[kept]
    last = Block(block.series, 0, int(due_ns[0]), block.values[start:], *gaps)
    return Stretch(
        last, stretch.cuts[stretch.cuts >= start] - start, None, Told(told.positions[first:] - start, due_ns)
    )
