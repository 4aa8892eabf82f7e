# SPDX-License-Identifier: Apache-2.0
"""What a verdict rests on, gathered from a record and its summaries."""

from dataclasses import dataclass

import numpy as np

from rtproof.analysis.asked import asked_duration_ns
from rtproof.analysis.claim import course
from rtproof.analysis.cokernels import core_beside
from rtproof.analysis.episodes import NOTHING, LateTimes, Window, episodes, late_times, stalled_since_ns
from rtproof.analysis.model import Doubt, Episode, Requirement, Summary
from rtproof.analysis.phrases import instant
from rtproof.analysis.simulated import simulated
from rtproof.analysis.virtual_time import virtual_time
from rtproof.record import EndReason, Level, Record


@dataclass(frozen=True)
class Worst:
    """The largest value that was measured: its thread and CPU (-1: bound to none), and when it was due."""

    value_ns: int
    thread: int
    cpu: int
    due_ns: int
    at: str


@dataclass(frozen=True)
class Evidence:
    """Figures of the whole run, all threads. Exceedances are None without a limit.

    times: what was late, in measured time.
    measured_ns: from first_due_ns, the first due time, as long as every thread was watched. cut_off: nobody knows how
    the run ended. core: the co-kernel beside Linux, if any. stalled_ns: how late a thread was at least that never
    ran again, stalled_thread.
    """

    episodes: tuple[Episode, ...]
    measured_ns: int
    asked_duration_ns: int | None
    ended_as_asked: bool
    doubts: tuple[Doubt, ...]
    threads: int
    obtained: int
    missed: int
    expected: int
    worst: Worst | None
    exceedances_observed: int | None
    exceedances_schedule: int | None
    kernel: str
    loads: str
    lost: int = 0
    virtual_time: str | None = None
    core: str | None = None
    stalled_ns: int = 0
    stalled_thread: int = 0
    simulated: str | None = None
    forecast: tuple[str, ...] = ()
    first_due_ns: int = 0
    cut_off: bool = False
    times: LateTimes = NOTHING


def gather(
    record: Record,
    requirement: Requirement | None,
    summaries: tuple[Summary, ...],
    pooled: Summary,
    doubts: tuple[Doubt, ...],
) -> Evidence:
    """Everything a verdict needs to know about a run."""
    limit = requirement.limit_ns if requirement else None
    measured_ns = _measured_ns(record, summaries, pooled)
    observed, schedule = (None, None) if limit is None else _exceedances(record, summaries, pooled, limit)
    if schedule is not None and limit is not None:
        schedule += sum(summary.stalled_above(limit) for summary in summaries)
    first_due_ns = pooled.first_due_ns or 0
    window = Window(first_due_ns, measured_ns, end_ns(record, pooled), record.end is not None)
    times = late_times(record, summaries, requirement, window) if requirement else NOTHING
    return Evidence(
        episodes=_episodes(times, requirement, window) if requirement else (),
        measured_ns=measured_ns,
        asked_duration_ns=asked_duration_ns(record),
        ended_as_asked=record.end is not None and record.end.reason is EndReason.AS_ASKED,
        doubts=doubts,
        threads=len(pooled.threads),
        obtained=pooled.obtained,
        missed=pooled.never_ran,
        expected=pooled.due,
        worst=_worst(record, summaries, pooled),
        exceedances_observed=observed,
        exceedances_schedule=schedule,
        kernel=record.begin.kernel_release,
        loads=record.fact("loads") or "",
        lost=pooled.lost,
        virtual_time=virtual_time(record),
        core=core_beside(record),
        stalled_ns=pooled.stalled_ns,
        stalled_thread=max(summaries, key=lambda s: s.stalled_ns).series.thread if summaries else 0,
        simulated=simulated(record),
        first_due_ns=first_due_ns,
        cut_off=record.end is None,
        times=times,
    )


def _episodes(times: LateTimes, requirement: Requirement, window: Window) -> tuple[Episode, ...]:
    return episodes(times, course(times.late, window.measured_ns, requirement.gap_ns), window.first_due_ns)


def _measured_ns(record: Record, summaries: tuple[Summary, ...], pooled: Summary) -> int:
    """A thread that stalled was watched until the end, however little it measured.

    Of a record that was cut off, what the threads did not all leave is not watched: the one with less may have hung.
    """
    if record.end is None and summaries:
        return max(min((s.first_due_ns or 0) + s.span_ns for s in summaries) - (pooled.first_due_ns or 0), 0)
    stalled = any(stalled_since_ns(event) is not None for event in record.events)
    return max(pooled.span_ns, end_ns(record, pooled)) if stalled else pooled.span_ns


def end_ns(record: Record, pooled: Summary) -> int:
    """The last instant the record knows of."""
    times = [record.end.time_ns] if record.end else []
    times += [event.time_ns for event in record.events]
    times += [int(counter.time_ns[-1]) for counter in record.counters if counter.time_ns.size]
    return max([*times, pooled.span_ns])


def _exceedances(record: Record, summaries: tuple[Summary, ...], pooled: Summary, limit_ns: int) -> tuple[int, int]:
    """Of all threads: from the samples, else as the agent counted them, else from the histogram."""
    told = [told_exceedances(record.exceeded(summary.series.id, limit_ns), summary, limit_ns) for summary in summaries]
    counted = [each for each in told if each]
    if pooled.exact or not counted or len(counted) < len(told):
        return exceedances(pooled, limit_ns)
    return sum(ran for ran, _ in counted), sum(both for _, both in counted)


def told_exceedances(level: Level | None, summary: Summary, limit_ns: int) -> tuple[int, int] | None:
    """What the agent counted above a limit that it was given: of those that ran, and of the schedule.

    None without that limit, and where the histogram holds more: some of the counts are gone from a damaged file.
    """
    if level is None:
        return None
    ran, missed = int(level.ran.sum()), int(level.missed.sum())
    whole = ran >= summary.observed_counts.exceedances(limit_ns)[0]
    whole = whole and ran + missed >= summary.schedule_counts.exceedances(limit_ns)[0]
    return (ran, ran + missed) if whole else None


def exceedances(summary: Summary, limit_ns: int) -> tuple[int, int]:
    """How many activations were later than the limit: of those that ran, and of the schedule.

    Where a bin holds the limit, the K largest values tell how many of its activations were above it; if they do not
    reach down to the limit, all of the bin count as exceedances.
    """
    observed, schedule = (c.exceedances(limit_ns)[1] for c in (summary.observed_counts, summary.schedule_counts))
    top = summary.top.value
    reaches = top.size and (top[-1] <= limit_ns or top.size == summary.observed.count)
    ran = int(np.count_nonzero(top > limit_ns)) if reaches and not summary.exact else observed
    return ran, schedule - observed + ran


def _worst(record: Record, summaries: tuple[Summary, ...], pooled: Summary) -> Worst | None:
    top = pooled.top
    if not top.value.size or top.series is None:
        return None
    series = next(s.series for s in summaries if s.series.id == int(top.series[0]))
    due = int(top.due_ns[0])
    at = f"{instant(record.begin.origin_realtime_ns, due)} UTC"
    return Worst(int(top.value[0]), series.thread, series.cpu, due, at)
