# SPDX-License-Identifier: Apache-2.0
"""The K largest values with their activations: largest first; ties: the earlier first."""

from collections.abc import Iterable, Iterator

import numpy as np

from rtproof.analysis.duetimes import Told, off_grid
from rtproof.record import Block, Int64Array, Series, Top
from rtproof.record.merge import largest

DEFAULT_K = 100


def empty(k: int) -> Top:
    return Top(k, *(np.empty(0, np.int64) for _ in range(3)))


NONE = empty(0)


def of_block(series: Series, block: Block, so_far: Top, told: Told | None = None) -> Top:
    """The K largest so far and of a block together. told: as in ``place``."""
    full = so_far.value.size >= so_far.k
    at = np.flatnonzero(block.values > so_far.value[-1]) if full else np.arange(block.values.size)
    if at.size > so_far.k:
        kth = np.partition(block.values[at], at.size - so_far.k)[at.size - so_far.k]
        at = at[block.values[at] >= kth]
    if not at.size:
        return so_far
    return merge((so_far, Top(so_far.k, *place(series, block, at, told), block.values[at])))


def merge(tops: Iterable[Top]) -> Top:
    """The K largest of all; an activation that is in several counts once."""
    some = list(tops)
    index, due, value = _columns(some)
    return largest(_exact_k(some), index, due, value)


def of_series(tops: dict[int, Top]) -> Top:
    """The K largest of several series, by series id, which the result names for each value."""
    ids = np.concatenate([np.full(top.value.size, series) for series, top in tops.items()])
    index, due, value = _columns(tops.values())
    k = _exact_k(tops.values())
    order = np.lexsort((ids, due, ~value))[:k]
    return Top(k, index[order], due[order], value[order], ids[order])


def place(series: Series, block: Block, at: Int64Array, told: Told | None = None) -> tuple[Int64Array, Int64Array]:
    """Activation index and due time of the samples at some positions of a block. told: of the blocks joined in it."""
    missed = np.concatenate(([0], np.cumsum(block.gap_missed)))[np.searchsorted(block.gap_position, at)]
    offset = at + missed
    if series.on_grid:
        return block.first_index + offset, block.first_due_ns + offset * series.period_ns
    return block.first_index + offset, off_grid(series, block, told)[at]


def _columns(tops: Iterable[Top]) -> Iterator[Int64Array]:
    return (np.concatenate(column) for column in zip(*((t.index, t.due_ns, t.value) for t in tops), strict=True))


def _exact_k(tops: Iterable[Top]) -> int:
    """Of several lists only the smallest K is exact over all; an empty one that was never filled has no say."""
    return min((top.k for top in tops if top.k), default=0)
