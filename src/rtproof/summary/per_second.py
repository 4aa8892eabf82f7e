# SPDX-License-Identifier: Apache-2.0
"""Numbers of each second of a run, due times, and the largest latencies. The due time decides the second."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.core.errors import RecordError
from rtproof.record.activations import largest
from rtproof.record.contents import Block, Int64Array, Seconds, Series, Top

# The next functions compute due times off the grid. Each follows from the one before, unless a block states it anew.
#
# After a sleep the due time is the last wake-up plus a period (docs/record-format.md, SAMPLES). Events from outside
# come at any time, so an agent begins a new block if they have drifted too far from their period. Such blocks may be
# short. They are joined to long arrays all the same.


@dataclass(frozen=True)
class PreviousDueTime:
    """The positions at which each of several joined blocks began, and the due times in ns stated there.

    The first position is 0.
    """

    positions: Int64Array
    due_ns: Int64Array


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
    due = count_activations(block)
    span_ns = due * series.period_ns
    if series.by_period and (span_ns > LONGEST_GAP_NS or min(due, span_ns // SECOND_NS) > MOST_SECONDS):
        raise _impossible(series, "a run of", span_ns)


def _impossible(series: Series, what: str, span_ns: int) -> RecordError:
    days = span_ns // 86_400_000_000_000
    return RecordError(f"thread {series.thread} claims {what} {days} days: these are no samples")


def off_grid_due_times(series: Series, block: Block, told: PreviousDueTime | None = None) -> Int64Array:
    """The due time of every sample of a block in ns, or of joined blocks.

    told: the due times that joined blocks stated.
    """
    derived: Int64Array = block.first_due_ns + np.concatenate(([0], np.cumsum(_steps(series, block))))
    if told is None:
        return derived
    lengths = np.diff(told.positions, append=block.values.size)
    shifted: Int64Array = derived + np.repeat(told.due_ns - derived[told.positions], lengths)
    return shifted


def _steps(series: Series, block: Block) -> Int64Array:
    """The time from each due time to the due time of the next sample."""
    if not series.by_period:
        return block.values[:-1] + series.period_ns
    steps = np.full(block.values.size - 1, series.period_ns)
    inside = block.gap_position < steps.size
    steps[block.gap_position[inside]] += block.gap_missed[inside] * series.period_ns
    return steps


LONGEST = 1 << 18
"""A stretch ends after this many samples (2 MiB). Longer ones leave the cache, and shorter ones cost more calls."""
TAIL = 2
"""The first pairs and cycles of a stretch begin with this many samples before it."""


NO_CUTS = np.empty(0, np.int64)
"""The cuts for a caller that looks at no pairs."""


@dataclass(frozen=True)
class SampleStretch:
    """Samples whose activation indices follow each other.

    cuts: the positions of samples that begin a slice of the record's summary. No pair crosses a cut.
    tail: the last blocks before the stretch, None after a hole. The pairs between the tail and the stretch belong to
        the stretch.
    told: the due times that the blocks stated. Off the grid, the first due time does not determine all others.
    """

    block: Block
    cuts: Int64Array
    tail: "SampleStretch | None" = None
    told: PreviousDueTime | None = None


def count_activations(block: Block) -> int:
    """The number of activations of a block, those that ran and those that were missed."""
    return int(block.values.size + block.gap_missed.sum())


def sample_stretches(blocks: Iterable[Block], slice_starts: Int64Array = NO_CUTS) -> Iterator[SampleStretch]:
    """Yield the joined blocks of one series. A stretch ends at a hole or when it is long.

    slice_starts: the sorted due times at which the slices of the record's summary begin. Each of them begins a block.
    """
    waiting: list[Block] = []
    size = 0
    tail: SampleStretch | None = None
    for block in blocks:
        follows = bool(waiting) and block.first_index == waiting[-1].first_index + count_activations(waiting[-1])
        if waiting and (not follows or size >= LONGEST):
            whole = _stretch(waiting, slice_starts, tail)
            yield whole
            tail, waiting, size = _tail(whole) if follows else None, [], 0
        waiting.append(block)
        size += block.values.size
    if waiting:
        yield _stretch(waiting, slice_starts, tail)


def join_blocks(a: SampleStretch, b: SampleStretch) -> SampleStretch:
    """The union of two stretches, the second of which follows the first."""
    size = a.block.values.size
    told = None
    if a.told and b.told:
        places = np.concatenate((a.told.positions, b.told.positions + size))
        told = PreviousDueTime(places, np.concatenate((a.told.due_ns, b.told.due_ns)))
    return SampleStretch(_join([a.block, b.block]), np.concatenate((a.cuts, b.cuts + size)), None, told)


def _stretch(blocks: list[Block], slice_starts: Int64Array, tail: SampleStretch | None) -> SampleStretch:
    starts = _starts(blocks)
    due = np.array([block.first_due_ns for block in blocks])
    begins = np.searchsorted(slice_starts, due, side="right") > np.searchsorted(slice_starts, due)
    return SampleStretch(_join(blocks), starts[begins], tail, PreviousDueTime(starts, due))


def _starts(blocks: list[Block]) -> Int64Array:
    return np.cumsum([0] + [block.values.size for block in blocks[:-1]])


def _join(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    return Block(
        first.series,
        first.first_index,
        first.first_due_ns,
        np.concatenate([block.values for block in blocks]),
        np.concatenate([b.gap_position + start for b, start in zip(blocks, _starts(blocks), strict=True)]),
        np.concatenate([block.gap_missed for block in blocks]),
    )


def _tail(stretch: SampleStretch) -> SampleStretch:
    """The last blocks of a stretch. They stay whole, since only their first due time is known.

    The index of a tail is not needed, so it is 0.
    """
    if stretch.tail and stretch.block.values.size < TAIL:
        stretch = join_blocks(stretch.tail, stretch)
    block, told = stretch.block, stretch.told
    assert told is not None
    first = np.searchsorted(told.positions, max(block.values.size - TAIL, 0), side="right") - 1
    start, due_ns = int(told.positions[first]), told.due_ns[first:]
    kept = block.gap_position >= start
    gaps = block.gap_position[kept] - start, block.gap_missed[kept]
    last = Block(block.series, 0, int(due_ns[0]), block.values[start:], *gaps)
    return SampleStretch(
        last, stretch.cuts[stretch.cuts >= start] - start, None, PreviousDueTime(told.positions[first:] - start, due_ns)
    )


SECOND_NS = 1_000_000_000
NO_SECONDS = Seconds(*(np.empty(0, np.int64) for _ in range(4)))


def seconds_of_block(series: Series, block: Block, told: PreviousDueTime | None = None) -> Seconds:
    """The seconds in which an activation of the block was due. told: the due times that joined blocks stated."""
    if series.on_grid and 0 < series.period_ns <= SECOND_NS:
        return _on_grid(series.period_ns, block)
    return _off_grid(series.period_ns, block, off_grid_due_times(series, block, told))


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


def _on_grid(period: int, block: Block) -> Seconds:
    """The seconds of a block on the grid.

    The grid is cut at the seconds, so no due time of a single sample is computed.
    """
    length = block.values.size + int(block.gap_missed.sum())
    first, last = block.first_due_ns // SECOND_NS, (block.first_due_ns + (length - 1) * period) // SECOND_NS
    second = np.arange(first, last + 1)
    due = -((block.first_due_ns - np.append(second, last + 1) * SECOND_NS) // period)
    cut = np.clip(due, 0, length)
    position = samples_before(block, cut)
    obtained = np.diff(position)
    return Seconds(second, obtained, np.diff(cut) - obtained, _maxima(block.values, position[:-1], obtained))


def samples_before(block: Block, cut: Int64Array) -> Int64Array:
    """How many samples lie before each place on the grid, counted from the first sample of the block."""
    if not block.gap_position.size:
        return cut
    missed = np.concatenate(([0], np.cumsum(block.gap_missed)))
    resumes = block.gap_position + 1 + missed[1:]
    gap = np.searchsorted(resumes, cut, side="right")
    pauses = np.append(block.gap_position + 1, block.values.size)
    before: Int64Array = np.minimum(cut - missed[gap], pauses[gap])
    return before


def _maxima(values: Int64Array, start: Int64Array, obtained: Int64Array) -> Int64Array:
    """The largest value of each second, 0 without values (reduceat would give the first value of the next second)."""
    maxima = np.zeros(obtained.size, np.int64)
    ran = obtained > 0
    maxima[ran] = np.maximum.reduceat(values, start[ran])
    return maxima


def _off_grid(period: int, block: Block, due: Int64Array) -> Seconds:
    second, start = np.unique(due // SECOND_NS, return_index=True)
    obtained = np.diff(np.append(start, block.values.size))
    ran = Seconds(second, obtained, np.zeros_like(obtained), np.maximum.reduceat(block.values, start))
    return merge_seconds((ran, _missed_off_grid(period, block, due))) if block.gap_position.size else ran


def _missed_off_grid(period: int, block: Block, due: Int64Array) -> Seconds:
    return _missed_after_due(due[block.gap_position], block.gap_missed, period)


MOST_AT_ONCE = 1 << 22
"""So many missed activations are counted one by one; of more, each stall is cut at the seconds."""


def _missed_after_due(due_ns: Int64Array, missed: Int64Array, period_ns: int) -> Seconds:
    if int(missed.sum()) > MOST_AT_ONCE:
        gaps = zip(due_ns.tolist(), missed.tolist(), strict=True)
        return merge_seconds(_missed_in_stall(due, number, period_ns) for due, number in gaps)
    order = np.concatenate([np.arange(1, each + 1) for each in missed])
    missed_due = np.repeat(due_ns, missed) + order * period_ns
    second, n = np.unique(missed_due // SECOND_NS, return_counts=True)
    return Seconds(second, np.zeros_like(second), n.astype(np.int64), np.zeros_like(second))


def _missed_in_stall(due_ns: int, missed: int, period_ns: int) -> Seconds:
    first, last = (due_ns + period_ns) // SECOND_NS, (due_ns + missed * period_ns) // SECOND_NS
    second = np.arange(first, last + 1)
    before = np.clip(-((due_ns - second[1:] * SECOND_NS) // period_ns) - 1, 0, missed)
    n = np.diff(np.concatenate(([0], before, [missed])))
    some = n > 0
    nothing = np.zeros(np.count_nonzero(some), np.int64)
    return Seconds(second[some], nothing, n[some], nothing)


def missed_seconds(series: Series, due_ns: Int64Array, missed: Int64Array) -> Seconds:
    """The seconds in which missed activations were due. due_ns: of the activations after which so many were missed."""
    if not due_ns.size:
        return NO_SECONDS
    if not series.on_grid:
        return _missed_after_due(due_ns, missed, series.period_ns)
    first, last = due_ns[0] // SECOND_NS, (due_ns[-1] + missed[-1] * series.period_ns) // SECOND_NS
    second = np.arange(first, last + 1)
    n = missed_between(due_ns, missed, series.period_ns, second[1:] * SECOND_NS)
    return Seconds(
        second[n > 0], np.zeros(np.count_nonzero(n), np.int64), n[n > 0], np.zeros(np.count_nonzero(n), np.int64)
    )


def missed_between(due_ns: Int64Array, missed: Int64Array, period_ns: int, edges: Int64Array) -> Int64Array:
    """How many missed activations are due between two edges.

    After each of ``due_ns``, so many were missed, a period apart.
    """
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


def top_of_block(series: Series, block: Block, so_far: Top, told: PreviousDueTime | None = None) -> Top:
    """The K largest values, out of those so far and those of a block. told: as in ``place_of_activation``."""
    full = so_far.value.size >= so_far.k
    at = np.flatnonzero(block.values > so_far.value[-1]) if full else np.arange(block.values.size)
    if at.size > so_far.k:
        kth = np.partition(block.values[at], at.size - so_far.k)[at.size - so_far.k]
        at = at[block.values[at] >= kth]
    if not at.size:
        return so_far
    return merge_tops((so_far, Top(so_far.k, *place_of_activation(series, block, at, told), block.values[at])))


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


def place_of_activation(
    series: Series, block: Block, at: Int64Array, told: PreviousDueTime | None = None
) -> tuple[Int64Array, Int64Array]:
    """The activation index and the due time in ns of the samples at some positions of a block.

    told: the due times that joined blocks stated.
    """
    missed = np.concatenate(([0], np.cumsum(block.gap_missed)))[np.searchsorted(block.gap_position, at)]
    offset = at + missed
    if series.on_grid:
        return block.first_index + offset, block.first_due_ns + offset * series.period_ns
    return block.first_index + offset, off_grid_due_times(series, block, told)[at]


def _columns(tops: Iterable[Top]) -> Iterator[Int64Array]:
    return (np.concatenate(column) for column in zip(*((t.index, t.due_ns, t.value) for t in tops), strict=True))


def _exact_k(tops: Iterable[Top]) -> int:
    """The K of several lists together: only the smallest K is exact over all.

    A list that was never filled does not count.
    """
    return min((top.k for top in tops if top.k), default=0)
