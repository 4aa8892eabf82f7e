# SPDX-License-Identifier: Apache-2.0
"""Joining blocks of samples to long stretches, because numpy is fast on long arrays only."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.record import Block, Int64Array

LONGEST = 1 << 18
"""Samples after which a stretch is handed on (2 MiB)."""
TAIL = 2


@dataclass(frozen=True)
class Stretch:
    """Samples whose activation indices follow on from each other, and the last few before them in the same slice."""

    block: Block
    tail: Block | None


def activations(block: Block) -> int:
    """Activations that the block stands for, those that ran and those that were missed."""
    return int(block.values.size + block.gap_missed.sum())


def stretches(blocks: Iterable[Block], slice_starts: Int64Array, lead: int = 0) -> Iterator[Stretch]:
    """Join the blocks of one series; a stretch ends at a hole, at the end of a slice, or when it is long.

    slice_starts: sorted due times at which the slices of the record's summary begin. The first ``lead`` blocks are tail
    only.
    """
    waiting: list[Block] = []
    tail: Block | None = None
    for number, block in enumerate(blocks):
        follows = bool(waiting) and _follows(waiting[-1], block, slice_starts)
        if waiting and (not follows or number == lead or sum(b.values.size for b in waiting) >= LONGEST):
            whole = join(waiting)
            if number > lead:
                yield Stretch(whole, tail)
            tail, waiting = _last(whole, TAIL) if follows else None, []
        waiting.append(block)
    if waiting:
        yield Stretch(join(waiting), tail)


def join(blocks: list[Block]) -> Block:
    """One block of several that follow on from each other."""
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0] + [block.values.size for block in blocks[:-1]])
    first = blocks[0]
    return Block(
        first.series,
        first.first_index,
        first.first_due_ns,
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.gap_position + start for block, start in zip(blocks, starts, strict=True)]),
        np.concatenate([block.gap_missed for block in blocks]),
    )


def _follows(earlier: Block, later: Block, slice_starts: Int64Array) -> bool:
    if later.first_index != earlier.first_index + activations(earlier):
        return False
    before, after = np.searchsorted(slice_starts, (earlier.first_due_ns, later.first_due_ns), side="right")
    return bool(before == after)


def _last(block: Block, most: int) -> Block:
    """The last samples of a block. Their index and due time are not needed for what tails are for, and not kept."""
    start = max(block.values.size - most, 0)
    kept = block.gap_position >= start
    return Block(block.series, 0, 0, block.values[start:], block.gap_position[kept] - start, block.gap_missed[kept])
