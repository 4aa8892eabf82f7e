# SPDX-License-Identifier: Apache-2.0
"""Several fields of one activation: which series belong together, and the time from one stage to the next.

Values of one activation are found by its index. A limit judges one of the fields.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from rtproof.record.contents import Int64Array, Record, Series
from rtproof.summary.per_second import stretches
from rtproof.summary.summary_model import Summary, Switch
from rtproof.summary.tally import Tally


@dataclass(frozen=True)
class AlignedFields:
    """The activations for which every field has a value, in order. values: one array for each field.

    alone: the number of values in the same stretch of time whose activation lacks another field.
    """

    index: Int64Array
    due_ns: Int64Array
    values: tuple[Int64Array, ...]
    alone: int = 0

    def part(self, where: slice | Int64Array) -> "AlignedFields":
        return AlignedFields(self.index[where], self.due_ns[where], tuple(each[where] for each in self.values))

    def then(self, later: "AlignedFields") -> "AlignedFields":
        values = tuple(np.concatenate(pair) for pair in zip(self.values, later.values, strict=True))
        index, due_ns = np.concatenate((self.index, later.index)), np.concatenate((self.due_ns, later.due_ns))
        return AlignedFields(index, due_ns, values)

    def at(self, index: Int64Array) -> "AlignedFields":
        """These activations. All of them must be there."""
        return self if index.size == self.index.size else self.part(np.searchsorted(self.index, index))


_NONE = np.empty(0, np.int64)
_NOTHING = AlignedFields(_NONE, _NONE, (_NONE,))


def aligned_fields(record: Record, fields: Sequence[Series]) -> Iterator[AlignedFields]:
    """Yield the fields of one thread, piece by piece. Memory is bounded, whatever the length of the run."""
    sources = [_pieces(record, series) for series in fields]
    heads = [next(source, _NOTHING) for source in sources]
    while all(head.index.size for head in heads):
        end = min(head.index[-1] for head in heads)
        ends = [int(np.searchsorted(head.index, end, side="right")) for head in heads]
        yield _common([head.part(slice(at)) for head, at in zip(heads, ends, strict=True)])
        rests = [head.part(slice(at, None)) for head, at in zip(heads, ends, strict=True)]
        both = zip(rests, sources, strict=True)
        heads = [rest if rest.index.size else next(source, _NOTHING) for rest, source in both]
    alone = sum(piece.index.size for rest in (heads, *sources) for piece in rest)
    yield AlignedFields(_NONE, _NONE, tuple(_NONE for _ in fields), alone)


def _pieces(record: Record, series: Series) -> Iterator[AlignedFields]:
    for some, _ in stretches(series, record.blocks(series.id)):
        yield AlignedFields(some.index, some.due_ns, (some.value,))


def _common(pieces: list[AlignedFields]) -> AlignedFields:
    index = reduce(_both, (piece.index for piece in pieces))
    found = [piece.at(index) for piece in pieces]
    alone = sum(piece.index.size for piece in pieces) - len(pieces) * index.size
    return AlignedFields(index, found[0].due_ns, tuple(piece.values[0] for piece in found), alone)


def _both(a: Int64Array, b: Int64Array) -> Int64Array:
    return a if np.array_equal(a, b) else np.intersect1d(a, b, assume_unique=True)


# Each field of each thread is a series of its own. The last field is the deepest stage: the whole reaction. A limit
# judges the last field, and all that is said of a record with one field is said of the last field.


SeriesByField = tuple[tuple[Series, ...], ...]


def series_by_field(record: Record) -> SeriesByField:
    """For each field in order, the series of all threads that have it."""
    threads: dict[int, list[Series]] = defaultdict(list)
    for series in record.series:
        threads[series.thread].append(series)
    whole = max(threads.values(), key=len, default=[])
    places = {series.field: place for place, series in enumerate(whole)} if len(whole) > 1 else {}
    return tuple(
        tuple(series for series in record.series if places.get(series.field, 0) == place) for place in range(len(whole))
    )


def judged_series(record: Record) -> tuple[Series, ...]:
    """The series of the last field, one for each thread."""
    return series_by_field(record)[-1] if record.series else ()


def summaries_of_field(summaries: tuple[Summary, ...], field: tuple[Series, ...]) -> tuple[Summary, ...]:
    """The summaries of one field's series."""
    ids = {series.id for series in field}
    return tuple(summary for summary in summaries if summary.series.id in ids)


def stage_switches(record: Record, fields: SeriesByField) -> tuple[Switch, ...]:
    """The times between neighbouring fields, over all threads; empty if samples were not recorded."""
    if not all(series.has_samples for group in fields for series in group):
        return ()
    return tuple(_switch(record, earlier, later) for earlier, later in pairwise(fields))


def _switch(record: Record, earlier: tuple[Series, ...], later: tuple[Series, ...]) -> Switch:
    tally, unpaired = Tally(), 0
    by_thread = {series.thread: series for series in earlier}
    for series in later:
        before = by_thread.get(series.thread)
        for part in aligned_fields(record, (before, series)) if before else ():
            tally.add(part.values[1] - part.values[0])
            unpaired += part.alone
    counted = tally.result()
    backwards = int(counted.counts.n[counted.counts.hi < 0].sum())
    return Switch(earlier[0].field, later[0].field, counted.counts, counted.moments, backwards, unpaired)
