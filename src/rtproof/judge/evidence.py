# SPDX-License-Identifier: Apache-2.0
"""What a verdict rests on: numbers from a record and its summaries, and the figures of one limit's test.

The test's figures say how far both bets have come, which bounds they give, and how much longer a verdict takes.
"""

import math
from dataclasses import dataclass

import numpy as np

from rtproof import statistics
from rtproof.core.phrases import instant
from rtproof.judge import claim
from rtproof.judge.analysis_model import NO_LONGEST, Episode, Requirement
from rtproof.judge.claim import Decision, EpisodeCourse, EpisodeSpacing, episode_course
from rtproof.judge.episodes import NO_LATE_TIMES, LateTimes, MeasuredWindow, episodes_of_course, late_times
from rtproof.record.contents import EndReason, Level, Record
from rtproof.statistics import mean_upper
from rtproof.summary.kernel_model import core_beside
from rtproof.summary.recorded_facts import is_simulated, requested_duration_ns, stalled_since_ns, virtual_time_clock
from rtproof.summary.summary_model import Doubt, Summary


@dataclass(frozen=True)
class WorstActivation:
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
    worst: WorstActivation | None
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
    times: LateTimes = NO_LATE_TIMES


def gather_evidence(
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
    window = MeasuredWindow(first_due_ns, measured_ns, end_ns(record, pooled), record.end is not None)
    times = late_times(record, summaries, requirement, window) if requirement else NO_LATE_TIMES
    return Evidence(
        episodes=_episodes(times, requirement, window) if requirement else (),
        measured_ns=measured_ns,
        asked_duration_ns=requested_duration_ns(record),
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
        virtual_time=virtual_time_clock(record),
        core=core_beside(record),
        stalled_ns=pooled.stalled_ns,
        stalled_thread=max(summaries, key=lambda s: s.stalled_ns).series.thread if summaries else 0,
        simulated=is_simulated(record),
        first_due_ns=first_due_ns,
        cut_off=record.end is None,
        times=times,
    )


def _episodes(times: LateTimes, requirement: Requirement, window: MeasuredWindow) -> tuple[Episode, ...]:
    return episodes_of_course(
        times, episode_course(times.late, window.measured_ns, requirement.gap_ns), window.first_due_ns
    )


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
    told = [known_exceedances(record.exceeded(summary.series.id, limit_ns), summary, limit_ns) for summary in summaries]
    counted = [each for each in told if each]
    if pooled.exact or not counted or len(counted) < len(told):
        return count_exceedances(pooled, limit_ns)
    return sum(ran for ran, _ in counted), sum(both for _, both in counted)


def known_exceedances(level: Level | None, summary: Summary, limit_ns: int) -> tuple[int, int] | None:
    """What the agent counted above a limit that it was given: of those that ran, and of the schedule.

    None without that limit, and where the histogram holds more: some of the counts are gone from a damaged file.
    """
    if level is None:
        return None
    ran, missed = int(level.ran.sum()), int(level.missed.sum())
    whole = ran >= summary.observed_counts.exceedances(limit_ns)[0]
    whole = whole and ran + missed >= summary.schedule_counts.exceedances(limit_ns)[0]
    return (ran, ran + missed) if whole else None


def count_exceedances(summary: Summary, limit_ns: int) -> tuple[int, int]:
    """How many activations were later than the limit: of those that ran, and of the schedule.

    Where a bin holds the limit, the K largest values tell how many of its activations were above it; if they do not
    reach down to the limit, all of the bin count as exceedances.
    """
    observed, schedule = (c.exceedances(limit_ns)[1] for c in (summary.observed_counts, summary.schedule_counts))
    top = summary.top.value
    reaches = top.size and (top[-1] <= limit_ns or top.size == summary.observed.count)
    ran = int(np.count_nonzero(top > limit_ns)) if reaches and not summary.exact else observed
    return ran, schedule - observed + ran


def _worst(record: Record, summaries: tuple[Summary, ...], pooled: Summary) -> WorstActivation | None:
    top = pooled.top
    if not top.value.size or top.series is None:
        return None
    series = next(s.series for s in summaries if s.series.id == int(top.series[0]))
    due = int(top.due_ns[0])
    at = f"{instant(record.begin.origin_realtime_ns, due)} UTC"
    return WorstActivation(int(top.value[0]), series.thread, series.cpu, due, at)


@dataclass(frozen=True)
class LimitTest:
    """What is known of a limit that was tested. limits: tested in all. provable: no value was lost.

    The course holds the episodes and the quiet time; rates are per nanosecond.
    """

    requirement: Requirement
    course: EpisodeCourse
    decision: Decision
    limits: int
    alpha: float
    provable: bool = True

    @property
    def episodes(self) -> int:
        """As a proof counts them."""
        return self.course.episodes

    @property
    def episodes_refuting(self) -> int:
        """As a refutation counts them: fewer where only seconds are known."""
        return int(self.course.refuting_begins_ns.size)

    @property
    def vague_from_ns(self) -> int | None:
        """Since when late times are known to the second only, where the gap is shorter; nothing is PROVEN later."""
        until = claim.provable_until(self.course, None)
        return until if until < self.measured_ns else None

    @property
    def measured_ns(self) -> int:
        return self.course.measured_ns

    @property
    def live_ns(self) -> int:
        """Quiet time."""
        return self.course.live_ns

    @property
    def tau(self) -> float:
        return self.measured_ns / self.requirement.at_most_ns

    @property
    def log_e_proven(self) -> float:
        scale = self.requirement.bunches * self.requirement.at_most_ns
        return statistics.log_e_proven(self.episodes, self.live_ns / scale)

    @property
    def log_e_refuted(self) -> float:
        return statistics.log_e_refuted(self.episodes_refuting, self.tau)

    @property
    def low(self) -> float:
        """Lower limit of the rate, of all measured time."""
        return statistics.rate_lower(self.episodes_refuting, self.measured_ns, self.alpha)

    @property
    def high(self) -> float:
        """Upper limit of the rate, of quiet time; infinite without any, or where not provable."""
        if not self.provable:
            return math.inf
        return self.requirement.bunches * statistics.rate_upper(self.episodes, self.live_ns, self.alpha)

    @property
    def high_fixed(self) -> float:
        """The same, had the length been fixed beforehand."""
        if not self.provable or not self.live_ns:
            return math.inf
        return self.requirement.bunches * mean_upper(self.episodes, 1 - self.alpha) / self.live_ns

    @property
    def bunches_bound(self) -> float:
        """PROVEN holds if episodes come in bunches of up to so many on average."""
        needed = statistics.tau_needed(self.episodes, self.alpha) * self.requirement.at_most_ns
        return self.live_ns / needed

    @property
    def spacing(self) -> EpisodeSpacing | None:
        """The bunch test at the end."""
        return claim.spacing_at_end(self.course)

    @property
    def refuted_at_latest_ns(self) -> int | None:
        """Measured time at which the episode that may go on is REFUTED if it does; None if none is open."""
        since = self.course.open_since_ns
        if since is None or self.requirement.longest_ns >= NO_LONGEST:
            return None
        return since + self.requirement.longest_ns

    @property
    def more_ns(self) -> int:
        """To PROVEN if there is no further episode."""
        lacking = max(self._live_needed_ns(self.episodes) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns if lacking else 0

    @property
    def more_with_one_more_ns(self) -> int:
        """To PROVEN if one more episode comes, a short one; the gap behind it is not quiet."""
        lacking = max(self._live_needed_ns(self.episodes + 1) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns + self.requirement.gap_ns if lacking else 0

    @property
    def needed_ns(self) -> int:
        """Measured time in all to PROVEN if there is no further episode."""
        return self.measured_ns + self.more_ns if self.more_ns else self._decided_or_measured()

    @property
    def needed_with_one_more_ns(self) -> int:
        return self.measured_ns + self.more_with_one_more_ns

    @property
    def chance(self) -> float:
        """Of being PROVEN after ``more_ns``; 0 without quiet time."""
        return statistics.chance_of_none(self.episodes, self.live_ns, self.more_ns) if self.live_ns else 0.0

    @property
    def chance_with_one_more(self) -> float:
        """Of being PROVEN after ``more_with_one_more_ns``: no episode for the shorter time, or one and no other."""
        if not self.live_ns:
            return 0.0
        more = self.more_ns, self.more_with_one_more_ns
        return self.chance + statistics.chance_of_one(self.episodes, self.live_ns, *more)

    def _live_needed_ns(self, episodes: int) -> int:
        scale = self.requirement.bunches * self.requirement.at_most_ns
        return math.ceil(statistics.tau_needed(episodes, self.alpha) * scale)

    def _decided_or_measured(self) -> int:
        proven = self.decision.proven_at_ns
        return self.measured_ns if proven is None else proven


def figures_of_limit(
    requirement: Requirement, course: EpisodeCourse, limits: int, provable_until_ns: int | None = None
) -> LimitTest:
    """All figures of a limit's test.

    provable_until_ns: nothing is PROVEN later, as values were lost, which may have been episodes; 0: nothing is at all.
    """
    alpha = (1 - requirement.confidence) / limits
    decision = claim.decide_course(requirement, course, alpha, provable_until_ns)
    known = claim.provable_until(course, None) == course.measured_ns
    return LimitTest(requirement, course, decision, limits, alpha, known and provable_until_ns != 0)
