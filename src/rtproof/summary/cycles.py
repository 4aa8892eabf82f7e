# SPDX-License-Identifier: Apache-2.0
"""Lengths of the cycles of a periodic loop: the time from one run of the loop to the next, which is what a scope shows.

Article 2 judges a 10 ms loop in the kernel by them: how many are shorter than 8 ms or longer than 12 ms after the first
thousand, which are the start of the loop and not counted. Options of the probe (docs/record-format.md) say otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtproof.core.phrases import duration, percent, quantity
from rtproof.record.contents import End, Int64Array, Record, Series
from rtproof.statistics.exact_bounds import share_upper
from rtproof.summary import moments, per_second
from rtproof.summary.due_times import sample_stretches
from rtproof.summary.fields import judged_series
from rtproof.summary.recorded_facts import (
    agent_time_ns,
    fact_number,
    probe_options,
    requested_duration_ns,
    stalled_since_ns,
    virtual_time_clock,
    whole_number,
)
from rtproof.summary.summary_model import NO_LAG, NO_MOMENTS, Cycles, Lag, Moments, Stall

IGNORE = 1_000
BAND = 0.2
SHORT_RUN = 10
"""Of a short run no more is ignored than its first tenth, unless the number was asked for."""
STALL_NS = 1_000_000_000
STALL_PERIODS = 10
"""A loop that does not run for a second and ten periods has stopped, whether or not it goes on later."""
BAND_LEVEL = 0.95
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Wakes:
    """The times at which one loop ran, in order."""

    period_ns: int
    times_ns: Int64Array
    thread: int = 0


@dataclass(frozen=True)
class CycleTerms:
    """How many cycles at the start are not counted, and which others are short or long; None: as in the article."""

    ignore: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None

    def band(self, period_ns: int) -> tuple[int, int]:
        width = round(period_ns * BAND)
        low = period_ns - width if self.low_ns is None else self.low_ns
        return low, period_ns + width if self.high_ns is None else self.high_ns


@dataclass(frozen=True)
class _Part:
    """Cycles of one thread. excess: length minus period."""

    ignored: int = 0
    short: int = 0
    long: int = 0
    excess: Moments = NO_MOMENTS
    lag: Lag = NO_LAG
    stalls: tuple[Stall, ...] = ()


def loop_cycles(source: Record | Wakes, terms: CycleTerms | None = None) -> Cycles:
    """Cycles of every thread of a record, or of one loop. Nothing is counted in a record without samples.

    terms: by default those that the record was made with.
    """
    if isinstance(source, Wakes):
        wanted = terms or CycleTerms()
        return _cycles(source.period_ns, wanted, [_of_wakes(source, wanted)])
    series, wanted = judged_series(source), terms or requested_cycle_terms(source)
    parts = [_of_series(source, each, wanted) for each in series]
    found = _cycles(series[0].period_ns if series else 0, wanted, parts)
    return replace(found, deterministic=bool(virtual_time_clock(source)))


def requested_cycle_terms(record: Record) -> CycleTerms:
    """What the options of the probe say; what makes no sense, as after damage, says nothing."""
    given = probe_options(record)
    return CycleTerms(
        whole_number(given.get("ignore")), agent_time_ns(given.get("low")), agent_time_ns(given.get("high"))
    )


def most_cycles_out_of_band(found: Cycles) -> float | None:
    """The largest share out of the band that the counted cycles leave possible at CONFIDENCE (Clopper-Pearson).

    None where none was counted, and in virtual time, in which the same run counts the same.
    """
    if found.deterministic or not found.counted:
        return None
    return share_upper(found.out_of_band, found.counted, BAND_LEVEL)


def cycle_sentences(found: Cycles) -> str:
    """What the cycles out of the band tell about those that nobody saw; if there were none, it is the rule of three."""
    most = most_cycles_out_of_band(found)
    if found.counted and most is None:
        return f"{found.out_of_band:,} of {quantity(found.counted, 'cycle')} were out of the band."
    if most is None:
        return "No cycle was counted, so nothing is known about their lengths."
    seen = f"{found.out_of_band:,} of {quantity(found.counted, 'cycle')} were out of the band."
    often = f"one every {duration(found.period_ns / most)}{' of each loop' if found.loops > 1 else ''}"
    possible = f"a share of up to {most:.2g} possible, which is {often}"
    return f"{seen} That leaves {possible} ({percent(BAND_LEVEL)} confidence, if cycles do not depend on each other)."


def _cycles(period_ns: int, terms: CycleTerms, parts: list[_Part]) -> Cycles:
    low_ns, high_ns = terms.band(period_ns)
    excess, lags = moments.merge_moments(part.excess for part in parts), moments.merge_lags(part.lag for part in parts)
    stalls = sorted((stall for part in parts for stall in part.stalls), key=lambda stall: stall.since_ns)
    return Cycles(
        period_ns=period_ns,
        low_ns=low_ns,
        high_ns=high_ns,
        ignored=sum(part.ignored for part in parts),
        counted=excess.count,
        short=sum(part.short for part in parts),
        long=sum(part.long for part in parts),
        min_ns=period_ns + excess.min if excess.count else None,
        max_ns=period_ns + excess.max if excess.count else None,
        catch_up_pairs=lags.catch_up_pairs,
        correlation=moments.lag_correlation(lags, excess),
        stalls=tuple(stalls),
        loops=len(parts),
    )


def _of_wakes(wakes: Wakes, terms: CycleTerms) -> _Part:
    meter = _Meter(wakes.period_ns, wakes.thread, _ignored(wakes.times_ns.size - 1, terms), terms)
    meter.add(wakes.times_ns, follows=False)
    return meter.result()


def _of_series(record: Record, series: Series, terms: CycleTerms) -> _Part:
    most = sum(ref.count for ref in record.chunk_refs if ref.series == series.id) - 1
    meter = _Meter(series.period_ns, series.thread, _ignored(most, terms), terms)
    for stretch in sample_stretches(record.blocks(series.id)):
        due_ns = per_second.place_of_activation(
            series, stretch.block, np.arange(stretch.block.values.size), stretch.told
        )[1]
        meter.add(due_ns + stretch.block.values, follows=stretch.tail is not None)
    part = meter.result()
    return replace(part, stalls=(*part.stalls, *_at_the_end(record, series, meter.last_wake_ns)))


def _ignored(cycles_in_all: int, terms: CycleTerms) -> int:
    wanted = min(IGNORE, cycles_in_all // SHORT_RUN) if terms.ignore is None else terms.ignore
    return max(min(wanted, cycles_in_all), 0)


class _Meter:
    """Counts the cycles of one loop as the times come at which it ran."""

    def __init__(self, period_ns: int, thread: int, ignored: int, terms: CycleTerms) -> None:
        self._period, self._thread = period_ns, thread
        self._low, self._high = (bound - period_ns for bound in terms.band(period_ns))
        self._skip = ignored
        self._parts = [_Part(ignored)]
        self._wake, self._excess = _NONE, _NONE

    def add(self, wakes: Int64Array, *, follows: bool) -> None:
        """follows: nothing is missing between the last times and these; else no cycle leads from there to here."""
        if not follows:
            self._wake, self._excess = _NONE, _NONE
        some = np.concatenate((self._wake, wakes))
        excess = np.diff(some) - self._period
        stalls = tuple(self._stalls(some, excess + self._period))
        counted = excess[self._skip :]
        self._skip = max(self._skip - excess.size, 0)
        self._parts.append(self._part(counted, np.concatenate((self._excess, counted)), stalls))
        self._wake = some[-1:]
        self._excess = counted[-1:] if counted.size else self._excess

    @property
    def last_wake_ns(self) -> int | None:
        return int(self._wake[-1]) if self._wake.size else None

    def result(self) -> _Part:
        parts = self._parts
        return _Part(
            parts[0].ignored,
            sum(part.short for part in parts),
            sum(part.long for part in parts),
            moments.merge_moments(part.excess for part in parts),
            moments.merge_lags(part.lag for part in parts),
            tuple(stall for part in parts for stall in part.stalls),
        )

    def _part(self, counted: Int64Array, joined: Int64Array, stalls: tuple[Stall, ...]) -> _Part:
        """counted: excess of the cycles; joined: the same with the one before them, for the pairs."""
        if not counted.size:
            return _Part(stalls=stalls)
        long, short = joined > self._high, joined < self._low
        caught_up = int(np.count_nonzero(long[:-1] & short[1:]))
        return _Part(
            short=int(np.count_nonzero(counted < self._low)),
            long=int(np.count_nonzero(counted > self._high)),
            excess=moments.moments_of_values(counted),
            lag=Lag(joined.size - 1, moments.neighbour_products(joined), caught_up),
            stalls=stalls,
        )

    def _stalls(self, wakes: Int64Array, lengths: Int64Array) -> Iterator[Stall]:
        for at in np.flatnonzero(lengths >= _stall_ns(self._period)).tolist():
            yield Stall(self._thread, int(wakes[at]), int(lengths[at]), over=True)


def _at_the_end(record: Record, series: Series, last_wake_ns: int | None) -> tuple[Stall, ...]:
    """A loop that did not run any more when the run ended, by the agent's word or because nothing came any more."""
    told = [event for event in record.events if event.thread == series.thread]
    since = [(at, event.time_ns) for event in told if (at := stalled_since_ns(event)) is not None]
    if since:
        at, noted_ns = since[-1]
        until_ns = max(noted_ns, record.end.time_ns) if record.end else noted_ns
        return (Stall(series.thread, at, until_ns - at, over=False),)
    if last_wake_ns is None or record.end is None or _lost(record.end, series):
        return ()
    samples_ns = (fact_number(record, "samples") or 0) * series.period_ns
    asked_ns = requested_duration_ns(record) or samples_ns or record.end.time_ns
    silent_ns = min(record.end.time_ns, asked_ns) - last_wake_ns
    long = silent_ns >= _stall_ns(series.period_ns)
    return (Stall(series.thread, last_wake_ns, silent_ns, over=False),) if long else ()


def _lost(end: End, series: Series) -> bool:
    return any(total.lost for total in end.totals if total.series == series.id)


def _stall_ns(period_ns: int) -> int:
    return max(STALL_NS, STALL_PERIODS * period_ns)
