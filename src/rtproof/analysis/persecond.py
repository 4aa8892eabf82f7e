# SPDX-License-Identifier: Apache-2.0
"""Per-second numbers of samples. An activation belongs to the second of its due time."""

from collections.abc import Iterable

import numpy as np

from rtproof.analysis.duetimes import Told, off_grid
from rtproof.record import Block, Int64Array, Seconds, Series

SECOND_NS = 1_000_000_000
NONE = Seconds(*(np.empty(0, np.int64) for _ in range(4)))


def of_block(series: Series, block: Block, told: Told | None = None) -> Seconds:
    """Seconds in which an activation of the block was due. told: due times of the blocks joined in it."""
    if series.on_grid and series.period_ns:
        return _on_grid(series.period_ns, block)
    return _off_grid(series.period_ns, block, off_grid(series, block, told))


def merge(parts: Iterable[Seconds]) -> Seconds:
    """Counts of the same second add, the larger maximum holds."""
    return _combine(list(parts), np.add)


def join(a: Seconds, b: Seconds) -> Seconds:
    """Two sources on the same activations, either of which may lack some: the larger number of each holds."""
    return _combine([a, b], np.maximum)


def _combine(parts: list[Seconds], counts: np.ufunc) -> Seconds:
    second = np.concatenate([part.second for part in parts] or [NONE.second])
    if not second.size:
        return NONE
    distinct, place = np.unique(second, return_inverse=True)
    obtained, missed = np.zeros((2, distinct.size), np.int64)
    largest = np.full(distinct.size, np.iinfo(np.int64).min)
    ran = np.concatenate([part.obtained for part in parts])
    counts.at(obtained, place, ran)
    counts.at(missed, place, np.concatenate([part.missed for part in parts]))
    np.maximum.at(largest, place[ran > 0], np.concatenate([part.max for part in parts])[ran > 0])
    return Seconds(distinct, obtained, missed, np.where(obtained > 0, largest, 0))


def _on_grid(period: int, block: Block) -> Seconds:
    """The grid is cut at the seconds; due times of single samples are never computed."""
    length = block.values.size + int(block.gap_missed.sum())
    first, last = block.first_due_ns // SECOND_NS, (block.first_due_ns + (length - 1) * period) // SECOND_NS
    second = np.arange(first, last + 1)
    due = -((block.first_due_ns - np.append(second, last + 1) * SECOND_NS) // period)
    cut = np.clip(due, 0, length)
    position = samples_before(block, cut)
    obtained = np.diff(position)
    return Seconds(second, obtained, np.diff(cut) - obtained, _maxima(block.values, position[:-1], obtained))


def samples_before(block: Block, cut: Int64Array) -> Int64Array:
    """How many samples lie before a place on the grid, counted from the first sample of the block."""
    if not block.gap_position.size:
        return cut
    missed = np.concatenate(([0], np.cumsum(block.gap_missed)))
    resumes = block.gap_position + 1 + missed[1:]
    gap = np.searchsorted(resumes, cut, side="right")
    pauses = np.append(block.gap_position + 1, block.values.size)
    before: Int64Array = np.minimum(cut - missed[gap], pauses[gap])
    return before


def _maxima(values: Int64Array, start: Int64Array, obtained: Int64Array) -> Int64Array:
    """Largest value of each second, 0 where there is none (reduceat would give the next second's first value)."""
    maxima = np.zeros(obtained.size, np.int64)
    ran = obtained > 0
    maxima[ran] = np.maximum.reduceat(values, start[ran])
    return maxima


def _off_grid(period: int, block: Block, due: Int64Array) -> Seconds:
    second, start = np.unique(due // SECOND_NS, return_index=True)
    obtained = np.diff(np.append(start, block.values.size))
    ran = Seconds(second, obtained, np.zeros_like(obtained), np.maximum.reduceat(block.values, start))
    return merge((ran, _missed_off_grid(period, block, due))) if block.gap_position.size else ran


def _missed_off_grid(period: int, block: Block, due: Int64Array) -> Seconds:
    order = np.concatenate([np.arange(1, missed + 1) for missed in block.gap_missed])
    missed_due = np.repeat(due[block.gap_position], block.gap_missed) + order * period
    second, n = np.unique(missed_due // SECOND_NS, return_counts=True)
    return Seconds(second, np.zeros_like(second), n.astype(np.int64), np.zeros_like(second))
