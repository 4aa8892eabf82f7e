# SPDX-License-Identifier: Apache-2.0
"""The time from one stage of an activation to the next, such as a context switch: differences, not of averages.

Both values belong to the same activation, found by its index, so the result is exact for each, whereas two averages, or
two dominant bins as in article 5, say only how far apart the two distributions lie.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rtproof.analysis import tops
from rtproof.analysis.fields import Fields
from rtproof.analysis.model import Switch
from rtproof.analysis.stretch import NO_CUTS, stretches
from rtproof.analysis.tally import Tally
from rtproof.record import Int64Array, Record, Series


@dataclass(frozen=True)
class _Piece:
    """Some samples of a series; index: of their activations."""

    index: Int64Array
    value: Int64Array

    def split(self, at: int) -> "tuple[_Piece, _Piece]":
        return _Piece(self.index[:at], self.value[:at]), _Piece(self.index[at:], self.value[at:])


_NOTHING = _Piece(NO_CUTS, NO_CUTS)


def switches(record: Record, fields: Fields) -> tuple[Switch, ...]:
    """Between neighbouring fields, over all threads; nothing where samples were not recorded.

    Memory is bounded by the pieces in which samples are read, whatever the length of the run.
    """
    if not all(series.has_samples for group in fields for series in group):
        return ()
    return tuple(_switch(record, earlier, later) for earlier, later in pairwise(fields))


def _switch(record: Record, earlier: tuple[Series, ...], later: tuple[Series, ...]) -> Switch:
    tally, unpaired = Tally(), 0
    by_thread = {series.thread: series for series in earlier}
    for series in later:
        before = by_thread.get(series.thread)
        for difference, alone in _differences(record, before, series) if before else ():
            tally.add(difference)
            unpaired += alone
    counted = tally.result()
    backwards = int(counted.counts.n[counted.counts.hi < 0].sum())
    return Switch(earlier[0].field, later[0].field, counted.counts, counted.moments, backwards, unpaired)


def _differences(record: Record, earlier: Series, later: Series) -> Iterator[tuple[Int64Array, int]]:
    """Differences of the activations that both have, piece by piece, and how many values found no partner."""
    a, b = _pieces(record, earlier), _pieces(record, later)
    left, right = next(a, _NOTHING), next(b, _NOTHING)
    while left.index.size and right.index.size:
        end = min(left.index[-1], right.index[-1])
        first, left = left.split(int(np.searchsorted(left.index, end, side="right")))
        second, right = right.split(int(np.searchsorted(right.index, end, side="right")))
        matched = _matched(first, second)
        yield matched, first.index.size + second.index.size - 2 * matched.size
        left = left if left.index.size else next(a, _NOTHING)
        right = right if right.index.size else next(b, _NOTHING)
    yield NO_CUTS, sum(piece.index.size for rest in ((left, right), a, b) for piece in rest)


def _pieces(record: Record, series: Series) -> Iterator[_Piece]:
    for stretch in stretches(record.blocks(series.id)):
        block = stretch.block
        yield _Piece(tops.place(series, block, np.arange(block.values.size))[0], block.values)


def _matched(earlier: _Piece, later: _Piece) -> Int64Array:
    if np.array_equal(earlier.index, later.index):
        return later.value - earlier.value
    _, at, to = np.intersect1d(earlier.index, later.index, assume_unique=True, return_indices=True)
    difference: Int64Array = later.value[to] - earlier.value[at]
    return difference
