# SPDX-License-Identifier: Apache-2.0
"""The loops of periodic applications: the lengths of their cycles, and how the probe ``app`` spent each loop."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import duration, percent, quantity
from rtproof.record.activations import exact_dot
from rtproof.record.contents import Int64Array, Record, Series
from rtproof.statistics import share_upper
from rtproof.summary import moments
from rtproof.summary.fields import AlignedFields, aligned_fields, judged_series, series_by_field
from rtproof.summary.per_second import stretches
from rtproof.summary.recorded_facts import (
    agent_time_ns,
    fact_number,
    probe_options,
    requested_duration_ns,
    signed_number,
    stalled_since_ns,
    virtual_time_clock,
)
from rtproof.summary.summary_model import NO_MOMENTS, Cycles, Lag, Moments, Stall

IGNORE = 1_000
BAND = 0.2
SHORT_RUN = 10
"""In a short run, at most its first tenth is ignored, unless the user asked for a number of cycles."""
STALL_NS = 1_000_000_000
STALL_PERIODS = 10
"""A loop has stopped if it does not run for a second and for ten periods, even if it goes on later."""
BAND_LEVEL = 0.95
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class CycleTerms:
    """How many cycles at the start are not counted, and which other cycles are short or long.

    None: as in article 2, which ignores the first 1,000 cycles and allows 20 % of the period to both sides.
    """

    ignore: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None

    def band(self, period_ns: int) -> tuple[int, int]:
        """The shortest and the longest length in ns of a cycle in the band."""
        width = round(period_ns * BAND)
        low = period_ns - width if self.low_ns is None else self.low_ns
        return low, period_ns + width if self.high_ns is None else self.high_ns


def loop_cycles(record: Record, terms: CycleTerms | None = None) -> Cycles:
    """The cycles of every thread of a record; none without samples. terms: by default those of the record."""
    series, wanted = judged_series(record), terms or requested_cycle_terms(record)
    meters = []
    for each in series:
        meter = _Meter(each.period_ns, each.thread, _ignored(record, each, wanted), wanted)
        for wakes, follows in _wakes(record, each):
            meter.add(wakes, follows=follows)
        meter.stalls += _at_the_end(record, each, meter.last_wake_ns)
        meters.append(meter)
    found = _cycles(series[0].period_ns if series else 0, wanted, meters)
    return replace(found, deterministic=bool(virtual_time_clock(record)))


def requested_cycle_terms(record: Record) -> CycleTerms:
    """The terms that the options of the probe state. An option that makes no sense, as after damage, is ignored."""
    given = probe_options(record)
    return CycleTerms(
        signed_number(given.get("ignore")), agent_time_ns(given.get("low")), agent_time_ns(given.get("high"))
    )


def most_cycles_out_of_band(found: Cycles) -> float | None:
    """Clopper and Pearson's upper bound of their share, at BAND_LEVEL; None without cycles, or in virtual time."""
    if found.deterministic or not found.counted:
        return None
    return share_upper(found.out_of_band, found.counted, BAND_LEVEL)


def cycle_sentences(found: Cycles) -> str:
    """What the counted cycles tell about all others, in sentences; the rule of three if none was out of the band."""
    most = most_cycles_out_of_band(found)
    if not found.counted:
        return "No cycle was counted, so nothing is known about their lengths."
    seen = f"{found.out_of_band:,} of {quantity(found.counted, 'cycle')} were out of the band."
    if most is None:
        return seen
    often = f"one every {duration(found.period_ns / most)}{' of each loop' if found.loops > 1 else ''}"
    possible = f"a share of up to {most:.2g} possible, which is {often}"
    return f"{seen} That leaves {possible} ({percent(BAND_LEVEL)} confidence, if cycles do not depend on each other)."


def _cycles(period_ns: int, terms: CycleTerms, meters: "list[_Meter]") -> Cycles:
    low_ns, high_ns = terms.band(period_ns)
    excess = moments.merge_moments(each for meter in meters for each in meter.excess)
    lags = moments.merge_lags(each for meter in meters for each in meter.lags)
    stalls = sorted((stall for meter in meters for stall in meter.stalls), key=lambda stall: stall.since_ns)
    return Cycles(
        period_ns=period_ns,
        low_ns=low_ns,
        high_ns=high_ns,
        ignored=sum(meter.ignored for meter in meters),
        counted=excess.count,
        short=sum(meter.short for meter in meters),
        long=sum(meter.long for meter in meters),
        min_ns=period_ns + excess.min if excess.count else None,
        max_ns=period_ns + excess.max if excess.count else None,
        catch_up_pairs=lags.catch_up_pairs,
        correlation=moments.lag_correlation(lags, excess),
        stalls=tuple(stalls),
        loops=len(meters),
    )


def _wakes(record: Record, series: Series) -> Iterator[tuple[Int64Array, bool]]:
    for some, parted in stretches(series, record.blocks(series.id)):
        yield some.due_ns + some.value, not parted[0]


def _ignored(record: Record, series: Series, terms: CycleTerms) -> int:
    cycles = sum(ref.count for ref in record.chunk_refs if ref.series == series.id) - 1
    wanted = min(IGNORE, cycles // SHORT_RUN) if terms.ignore is None else terms.ignore
    return max(min(wanted, cycles), 0)


class _Meter:
    """Counts the cycles of one loop as the times arrive at which it ran.

    excess: of the counted cycles, length minus period, for each piece of times. lags: of the same, for pairs.
    """

    def __init__(self, period_ns: int, thread: int, ignored: int, terms: CycleTerms) -> None:
        self._period, self._thread = period_ns, thread
        self._low, self._high = (bound - period_ns for bound in terms.band(period_ns))
        self._skip = self.ignored = ignored
        self.short = self.long = 0
        self.excess: list[Moments] = []
        self.lags: list[Lag] = []
        self.stalls: list[Stall] = []
        self._wake, self._excess = _NONE, _NONE

    def add(self, wakes: Int64Array, *, follows: bool) -> None:
        """Count the cycles between some times.

        follows: whether nothing is missing between the previous times and these. Else no cycle leads from there to
            here.
        """
        if not follows:
            self._wake, self._excess = _NONE, _NONE
        some = np.concatenate((self._wake, wakes))
        lengths = np.diff(some)
        for at in np.flatnonzero(lengths >= _stall_ns(self._period)).tolist():
            self.stalls.append(Stall(self._thread, int(some[at]), int(lengths[at]), over=True))
        counted = lengths[self._skip :] - self._period
        self._skip = max(self._skip - lengths.size, 0)
        if counted.size:
            # With the cycle before them, for the pairs.
            joined = np.concatenate((self._excess, counted))
            long, short = joined > self._high, joined < self._low
            self.short += int(np.count_nonzero(counted < self._low))
            self.long += int(np.count_nonzero(counted > self._high))
            self.excess.append(moments.moments_of_values(counted))
            caught_up = int(np.count_nonzero(long[:-1] & short[1:]))
            self.lags.append(Lag(joined.size - 1, exact_dot(joined[:-1], joined[1:]), caught_up))
        self._wake = some[-1:]
        self._excess = counted[-1:] if counted.size else self._excess

    @property
    def last_wake_ns(self) -> int | None:
        """The time at which the loop ran last; None if it never ran."""
        return int(self._wake[-1]) if self._wake.size else None


def _at_the_end(record: Record, series: Series, last_wake_ns: int | None) -> tuple[Stall, ...]:
    """The stall of a loop that no longer ran at the end: as the agent recorded it, or else from its last activation."""
    told = [event for event in record.events if event.thread == series.thread]
    since = [(at, event.time_ns) for event in told if (at := stalled_since_ns(event)) is not None]
    if since:
        at, noted_ns = since[-1]
        until_ns = max(noted_ns, record.end.time_ns) if record.end else noted_ns
        return (Stall(series.thread, at, until_ns - at, over=False),)
    if last_wake_ns is None or record.end is None:
        return ()
    if any(total.lost for total in record.end.totals if total.series == series.id):
        return ()
    samples_ns = (fact_number(record, "samples") or 0) * series.period_ns
    asked_ns = requested_duration_ns(record) or samples_ns or record.end.time_ns
    silent_ns = min(record.end.time_ns, asked_ns) - last_wake_ns
    long = silent_ns >= _stall_ns(series.period_ns)
    return (Stall(series.thread, last_wake_ns, silent_ns, over=False),) if long else ()


def _stall_ns(period_ns: int) -> int:
    return max(STALL_NS, STALL_PERIODS * period_ns)


LOOP_FIELDS = ("top", "start", "end")
LOOP_STATISTICS: tuple[tuple[str, Callable[[Moments], float | None]], ...] = (
    ("minimum", lambda of: of.smallest),
    ("maximum", lambda of: of.largest),
    ("average", lambda of: of.mean),
    ("standard deviation", lambda of: of.deviation),
)
"""The rows of table 1 of article 3."""
RELATION_NS = 1_000
"""The sum of the loop times may differ from the elapsed time by this much for each loop. More means an error."""


@dataclass(frozen=True)
class Loops:
    """Loops of one thread in order. Times count from the origin of the record.

    followed: whether the next loop is known too. Only then loop_ns and slack_ns have a meaning.
    slack_ns: from the end of the work to the next target. The loop slept after its work exactly if it is positive.
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
        """How late the top of each loop was."""
        return self.top_ns - self.target_ns

    @property
    def work_ns(self) -> Int64Array:
        """How long the work of each loop took."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class ApplicationLoops:
    """All loops of one thread, or of several threads together.

    work: how long the work took. loop: from the top of a loop to the next one's. error: how late the top was.
    slack: from the end of the work to the next due time. Of the last loop of a thread there is no ``loop`` and no
    ``slack``.
    no_sleep: loops of those with a ``slack`` that did not sleep behind their work.
    elapsed_ns: from the first top to the last. apart: how often the loops in between are not all known. length: one
    more than the index of the last loop.
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
    """Whether a record holds such loops. Any probe with these fields has them."""
    return tuple(group[0].field for group in series_by_field(record)) == LOOP_FIELDS


def has_samples(record: Record) -> bool:
    """Whether every series of the record has samples."""
    return all(series.has_samples for series in record.series)


def application_loops(record: Record) -> Iterator[Loops]:
    """Yield every loop, thread after thread, in pieces that fit into memory. The next piece follows on the last."""
    threads: dict[int, list[Series]] = {}
    for series in (each for group in series_by_field(record) for each in group):
        threads.setdefault(series.thread, []).append(series)
    for fields in threads.values():
        if len(fields) == len(LOOP_FIELDS):
            yield from _of_thread(record, fields)


def loops_of_threads(record: Record) -> dict[int, ApplicationLoops]:
    """The loops of every thread, by its number, of a record with samples."""
    parts: dict[int, list[ApplicationLoops]] = {}
    tops: dict[int, tuple[int, int]] = {}
    for piece in application_loops(record):
        known, slack = piece.followed, piece.slack_ns[piece.followed]
        part = ApplicationLoops(
            work=moments.moments_of_values(piece.work_ns),
            loop=moments.moments_of_values(piece.loop_ns[known]),
            error=moments.moments_of_values(piece.error_ns),
            slack=moments.moments_of_values(slack),
            no_sleep=int(np.count_nonzero(slack <= 0)),
            apart=int(np.count_nonzero(~known)),
            length=int(piece.index[-1]) + 1,
        )
        parts.setdefault(piece.thread, []).append(part)
        first = tops.get(piece.thread, (int(piece.top_ns[0]),))[0]
        tops[piece.thread] = (first, int(piece.top_ns[-1]))
    found = {}
    for thread, some in parts.items():
        whole, (first, last) = loops_of_all_threads(some), tops[thread]
        # The last loop has no next loop, which does not count as a gap.
        found[thread] = replace(whole, elapsed_ns=last - first, apart=whole.apart - 1)
    return found


def loops_of_all_threads(parts: Iterable[ApplicationLoops]) -> ApplicationLoops:
    """The sum of parts of a thread, or of several threads. Elapsed times add up as loop times do."""
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
    """The constant part of a timing error, which loop times lack, and the varying part: names and nanoseconds."""
    beyond = [None if least_ns is None or ns is None else ns - least_ns for ns in (mean_ns, most_ns)]
    return (
        ("constant: every loop, at least", least_ns),
        ("varying: beyond that, average", beyond[0]),
        ("varying: beyond that, maximum", beyond[1]),
        ("varying: standard deviation", deviation_ns),
    )


def relation_holds(loop_times: int, loop_sum_ns: int, elapsed_ns: int) -> bool:
    """Whether loop times add up to the time from the first top to the last. Missing loops or two clocks break it."""
    return abs(loop_sum_ns - elapsed_ns) <= RELATION_NS * loop_times


def _of_thread(record: Record, fields: Sequence[Series]) -> Iterator[Loops]:
    """The loops of one thread. The last row of each piece waits for the next piece, which tells what follows."""
    waiting: AlignedFields | None = None
    for piece in aligned_fields(record, fields):
        rows = piece if waiting is None else waiting.then(piece)
        if rows.index.size > 1:
            yield _loops(fields[0].thread, rows, rows.index.size - 1)
        waiting = rows.part(slice(-1, None))
    if waiting is not None and waiting.index.size:
        yield _loops(fields[0].thread, waiting, 1)


def _loops(thread: int, rows: AlignedFields, count: int) -> Loops:
    """The first ``count`` rows, with what the rows after them tell."""
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


MOST_POINTS = 1_000


class Envelope:
    """The smallest and the largest value of stretches of ``width`` positions, which take values piece by piece.

    length: how many positions there are. most: how many points may be drawn.
    """

    def __init__(self, length: int, most: int = MOST_POINTS) -> None:
        self.width = 1 if length <= most else -(-2 * length // most)
        stretches = -(-length // self.width)
        limits = np.iinfo(np.int64)
        self._low = np.full(stretches, limits.max)
        self._high = np.full(stretches, limits.min)

    def add(self, at: Int64Array, values: Int64Array) -> None:
        """Add values at positions from 0 to below the length."""
        np.minimum.at(self._low, at // self.width, values)
        np.maximum.at(self._high, at // self.width, values)

    @property
    def points(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Where stretches with values begin, and the smallest and the largest value of each."""
        some = np.flatnonzero(self._low <= self._high)
        return some * self.width, self._low[some], self._high[some]


def cycle_points(record: Record) -> dict[int, Envelope]:
    """The lengths in ns to draw of the cycles that count, over their number, by thread; none without samples."""
    terms, found = requested_cycle_terms(record), dict[int, Envelope]()
    for series in judged_series(record):
        envelope = Envelope(sum(ref.count for ref in record.chunk_refs if ref.series == series.id))
        ignored = _ignored(record, series, terms)
        at, last = 0, _NONE
        for wakes, follows in _wakes(record, series):
            some = np.concatenate((last if follows else _NONE, wakes))
            lengths = some[1:] - some[:-1]
            number = np.arange(at, at + lengths.size)
            envelope.add(number[number >= ignored], lengths[number >= ignored])
            at, last = at + lengths.size, wakes[-1:]
        if envelope.points[0].size:
            found[series.thread] = envelope
    return found
