# SPDX-License-Identifier: Apache-2.0
"""The late times of a record, exact where it tells of single activations, else to the second; and the episodes of them.

Exact times come from the list of exceedances that the agent kept of a limit that was fixed before the run, from the
largest values if they reach down to the limit, or from samples. What these do not cover (a list that was full, a file
that was damaged) is late for the whole of its second.

Latencies come in bursts. Counting samples instead of episodes gave a false proof in 61 % of simulated runs with bursts
of five. With gaps of 1 s storms of a minute break the bound, with 600 s unrelated events become one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rtproof.analysis.claim import Course
from rtproof.analysis.late import NOTHING_LATE, Late, merged
from rtproof.analysis.model import Episode, Requirement, Summary
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.tops import place
from rtproof.record import ChunkRef, Event, Int64Array, Record

_SINCE = re.compile(r"\bsince_ns=(-?\d+)")
_AT_ONCE = 1 << 16
"""So many single exceedances are kept apart before those within the gap become one stretch."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class LateTimes:
    """Late stretches in measured time, each with its largest latency and its thread; late_seconds: how many are hit."""

    late: Late
    worst_ns: Int64Array
    thread: Int64Array
    late_seconds: int


NOTHING = LateTimes(NOTHING_LATE, _NONE, _NONE, 0)


@dataclass(frozen=True)
class Window:
    """The measured time of a record: from first_due_ns on; whole: the record says how the run ended.

    end_ns: until when a thread that stalled is known not to have run.
    """

    first_due_ns: int
    measured_ns: int
    end_ns: int
    whole: bool = True


def late_times(record: Record, summaries: Iterable[Summary], requirement: Requirement, window: Window) -> LateTimes:
    """All late stretches of a limit, over all threads, that begin in the measured time."""
    found: list[tuple[Late, Int64Array, int]] = []
    hit: list[tuple[int, int]] = []
    for summary in summaries:
        exact, worst = _exact(record, summary, requirement)
        seconds = summary.seconds
        late = (seconds.obtained > 0) & (seconds.max > requirement.limit_ns)
        second, largest = seconds.second[late], seconds.max[late]
        hit += _reaching(second, largest - requirement.limit_ns)
        untold = _untold(record, summary, requirement.limit_ns, (exact.begin_lo, worst), (second, largest))
        rough = Late.of_seconds(second[untold] * SECOND_NS, largest[untold] - requirement.limit_ns)
        exact, worst = _merged(exact, worst, requirement.gap_ns)
        both = Late.together((exact, rough))
        found.append((both, np.concatenate((worst, largest[untold])), summary.threads[0]))
    for event in record.events:
        since = stalled_since_ns(event)
        if since is not None and window.end_ns - since > requirement.limit_ns:
            stood = Late.exact([since], [window.end_ns - requirement.limit_ns])
            found.append((stood, np.array([window.end_ns - since]), event.thread))
            hit.append((since // SECOND_NS, (window.end_ns - requirement.limit_ns) // SECOND_NS))
    return _in_window(found, hit, window)


def stalled_since_ns(event: Event) -> int | None:
    """Since when the thread of a ``stalled`` event has not run; None for other events."""
    match = _SINCE.search(event.text) if event.kind == "stalled" else None
    return int(match[1]) if match else None


def episodes(times: LateTimes, course: Course, first_due_ns: int) -> tuple[Episode, ...]:
    """The episodes of a course in record time, each with its largest latency and its threads."""
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


def _exact(record: Record, summary: Summary, requirement: Requirement) -> tuple[Late, Int64Array]:
    """The exceedances of a thread that are known one by one, in record time, and their latencies."""
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
    return Late.exact(due, due + value - limit_ns), value


def _from_samples(
    record: Record, summary: Summary, limit_ns: int, seconds: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Due times and latencies of all samples above the limit; only blocks that reach into such seconds are read."""
    series = summary.series
    refs = [ref for ref in record.chunk_refs if ref.series == series.id]
    due, value = [_NONE], [_NONE]
    for block in record.read_blocks(tuple(_with_late(refs, summary, seconds))):
        at = np.flatnonzero(block.values > limit_ns)
        if at.size:
            due.append(place(series, block, at)[1])
            value.append(block.values[at])
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
    """Which of the late seconds have an exceedance that is not among the exact ones."""
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


def _merged(exact: Late, worst: Int64Array, gap_ns: int) -> tuple[Late, Int64Array]:
    """Of very many exceedances those within the gap as one stretch, which changes nothing that is judged."""
    if exact.size <= _AT_ONCE:
        return exact, worst
    begin, end = merged(exact.begin_lo, exact.end_lo, gap_ns)
    largest = np.zeros(begin.size, np.int64)
    np.maximum.at(largest, np.searchsorted(begin, exact.begin_lo, side="right") - 1, worst)
    return Late.exact(begin, end), largest


def _reaching(second: Int64Array, beyond_ns: Int64Array) -> list[tuple[int, int]]:
    return list(zip(second.tolist(), (second + beyond_ns // SECOND_NS).tolist(), strict=True))


def _in_window(found: list[tuple[Late, Int64Array, int]], hit: list[tuple[int, int]], window: Window) -> LateTimes:
    late = Late.together(late for late, _, _ in found)
    worst = np.concatenate([_NONE, *(one for _, one, _ in found)])
    thread = np.concatenate([_NONE, *(np.full(late.size, number) for late, _, number in found)])
    begin_lo = np.maximum(late.begin_lo - window.first_due_ns, 0)
    begin_hi = np.maximum(late.begin_hi - window.first_due_ns, begin_lo)
    if window.whole:
        begin_hi = np.maximum(np.minimum(begin_hi, window.measured_ns), begin_lo)
    ends = (np.maximum(end - window.first_due_ns, begin_lo) for end in (late.end_lo, late.end_hi))
    inside = (begin_lo < max(window.measured_ns, 1)) & (late.end_hi >= window.first_due_ns)
    columns = (begin_lo, begin_hi, *ends)
    return LateTimes(
        Late(*(column[inside] for column in columns)),
        worst[inside],
        thread[inside].astype(np.int64),
        _seconds_hit(hit, window),
    )


def _seconds_hit(hit: list[tuple[int, int]], window: Window) -> int:
    """How many seconds something was late in, of those measured."""
    if not hit:
        return 0
    low = window.first_due_ns // SECOND_NS
    high = (window.first_due_ns + window.measured_ns - 1) // SECOND_NS
    total = reach = 0
    reach = low - 1
    for first, last in sorted(hit):
        begin, end = max(first, reach + 1), min(last, high)
        total += max(end - begin + 1, 0)
        reach = max(reach, end)
    return min(total, -(-window.measured_ns // SECOND_NS))
