# SPDX-License-Identifier: Apache-2.0
"""The loops of a periodic application: how late each began, how long it worked and took, and how much time was left.

``Envelope`` thins a long series for a plot: it keeps the smallest and the largest value of equal stretches.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import Int64Array, Record, Series
from rtproof.summary import moments
from rtproof.summary.fields import AlignedFields, aligned_fields, series_by_field
from rtproof.summary.summary_model import NO_MOMENTS, Moments

LOOP_FIELDS = ("top", "start", "end")
LOOP_STATISTICS: tuple[tuple[str, Callable[[Moments], float | None]], ...] = (
    ("minimum", lambda of: of.min if of.count else None),
    ("maximum", lambda of: of.max if of.count else None),
    ("average", lambda of: of.mean),
    ("standard deviation", lambda of: of.deviation),
)
"""The rows of article 3's table 1."""
RELATION_NS = 1_000
"""A sum of loop times may differ so much per loop from the time that passed, before the one or the other is wrong."""


@dataclass(frozen=True)
class Loops:
    """Loops of one thread in order; times count from the origin.

    followed: whether the next loop is known too, so that loop_ns and slack_ns mean something. slack_ns: from the end of
    the work to the next target; the loop slept behind its work exactly if it is positive.
    """

    thread: int
    index: Int64Array
    target_ns: Int64Array
    top_ns: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    followed: NDArray[np.bool_]
    loop_ns: Int64Array
    slack_ns: Int64Array

    @property
    def error_ns(self) -> Int64Array:
        """How late the top of the loop was."""
        return self.top_ns - self.target_ns

    @property
    def work_ns(self) -> Int64Array:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class ApplicationLoops:
    """All loops of a thread, or of several together.

    loop and slack are of loops that are followed. no_sleep: those of them that did not sleep. elapsed_ns: from the
    first top to the last; apart: how often the loops in between are not all known. length: one more than the index of
    the last loop.
    """

    work: Moments = NO_MOMENTS
    loop: Moments = NO_MOMENTS
    error: Moments = NO_MOMENTS
    slack: Moments = NO_MOMENTS
    no_sleep: int = 0
    elapsed_ns: int = 0
    apart: int = 0
    length: int = 0


def is_app(record: Record) -> bool:
    """Whether a record tells of such loops; any probe with these fields does."""
    return tuple(group[0].field for group in series_by_field(record)) == LOOP_FIELDS


def has_samples(record: Record) -> bool:
    return all(series.has_samples for series in record.series)


def application_loops(record: Record) -> Iterator[Loops]:
    """Every loop, thread after thread, in pieces that fit memory; what a piece ends with is followed by the next."""
    for fields in _threads(record):
        yield from _of_thread(record, fields)


def loops_of_threads(record: Record) -> dict[int, ApplicationLoops]:
    """Every thread of a record with samples."""
    parts: dict[int, list[ApplicationLoops]] = {}
    tops: dict[int, tuple[int, int]] = {}
    for piece in application_loops(record):
        parts.setdefault(piece.thread, []).append(_of_piece(piece))
        first = tops.get(piece.thread, (int(piece.top_ns[0]),))[0]
        tops[piece.thread] = (first, int(piece.top_ns[-1]))
    return {thread: _whole(loops_of_all_threads(some), *tops[thread]) for thread, some in parts.items()}


def loops_of_all_threads(parts: Iterable[ApplicationLoops]) -> ApplicationLoops:
    """Parts of a thread, or several threads, whose elapsed times add up as their loop times do."""
    some = list(parts)
    return ApplicationLoops(
        work=moments.merge_moments(part.work for part in some),
        loop=moments.merge_moments(part.loop for part in some),
        error=moments.merge_moments(part.error for part in some),
        slack=moments.merge_moments(part.slack for part in some),
        no_sleep=sum(part.no_sleep for part in some),
        elapsed_ns=sum(part.elapsed_ns for part in some),
        apart=sum(part.apart for part in some),
        length=max((part.length for part in some), default=0),
    )


def loop_lateness(
    least_ns: float | None, mean_ns: float | None, most_ns: float | None, deviation_ns: float | None
) -> tuple[tuple[str, float | None], ...]:
    """The two parts of a timing error: what a coarse timer adds to all loops is in no loop time, the rest is."""
    beyond = [None if least_ns is None or ns is None else ns - least_ns for ns in (mean_ns, most_ns)]
    return (
        ("constant: every loop, at least", least_ns),
        ("varying: beyond that, average", beyond[0]),
        ("varying: beyond that, maximum", beyond[1]),
        ("varying: standard deviation", deviation_ns),
    )


def relation_holds(loop_times: int, loop_sum_ns: int, elapsed_ns: int) -> bool:
    """Whether loop times add up to the time from the first top to the last, within RELATION_NS per loop.

    It fails where loops are missing, counted twice, or measured by another clock than the tops.
    """
    return abs(loop_sum_ns - elapsed_ns) <= RELATION_NS * loop_times


def _threads(record: Record) -> list[tuple[Series, ...]]:
    """The fields of every thread that has them all."""
    found: dict[int, list[Series]] = {}
    for group in series_by_field(record):
        for series in group:
            found.setdefault(series.thread, []).append(series)
    return [tuple(fields) for fields in found.values() if len(fields) == len(LOOP_FIELDS)]


def _of_thread(record: Record, fields: tuple[Series, ...]) -> Iterator[Loops]:
    """A row waits until it is known what follows."""
    waiting: AlignedFields | None = None
    for piece in aligned_fields(record, fields):
        rows = piece if waiting is None else _join(waiting, piece)
        if rows.index.size > 1:
            yield _loops(fields[0].thread, rows, rows.index.size - 1)
        waiting = _last(rows)
    if waiting is not None and waiting.index.size:
        yield _loops(fields[0].thread, waiting, 1)


def _join(a: AlignedFields, b: AlignedFields) -> AlignedFields:
    values = tuple(np.concatenate(pair) for pair in zip(a.values, b.values, strict=True))
    return AlignedFields(np.concatenate((a.index, b.index)), np.concatenate((a.due_ns, b.due_ns)), values)


def _last(rows: AlignedFields) -> AlignedFields:
    return AlignedFields(rows.index[-1:], rows.due_ns[-1:], tuple(values[-1:] for values in rows.values))


def _loops(thread: int, rows: AlignedFields, count: int) -> Loops:
    """The first so many rows, with what the ones behind them tell."""
    top, start, end = (rows.due_ns + values for values in rows.values)
    followed = np.append(np.diff(rows.index) == 1, False)[:count]
    loop, slack = np.append(np.diff(top), 0)[:count], np.append(rows.due_ns[1:] - end[:-1], 0)[:count]
    return Loops(
        thread,
        rows.index[:count],
        rows.due_ns[:count],
        top[:count],
        start[:count],
        end[:count],
        followed,
        np.where(followed, loop, 0),
        np.where(followed, slack, 0),
    )


def _of_piece(piece: Loops) -> ApplicationLoops:
    known, slack = piece.followed, piece.slack_ns[piece.followed]
    return ApplicationLoops(
        work=moments.moments_of_values(piece.work_ns),
        loop=moments.moments_of_values(piece.loop_ns[known]),
        error=moments.moments_of_values(piece.error_ns),
        slack=moments.moments_of_values(slack),
        no_sleep=int(np.count_nonzero(slack <= 0)),
        apart=int(np.count_nonzero(~known)),
        length=int(piece.index[-1]) + 1,
    )


def _whole(app: ApplicationLoops, first_top_ns: int, last_top_ns: int) -> ApplicationLoops:
    """The last loop of a thread is followed by none, which is no hole."""
    return replace(app, elapsed_ns=last_top_ns - first_top_ns, apart=app.apart - 1)


MOST_POINTS = 1_000


@dataclass(frozen=True)
class DrawnPoints:
    """Positions at which stretches of ``width`` begin, and the ends of the values in each; none without a value."""

    width: int
    at: Int64Array
    low: Int64Array
    high: Int64Array


class Envelope:
    """Takes values piece by piece. length: how many positions there are; most: how many points may be drawn."""

    def __init__(self, length: int, most: int = MOST_POINTS) -> None:
        self._width = 1 if length <= most else -(-2 * length // most)
        stretches = -(-length // self._width)
        limits = np.iinfo(np.int64)
        self._low = np.full(stretches, limits.max)
        self._high = np.full(stretches, limits.min)

    def add(self, at: Int64Array, values: Int64Array) -> None:
        """Values at positions from 0 to below the length."""
        np.minimum.at(self._low, at // self._width, values)
        np.maximum.at(self._high, at // self._width, values)

    def result(self) -> DrawnPoints:
        some = np.flatnonzero(self._low <= self._high)
        return DrawnPoints(self._width, some * self._width, self._low[some], self._high[some])
