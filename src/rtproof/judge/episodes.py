# SPDX-License-Identifier: Apache-2.0
"""Find the episodes above a limit, count how late times cluster, and add stalls that last until the end of the run.

Late times are exact if the record holds the single activations. Otherwise only their second is known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rtproof.judge.analysis_model import Analysis, Episode
from rtproof.judge.claim import NOTHING_LATE, EpisodeCourse, LateStretches, merge_late_stretches
from rtproof.record.contents import ChunkRef, Int64Array, Level, Record, Series
from rtproof.record.requirement import Requirement
from rtproof.summary.fields import judged_series
from rtproof.summary.per_second import SECOND_NS, join_blocks
from rtproof.summary.recorded_facts import requested_duration_ns, stalled_since_ns
from rtproof.summary.summary_model import Summary

_AT_ONCE = 1 << 16
"""With more exceedances than this, those within the gap become one stretch."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class LateTimes:
    """Late stretches in measured time, each with its largest latency and its thread.

    late_seconds: the number of seconds with a late time. The arrays worst_ns and thread are as long as late.
    """

    late: LateStretches
    worst_ns: Int64Array
    thread: Int64Array
    late_seconds: int


NO_LATE_TIMES = LateTimes(NOTHING_LATE, _NONE, _NONE, 0)


def late_times(
    record: Record, summaries: Iterable[Summary], requirement: Requirement, measured: range, until_ns: int
) -> LateTimes:
    """The late stretches of all threads for one limit, as far as they begin in the measured time.

    measured: that time, in nanoseconds of the record. until_ns: when a stalled thread is known not to have run.
    """
    found: list[tuple[LateStretches, Int64Array, int]] = []
    hit: list[tuple[int, int]] = []
    for summary in summaries:
        exact, worst = _exact(record, summary, requirement)
        seconds = summary.seconds
        late = (seconds.obtained > 0) & (seconds.max > requirement.limit_ns)
        second, largest = seconds.second[late], seconds.max[late]
        beyond = (largest - requirement.limit_ns) // SECOND_NS
        hit += zip(second.tolist(), (second + beyond).tolist(), strict=True)
        untold = _untold(record, summary, requirement.limit_ns, (exact.begin_lo, worst), (second, largest))
        rough = LateStretches.of_seconds(second[untold] * SECOND_NS, largest[untold] - requirement.limit_ns)
        exact, worst = _merged(exact, worst, requirement.gap_ns)
        both = LateStretches.together((exact, rough))
        found.append((both, np.concatenate((worst, largest[untold])), summary.threads[0]))
    for event in record.events:
        since = stalled_since_ns(event)
        if since is not None and until_ns - since > requirement.limit_ns:
            stood = LateStretches.exact([since], [until_ns - requirement.limit_ns])
            found.append((stood, np.array([until_ns - since]), event.thread))
            hit.append((since // SECOND_NS, (until_ns - requirement.limit_ns) // SECOND_NS))
    late_seconds = _seconds_hit(hit, measured)
    return _in_window(found, measured, late_seconds, whole=record.end is not None)


def episodes_of_course(times: LateTimes, course: EpisodeCourse, first_due_ns: int) -> tuple[Episode, ...]:
    """The episodes of a course, each with its largest latency and its threads. Their times are record time."""
    if not course.episodes:
        return ()
    of = np.maximum(np.searchsorted(course.first_ns, times.late.begin_lo, side="right") - 1, 0)
    worst = np.zeros(course.episodes, np.int64)
    np.maximum.at(worst, of, times.worst_ns)
    threads: list[set[int]] = [set() for _ in range(course.episodes)]
    for episode, thread in {*zip(of.tolist(), times.thread.tolist(), strict=True)}:
        threads[episode].add(thread)
    begin, end = course.first_ns + first_due_ns, course.last_ns + first_due_ns
    return tuple(
        Episode(first // SECOND_NS, last // SECOND_NS, largest, tuple(sorted(who)), first, last)
        for first, last, largest, who in zip(begin.tolist(), end.tolist(), worst.tolist(), threads, strict=True)
    )


def _exact(record: Record, summary: Summary, requirement: Requirement) -> tuple[LateStretches, Int64Array]:
    """The exceedances of a thread that are known one by one, in record time, and their latencies.

    They come from the agent's list of exceedances, else from the largest values, else from the samples.
    """
    limit_ns = requirement.limit_ns
    level = record.exceeded(summary.series.id, limit_ns)
    if level is not None:
        due, value = level.due_ns, level.above
    else:
        late = (summary.seconds.obtained > 0) & (summary.seconds.max > limit_ns)
        if not late.any():
            return NOTHING_LATE, _NONE
        top = summary.top
        if top.value.size and (top.value[-1] <= limit_ns or top.value.size == summary.observed.count):
            due, value = top.due_ns[top.value > limit_ns], top.value[top.value > limit_ns]
        else:
            due, value = _from_samples(record, summary, limit_ns, summary.seconds.second[late])
    return LateStretches.exact(due, due + value - limit_ns), value


def _from_samples(
    record: Record, summary: Summary, limit_ns: int, seconds: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Due times and latencies of all samples above the limit, both in nanoseconds.

    seconds: the seconds with a sample above the limit. Only blocks that reach into one of them are read.
    """
    series = summary.series
    refs = [ref for ref in record.chunk_refs if ref.series == series.id]
    due, value = [_NONE], [_NONE]
    for block in record.read_blocks(tuple(_with_late(refs, summary, seconds))):
        late = block.values > limit_ns
        if late.any():
            due.append(join_blocks(series, [block])[0].due_ns[late])
            value.append(block.values[late])
    return np.concatenate(due), np.concatenate(value)


def _with_late(refs: list[ChunkRef], summary: Summary, seconds: Int64Array) -> Iterator[ChunkRef]:
    series = summary.series
    if not series.on_grid or not series.period_ns:
        yield from refs
        return
    begins = [ref.first_index for ref in refs]
    for ref, (first, after) in zip(refs, pairwise([*begins, None]), strict=True):
        low = (series.first_due_ns + (first or 0) * series.period_ns) // SECOND_NS
        at = int(np.searchsorted(seconds, low))
        high = None if after is None or after < (first or 0) else series.first_due_ns + after * series.period_ns
        if at < seconds.size and (high is None or int(seconds[at]) <= high // SECOND_NS):
            yield ref


def _untold(
    record: Record,
    summary: Summary,
    limit_ns: int,
    exact: tuple[Int64Array, Int64Array],
    late: tuple[Int64Array, Int64Array],
) -> Int64Array:
    """Indexes of the late seconds that have an exceedance which is not among the exact ones."""
    second, largest = late
    begin, worst = exact
    place_of = np.searchsorted(second, begin // SECOND_NS)
    known = place_of < second.size
    known[known] = second[place_of[known]] == begin[known] // SECOND_NS
    told, count = np.zeros(second.size, np.int64), np.zeros(second.size, np.int64)
    np.maximum.at(told, place_of[known], worst[known])
    np.add.at(count, place_of[known], 1)
    missing = told < largest
    level = record.exceeded(summary.series.id, limit_ns)
    if level is not None and level.second.size:
        at = np.minimum(np.searchsorted(level.second, second), level.second.size - 1)
        ran = np.where(level.second[at] == second, level.ran[at], 0)
        missing |= count < ran
    return np.flatnonzero(missing)


def _merged(exact: LateStretches, worst: Int64Array, gap_ns: int) -> tuple[LateStretches, Int64Array]:
    """Join very many exceedances within the gap to one stretch. The judgement stays the same."""
    if exact.size <= _AT_ONCE:
        return exact, worst
    begin, end = merge_late_stretches(exact.begin_lo, exact.end_lo, gap_ns)
    largest = np.zeros(begin.size, np.int64)
    np.maximum.at(largest, np.searchsorted(begin, exact.begin_lo, side="right") - 1, worst)
    return LateStretches.exact(begin, end), largest


def _in_window(
    found: list[tuple[LateStretches, Int64Array, int]], measured: range, late_seconds: int, *, whole: bool
) -> LateTimes:
    """whole: the record says how the run ended."""
    late = LateStretches.together(late for late, _, _ in found)
    worst = np.concatenate([_NONE, *(one for _, one, _ in found)])
    thread = np.concatenate([_NONE, *(np.full(late.size, number) for late, _, number in found)])
    moved = late.since(measured.start)
    begin_lo, begin_hi = moved.begin_lo, moved.begin_hi
    if whole:
        begin_hi = np.maximum(np.minimum(begin_hi, len(measured)), begin_lo)
    inside = (begin_lo < max(len(measured), 1)) & (late.end_hi >= measured.start)
    columns = (begin_lo, begin_hi, moved.end_lo, moved.end_hi)
    stretches = LateStretches(*(column[inside] for column in columns))
    return LateTimes(stretches, worst[inside], thread[inside].astype(np.int64), late_seconds)


def _seconds_hit(hit: list[tuple[int, int]], measured: range) -> int:
    """The number of measured seconds with a late time."""
    if not hit:
        return 0
    low, high = measured.start // SECOND_NS, (measured.stop - 1) // SECOND_NS
    total, reach = 0, low - 1
    for first, last in sorted(hit):
        begin, end = max(first, reach + 1), min(last, high)
        total += max(end - begin + 1, 0)
        reach = max(reach, end)
    return min(total, -(-len(measured) // SECOND_NS))


@dataclass(frozen=True)
class LevelClusters:
    """The activations above one level of one thread, and how they cluster in seconds.

    seconds: the number of whole or partial seconds that count. ran: activations above the level that ran. missed: due
    times for which the thread never ran, later than the level.
    hit: seconds in which any activation above the level ran. size: how many ran above it in such a second on average;
    None without any.
    dispersion: the variance of the counts of all seconds over their mean (the index of dispersion; Cox and Lewis 1966).
    It is 1 if each activation is above the level by chance alone, and None with fewer than two activations or seconds.
    """

    series: Series
    level: Level
    seconds: int
    ran: int
    missed: int
    hit: int
    size: float | None
    dispersion: float | None

    @property
    def share_above(self) -> float | None:
        """The share of the values that taught the level that may lie above it; None: it is a limit."""
        return self.level.share if self.level.learned else None

    @property
    def above_schedule(self) -> int:
        """Activations above the level of all that were due."""
        return self.ran + self.missed

    @property
    def listed(self) -> int:
        """Activations above the level that the record keeps one by one."""
        return self.level.index.size


def level_clusters(analysis: Analysis) -> tuple[LevelClusters, ...]:
    """The clusters of every level of every thread in the record."""
    levels, wanted = analysis.record.levels, {series.id for series in judged_series(analysis.record)}
    summaries = [summary for summary in analysis.summaries if summary.series.id in wanted]
    return tuple(_of(summary, level) for summary in summaries for level in levels.get(summary.series.id, ()))


def _of(summary: Summary, level: Level) -> LevelClusters:
    known = summary.seconds.second
    seconds = int((known >= level.since_ns // SECOND_NS).sum())
    counts = [int(count) for count in level.ran if count]
    total, squares = sum(counts), sum(count * count for count in counts)
    dispersion = None
    if total > 1 and seconds > 1:
        mean = total / seconds
        dispersion = (squares - seconds * mean * mean) / (seconds - 1) / mean
    return LevelClusters(
        series=summary.series,
        level=level,
        seconds=seconds,
        ran=total,
        missed=int(level.missed.sum()),
        hit=len(counts),
        size=total / len(counts) if counts else None,
        dispersion=dispersion,
    )


def with_stalls_to_the_end(record: Record, every: Iterable[Summary]) -> tuple[Summary, ...]:
    """Add to each summary the stall and the lost values that events and the totals of END tell."""
    end = record.end
    if end is None:
        return tuple(every)
    lost = {total.series: total.lost for total in end.totals}
    since = {e.thread: at for e in record.events if (at := stalled_since_ns(e)) is not None}
    return tuple(_stalled(record, _lost(one, lost), since.get(one.series.thread)) for one in every)


def _lost(summary: Summary, lost: dict[int, int]) -> Summary:
    """Add the values that were lost after the last kept one. They have no due time in the record."""
    more = lost.get(summary.series.id, 0) - summary.lost
    return replace(summary, lost=summary.lost + more, expected=summary.expected + more) if more > 0 else summary


def _stalled(record: Record, summary: Summary, since_ns: int | None) -> Summary:
    """Add the due times from ``since_ns`` until the run was to end or ended; without a grid only the first is known."""
    if since_ns is None or record.end is None or record.end.time_ns <= since_ns:
        return summary
    last_ns = min(record.end.time_ns, requested_duration_ns(record) or record.end.time_ns) - 1
    on_grid = summary.series.on_grid and summary.series.period_ns > 0
    count = max((last_ns - since_ns) // summary.series.period_ns + 1, 0) if on_grid else 1
    return replace(summary, stalled=count, stalled_ns=record.end.time_ns - since_ns if count else 0)
