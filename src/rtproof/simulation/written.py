# SPDX-License-Identifier: Apache-2.0
"""A simulated thread as chunks of a record, as an agent would have written them."""

import numpy as np

from rtproof.record import Int64Array, Seconds, Series, SeriesTotals, Slice, View, bins
from rtproof.record.level_writer import LevelWriter
from rtproof.record.series_writer import SeriesWriter, write_seconds
from rtproof.record.slicing import Activations, exact_dot
from rtproof.record.top_writer import TopWriter
from rtproof.record.writer import RecordWriter
from rtproof.simulation.played import BODY_NS, Stretch


class Sampled:
    """Every sample of a thread, and what follows from them. The order within a second is drawn."""

    def __init__(
        self, writer: RecordWriter, series: Series, generator: np.random.Generator, limits_ns: tuple[int, ...] = ()
    ) -> None:
        self._feed = SeriesWriter(writer, series, limits_ns=limits_ns)
        self._generator = generator

    def add(self, some: Stretch) -> None:
        self._feed.add(values_of(some, self._generator))

    def finish(self) -> SeriesTotals:
        return self._feed.finish()


def values_of(some: Stretch, generator: np.random.Generator) -> Int64Array:
    """The latencies of a stretch, activation by activation."""
    edges = some.first_index
    values = np.zeros(int(edges[-1] - edges[0]), np.int64)
    late = some.late.index - edges[0]
    values[late] = some.late.value
    body = np.ones(values.size, np.bool_)
    body[late] = False
    second = np.repeat(np.arange(len(some.body)), some.body.sum(axis=1))
    drawn = np.repeat(np.tile(BODY_NS, len(some.body)), some.body.ravel())
    values[body] = drawn[np.lexsort((generator.random(drawn.size), second))]
    return values


class Counted:
    """Only the summary of a thread. What is above a limit is only counted where no usual activation can be."""

    def __init__(self, writer: RecordWriter, series: Series, limits_ns: tuple[int, ...] = ()) -> None:
        self._writer = writer
        self._series = series
        self._top = TopWriter(writer, series.id)
        high = tuple(limit for limit in limits_ns if limit >= BODY_NS[-1])
        self._levels = LevelWriter(writer, series, high, learns=False)
        self._obtained = 0

    def add(self, some: Stretch) -> None:
        obtained = some.obtained()
        if not obtained.sum():
            return
        seconds = some.first_second + np.arange(obtained.size)
        write_seconds(self._writer, self._series.id, Seconds(seconds, obtained, 0 * obtained, some.most()))
        late = some.late
        self._levels.add(Activations(late.index, late.due_ns, late.value, np.zeros_like(late.value)))
        self._add_top(some)
        self._writer.summary(slice_of(some))
        self._obtained += int(obtained.sum())

    def finish(self) -> SeriesTotals:
        return SeriesTotals(self._series.id, self._obtained, 0, 0)

    def _add_top(self, some: Stretch) -> None:
        """Late ones are above all others, which only fill what is empty."""
        late, series = some.late, self._series
        index, value = late.index, late.value
        if self._top.lacks > value.size:
            body_index, body = largest_of_body(some, self._top.lacks)
            index, value = np.concatenate((index, body_index)), np.concatenate((value, body))
        if value.size:
            self._top.add(index, series.first_due_ns + index * series.period_ns, value)


def largest_of_body(some: Stretch, count: int) -> tuple[Int64Array, Int64Array]:
    """Index and latency of the largest that no event made late; in each second the largest ones come first."""
    size = np.arange(len(some.body) * BODY_NS.size)
    second, place = size % len(some.body), BODY_NS.size - 1 - size // len(some.body)
    counts = some.body[second, place]
    reach = int(np.searchsorted(np.cumsum(counts), count)) + 1
    second, place, counts = second[:reach], place[:reach], counts[:reach]
    free = [_free_places(some, at, int(counts[second == at].sum())) for at in range(len(some.body))]
    taken = np.zeros(len(some.body), np.int64)
    index = [np.zeros(0, np.int64)]
    for at, n in zip(second.tolist(), counts.tolist(), strict=True):
        index.append(free[at][taken[at] : taken[at] + n])
        taken[at] += n
    return np.concatenate(index)[:count], np.repeat(BODY_NS[place], counts)[:count]


def _free_places(some: Stretch, second: int, count: int) -> Int64Array:
    """The first activations of a second that are not late."""
    first = int(some.first_index[second])
    there = np.arange(first, first + count + some.late.index.size)
    return there[~np.isin(there, some.late.index)][:count]


def slice_of(some: Stretch) -> Slice:
    """The summary of a stretch in which something was due."""
    edges, series = some.first_index, some.series
    value = np.concatenate((BODY_NS, some.late.value))
    count = np.concatenate((some.body.sum(axis=0), np.ones_like(some.late.value)))
    value, count = value[count > 0], count[count > 0]
    places, which = np.unique(bins.index(value), return_inverse=True)
    return Slice(
        series=series.id,
        view=View.OBSERVED,
        first_due_ns=series.first_due_ns + int(edges[0]) * series.period_ns,
        last_due_ns=series.first_due_ns + (int(edges[-1]) - 1) * series.period_ns,
        count=int(count.sum()),
        lost=0,
        min=int(value.min()),
        max=int(value.max()),
        sum=exact_dot(value, count),
        sum_squares=sum(v * v * n for v, n in zip(value.tolist(), count.tolist(), strict=True)),
        pairs=0,
        sum_products=0,
        catch_up_pairs=0,
        bins=places,
        bin_counts=np.bincount(which, weights=count).astype(np.int64),
    )
