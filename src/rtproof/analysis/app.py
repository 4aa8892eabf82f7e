# SPDX-License-Identifier: Apache-2.0
"""A periodic application's loops: how late each began, how long it worked, how long it took in all, and what was spare.

The program of article 3 sleeps until a target, works, and sleeps again, unless the next target has passed by then. Its
loops are told by three fields (docs/record-format.md). A loop lasts from its top to the next one's, so with absolute
targets a late top makes one loop longer and the one behind it shorter by the same amount.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis import moments
from rtproof.analysis.aligned import Aligned, aligned
from rtproof.analysis.fields import by_field
from rtproof.analysis.model import NO_MOMENTS, Moments
from rtproof.record import Int64Array, Record, Series

FIELDS = ("top", "start", "end")
STATISTICS: tuple[tuple[str, Callable[[Moments], float | None]], ...] = (
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
class App:
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
    return tuple(group[0].field for group in by_field(record)) == FIELDS


def has_samples(record: Record) -> bool:
    return all(series.has_samples for series in record.series)


def loops(record: Record) -> Iterator[Loops]:
    """Every loop, thread after thread, in pieces that fit memory; what a piece ends with is followed by the next."""
    for fields in _threads(record):
        yield from _of_thread(record, fields)


def of_threads(record: Record) -> dict[int, App]:
    """Every thread of a record with samples."""
    parts: dict[int, list[App]] = {}
    tops: dict[int, tuple[int, int]] = {}
    for piece in loops(record):
        parts.setdefault(piece.thread, []).append(_of_piece(piece))
        first = tops.get(piece.thread, (int(piece.top_ns[0]),))[0]
        tops[piece.thread] = (first, int(piece.top_ns[-1]))
    return {thread: _whole(together(some), *tops[thread]) for thread, some in parts.items()}


def together(parts: Iterable[App]) -> App:
    """Parts of a thread, or several threads, whose elapsed times add up as their loop times do."""
    some = list(parts)
    return App(
        work=moments.merge(part.work for part in some),
        loop=moments.merge(part.loop for part in some),
        error=moments.merge(part.error for part in some),
        slack=moments.merge(part.slack for part in some),
        no_sleep=sum(part.no_sleep for part in some),
        elapsed_ns=sum(part.elapsed_ns for part in some),
        apart=sum(part.apart for part in some),
        length=max((part.length for part in some), default=0),
    )


def lateness(
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
    for group in by_field(record):
        for series in group:
            found.setdefault(series.thread, []).append(series)
    return [tuple(fields) for fields in found.values() if len(fields) == len(FIELDS)]


def _of_thread(record: Record, fields: tuple[Series, ...]) -> Iterator[Loops]:
    """A row waits until it is known what follows."""
    waiting: Aligned | None = None
    for piece in aligned(record, fields):
        rows = piece if waiting is None else _join(waiting, piece)
        if rows.index.size > 1:
            yield _loops(fields[0].thread, rows, rows.index.size - 1)
        waiting = _last(rows)
    if waiting is not None and waiting.index.size:
        yield _loops(fields[0].thread, waiting, 1)


def _join(a: Aligned, b: Aligned) -> Aligned:
    values = tuple(np.concatenate(pair) for pair in zip(a.values, b.values, strict=True))
    return Aligned(np.concatenate((a.index, b.index)), np.concatenate((a.due_ns, b.due_ns)), values)


def _last(rows: Aligned) -> Aligned:
    return Aligned(rows.index[-1:], rows.due_ns[-1:], tuple(values[-1:] for values in rows.values))


def _loops(thread: int, rows: Aligned, count: int) -> Loops:
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


def _of_piece(piece: Loops) -> App:
    known, slack = piece.followed, piece.slack_ns[piece.followed]
    return App(
        work=moments.of_values(piece.work_ns),
        loop=moments.of_values(piece.loop_ns[known]),
        error=moments.of_values(piece.error_ns),
        slack=moments.of_values(slack),
        no_sleep=int(np.count_nonzero(slack <= 0)),
        apart=int(np.count_nonzero(~known)),
        length=int(piece.index[-1]) + 1,
    )


def _whole(app: App, first_top_ns: int, last_top_ns: int) -> App:
    """The last loop of a thread is followed by none, which is no hole."""
    return replace(app, elapsed_ns=last_top_ns - first_top_ns, apart=app.apart - 1)
