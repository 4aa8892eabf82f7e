# SPDX-License-Identifier: Apache-2.0
"""Several fields of one thread side by side: the values of the same activation, found by its index."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rtproof.analysis import tops
from rtproof.analysis.stretch import NO_CUTS, stretches
from rtproof.record import Int64Array, Record, Series


@dataclass(frozen=True)
class Aligned:
    """Activations of which every field has a value, in order. values: one array per field.

    alone: values of the same stretch of time whose activation lacks another field.
    """

    index: Int64Array
    due_ns: Int64Array
    values: tuple[Int64Array, ...]
    alone: int = 0


@dataclass(frozen=True)
class _Piece:
    """Some samples of one series."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array

    def split(self, at: int) -> "tuple[_Piece, _Piece]":
        return self._part(slice(at)), self._part(slice(at, None))

    def at(self, index: Int64Array) -> "_Piece":
        """The samples of these activations, all of which must be there."""
        if index.size == self.index.size:
            return self
        return self._part(np.searchsorted(self.index, index))

    def _part(self, where: slice | Int64Array) -> "_Piece":
        return _Piece(self.index[where], self.due_ns[where], self.value[where])


_NOTHING = _Piece(NO_CUTS, NO_CUTS, NO_CUTS)


def aligned(record: Record, fields: Sequence[Series]) -> Iterator[Aligned]:
    """The fields of one thread, piece by piece, so that memory is bounded whatever the length of the run."""
    sources = [_pieces(record, series) for series in fields]
    heads = [next(source, _NOTHING) for source in sources]
    while all(head.index.size for head in heads):
        end = min(head.index[-1] for head in heads)
        parts = [head.split(int(np.searchsorted(head.index, end, side="right"))) for head in heads]
        yield _common([first for first, _ in parts])
        rests = zip((rest for _, rest in parts), sources, strict=True)
        heads = [rest if rest.index.size else next(source, _NOTHING) for rest, source in rests]
    alone = sum(piece.index.size for rest in (heads, *sources) for piece in rest)
    yield Aligned(NO_CUTS, NO_CUTS, tuple(NO_CUTS for _ in fields), alone)


def _pieces(record: Record, series: Series) -> Iterator[_Piece]:
    for stretch in stretches(record.blocks(series.id)):
        block = stretch.block
        yield _Piece(*tops.place(series, block, np.arange(block.values.size), stretch.told), block.values)


def _common(pieces: list[_Piece]) -> Aligned:
    index = reduce(_both, (piece.index for piece in pieces))
    found = [piece.at(index) for piece in pieces]
    alone = sum(piece.index.size for piece in pieces) - len(pieces) * index.size
    return Aligned(index, found[0].due_ns, tuple(piece.value for piece in found), alone)


def _both(a: Int64Array, b: Int64Array) -> Int64Array:
    return a if np.array_equal(a, b) else np.intersect1d(a, b, assume_unique=True)
