# SPDX-License-Identifier: Apache-2.0
"""The activations of a series in long pieces, their numbers of each second, and the largest of their latencies."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import RecordError
from rtproof.record.activations import Activations, largest, number_activations
from rtproof.record.contents import Block, Int64Array, Seconds, Series, Top

LONGEST_GAP_NS = 400 * 86_400 * 1_000_000_000
"""A longer stall must be an error in the data, and its missed activations could not be counted."""
MOST_SECONDS = 40 * 86_400
"""Blocks that were joined have activations in fewer seconds, but for errors in the data: each second takes memory."""


def refuse_impossible_stall(series: Series, block: Block) -> None:
    """RecordError for a stall longer than LONGEST_GAP_NS, or for a value of which due times follow and that is one.

    So it is for a block that is longer, or whose activations are due in more than MOST_SECONDS: these would fill the
    memory.
    """
    longest_ns = int(block.gap_missed.max(initial=0)) * series.period_ns
    if not series.by_period:
        longest_ns = max(longest_ns, int(block.values.max()), -int(block.values.min()))
    if longest_ns > LONGEST_GAP_NS:
        raise _impossible(series, "a stall of", longest_ns)
    due = block.values.size + int(block.gap_missed.sum())
    span_ns = due * series.period_ns
    if series.by_period and (span_ns > LONGEST_GAP_NS or min(due, span_ns // SECOND_NS) > MOST_SECONDS):
        raise _impossible(series, "a run of", span_ns)


def _impossible(series: Series, what: str, span_ns: int) -> RecordError:
    days = span_ns // 86_400_000_000_000
    return RecordError(f"thread {series.thread} claims {what} {days} days: these are no samples")


def join_blocks(series: Series, blocks: Sequence[Block]) -> tuple[Activations, Int64Array]:
    """The activations of some blocks, which state their first index and due time, and where each block begins."""
    sizes = np.array([block.values.size for block in blocks], np.int64)
    starts = np.cumsum(sizes) - sizes
    values = np.concatenate([block.values for block in blocks]) if len(blocks) > 1 else blocks[0].values
    missed = np.zeros_like(values)
    for block, start in zip(blocks, starts.tolist(), strict=True):
        if block.gap_position.size:
            missed[block.gap_position + start] = block.gap_missed
    some = number_activations(series, 0, 0, values, missed)
    index = np.array([block.first_index for block in blocks], np.int64) - some.index[starts]
    due_ns = np.array([block.first_due_ns for block in blocks], np.int64) - some.due_ns[starts]
    places = some.index + np.repeat(index, sizes), some.due_ns + np.repeat(due_ns, sizes)
    return Activations(*places, values, missed), starts


LONGEST = 1 << 18
"""A stretch ends after this many samples (2 MiB). Longer ones leave the cache, and shorter ones cost more calls."""
NO_STARTS = np.empty(0, np.int64)
Stretch = tuple[Activations, NDArray[np.bool_]]
"""Activations whose indices follow each other, and whether each is parted from the one before: no pair crosses that."""


def stretches(series: Series, blocks: Iterable[Block], slice_starts: Int64Array = NO_STARTS) -> Iterator[Stretch]:
    """Yield the joined blocks of one series. A stretch ends at a hole or when it is long.

    Parted are samples that follow a hole or begin a slice of the record's summary. slice_starts: the due times of the
    latter, each of which begins a block. RecordError for an impossible stall.
    """
    waiting: list[Block] = []
    size, following, hole = 0, -1, True

    def whole() -> Stretch:
        some, starts = join_blocks(series, waiting)
        parted = np.zeros(some.value.size, np.bool_)
        parted[starts] = np.isin(some.due_ns[starts], slice_starts)
        parted[0] |= hole
        return some, parted

    for block in blocks:
        refuse_impossible_stall(series, block)
        follows = block.first_index == following
        if waiting and (not follows or size >= LONGEST):
            yield whole()
            waiting, size = [], 0
        hole = hole if waiting else not follows
        waiting.append(block)
        size += block.values.size
        following = block.first_index + block.values.size + int(block.gap_missed.sum())
    if waiting:
        yield whole()


SECOND_NS = 1_000_000_000
NO_SECONDS = Seconds(*(np.empty(0, np.int64) for _ in range(4)))


def seconds_of(series: Series, some: Activations) -> Seconds:
    """The seconds in which activations were due, missed ones too."""
    second, gap = some.due_ns // SECOND_NS, some.missed > 0
    start = np.flatnonzero(np.diff(second, prepend=second[0] - 1))
    obtained = np.diff(start, append=second.size)
    ran = Seconds(second[start], obtained, np.zeros_like(obtained), np.maximum.reduceat(some.value, start))
    return merge_seconds((ran, missed_seconds(series, some.due_ns[gap], some.missed[gap])))


def merge_seconds(parts: Iterable[Seconds]) -> Seconds:
    """The sum of several parts: counts of the same second add up, and the larger maximum is kept."""
    return _combine(list(parts), np.add)


def join_seconds(a: Seconds, b: Seconds) -> Seconds:
    """The union of two sources on the same activations, either of which may lack some: the larger numbers are kept."""
    return _combine([a, b], np.maximum)


def _combine(parts: list[Seconds], counts: np.ufunc) -> Seconds:
    second = np.concatenate([part.second for part in parts] or [NO_SECONDS.second])
    if not second.size:
        return NO_SECONDS
    distinct, place = np.unique(second, return_inverse=True)
    obtained, missed = np.zeros((2, distinct.size), np.int64)
    largest = np.full(distinct.size, np.iinfo(np.int64).min)
    ran = np.concatenate([part.obtained for part in parts])
    counts.at(obtained, place, ran)
    counts.at(missed, place, np.concatenate([part.missed for part in parts]))
    np.maximum.at(largest, place[ran > 0], np.concatenate([part.max for part in parts])[ran > 0])
    return Seconds(distinct, obtained, missed, np.where(obtained > 0, largest, 0))


MOST_AT_ONCE = 1 << 22
"""So many missed activations are counted one by one; of more, each stall is cut at the seconds."""


def missed_seconds(series: Series, due_ns: Int64Array, missed: Int64Array) -> Seconds:
    """The seconds in which missed activations were due. due_ns: of the activations after which so many were missed."""
    period_ns = series.period_ns
    if not due_ns.size:
        return NO_SECONDS
    if series.on_grid and period_ns:
        return _cut_at_seconds(due_ns, missed, period_ns)
    if int(missed.sum()) > MOST_AT_ONCE:
        return merge_seconds(
            _cut_at_seconds(*gap, max(period_ns, 1)) for gap in zip(due_ns[:, None], missed[:, None], strict=True)
        )
    order = np.concatenate([np.arange(1, each + 1) for each in missed])
    missed_due = np.repeat(due_ns, missed) + order * period_ns
    second, n = np.unique(missed_due // SECOND_NS, return_counts=True)
    return Seconds(second, np.zeros_like(second), n.astype(np.int64), np.zeros_like(second))


def _cut_at_seconds(due_ns: Int64Array, missed: Int64Array, period_ns: int) -> Seconds:
    second = np.arange(due_ns[0] // SECOND_NS, (due_ns[-1] + missed[-1] * period_ns) // SECOND_NS + 1)
    n = missed_between(due_ns, missed, period_ns, second[1:] * SECOND_NS)
    nothing = np.zeros(np.count_nonzero(n), np.int64)
    return Seconds(second[n > 0], nothing, n[n > 0], nothing)


def missed_between(due_ns: Int64Array, missed: Int64Array, period_ns: int, edges: Int64Array) -> Int64Array:
    """How many missed activations are due between two edges. After each of ``due_ns``, so many come, a period apart."""
    total = np.concatenate(([0], np.cumsum(missed)))
    gap = np.searchsorted(due_ns, edges) - 1
    inside = np.maximum(gap, 0)
    behind = np.clip(-((due_ns[inside] - edges) // period_ns) - 1, 0, missed[inside])
    before = np.where(gap >= 0, total[inside] + behind, 0)
    between: Int64Array = np.diff(np.concatenate(([0], before, total[-1:])))
    return between


DEFAULT_K = 100


def empty_top(k: int) -> Top:
    """A list of the K largest values that has no value yet."""
    return Top(k, *(np.empty(0, np.int64) for _ in range(3)))


NO_TOP = empty_top(0)


def add_to_top(some: Activations, so_far: Top) -> Top:
    """The K largest values, out of those so far and some others."""
    full = so_far.value.size >= so_far.k
    at = np.flatnonzero(some.value > so_far.value[-1]) if full else np.arange(some.value.size)
    if at.size > so_far.k:
        kth = np.partition(some.value[at], at.size - so_far.k)[at.size - so_far.k]
        at = at[some.value[at] >= kth]
    if not at.size:
        return so_far
    return merge_tops((so_far, Top(so_far.k, some.index[at], some.due_ns[at], some.value[at])))


def merge_tops(tops: Iterable[Top]) -> Top:
    """The K largest values of all lists. An activation in several lists counts once."""
    some = list(tops)
    index, due, value = _columns(some)
    return largest(_exact_k(some), index, due, value)


def top_of_series(tops: dict[int, Top]) -> Top:
    """Return the K largest values of several series, each with its series. tops: by the number of the series."""
    ids = np.concatenate([np.full(top.value.size, series) for series, top in tops.items()])
    index, due, value = _columns(tops.values())
    k = _exact_k(tops.values())
    order = np.lexsort((ids, due, ~value))[:k]
    return Top(k, index[order], due[order], value[order], ids[order])


def _columns(tops: Iterable[Top]) -> Iterator[Int64Array]:
    return (np.concatenate(column) for column in zip(*((t.index, t.due_ns, t.value) for t in tops), strict=True))


def _exact_k(tops: Iterable[Top]) -> int:
    """The K of several lists together: only the smallest K is exact over all. Empty lists do not count."""
    return min((top.k for top in tops if top.k), default=0)
