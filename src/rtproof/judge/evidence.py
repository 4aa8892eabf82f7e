# SPDX-License-Identifier: Apache-2.0
"""What a verdict rests on: the numbers of a run (``Evidence``) and the figures of one limit's test (``LimitTest``).

The figures of a test say how far both bets have come, which bounds they give, and how much longer a verdict takes.
"""

import math
from dataclasses import dataclass

import numpy as np

from rtproof import statistics
from rtproof.core.phrases import when
from rtproof.judge import claim
from rtproof.judge.analysis_model import Episode
from rtproof.judge.claim import Decision, EpisodeCourse, episode_course
from rtproof.judge.episodes import NO_LATE_TIMES, LateTimes, episodes_of_course, late_times
from rtproof.record.contents import EndReason, Record
from rtproof.record.requirement import NO_LONGEST, Requirement
from rtproof.statistics import mean_upper
from rtproof.summary.measured_kernel import core_beside
from rtproof.summary.quantiles import quantile
from rtproof.summary.recorded_facts import (
    is_simulated,
    loads_with_rates,
    requested_duration_ns,
    stalled_since_ns,
    virtual_time_clock,
)
from rtproof.summary.summary_model import Doubt, Summary
from rtproof.summary.two_board_edges import GENERATED

HIGH_SHARE = 0.999
"""The quantile that stands beside the largest latency."""


@dataclass(frozen=True)
class WorstActivation:
    """The activation with the largest latency: its thread, its CPU (-1: bound to none), and its due time.

    at: the due time as a time of day.
    """

    value_ns: int
    thread: int
    cpu: int
    due_ns: int
    at: str


@dataclass(frozen=True)
class Evidence:
    """The figures of the whole run over all threads. Exceedances are None without a limit.

    largest_ns: the largest latency of all due activations; None if none was due. seen_stall_ns: how long a thread stood
    at least, as an event tells; it may have run again. high_ns: the 99.9 % quantile of the activations that ran.
    gives_edges: the activations are edges that this board gave to another one, and an edge that was due and not given
    has no latency.
    first_due_ns: the first due time. measured_ns: the time from then on in which every thread was watched. times: the
    late stretches, in measured time. cut_off: the record has no end, so nobody knows how the run ended. core: the
    co-kernel beside Linux, if any. stalled_ns: how late a thread was at least that never ran again. stalled_thread:
    this thread.
    """

    episodes: tuple[Episode, ...]
    measured_ns: int
    asked_duration_ns: int | None
    ended_as_asked: bool
    doubts: tuple[Doubt, ...]
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
    largest_ns: int | None = None
    seen_stall_ns: int = 0
    high_ns: int | None = None
    gives_edges: bool = False

    @property
    def noun(self) -> str:
        """An activation, as sentences name it."""
        return "edge" if self.gives_edges else "activation"

    @property
    def counted(self) -> int:
        """How many activations have a latency, be it that of one that never ran."""
        return self.obtained if self.gives_edges else self.expected


def gather_evidence(
    record: Record,
    requirement: Requirement | None,
    summaries: tuple[Summary, ...],
    pooled: Summary,
    doubts: tuple[Doubt, ...],
) -> Evidence:
    """Collect everything that a verdict needs to know about a run. pooled: the summary of all threads together."""
    limit = requirement.limit_ns if requirement else None
    measured_ns = _measured_ns(record, summaries, pooled)
    observed, schedule = (None, None) if limit is None else _exceedances(record, summaries, pooled, limit)
    ends = [moments.max for moments in (pooled.observed, pooled.charged) if moments.count]
    gives_edges = {series.method for series in record.series} == {GENERATED}
    if gives_edges:
        schedule = observed
    if schedule is not None and limit is not None:
        schedule += sum(summary.stalled_above(limit) for summary in summaries)
    first_due_ns = pooled.first_due_ns or 0
    times, episodes = NO_LATE_TIMES, tuple[Episode, ...]()
    if requirement:
        measured = range(first_due_ns, first_due_ns + measured_ns)
        times = late_times(record, summaries, requirement, measured, end_ns(record, pooled))
    ends += [pooled.stalled_ns] if pooled.stalled_ns else []
    ends += [int(times.worst_ns.max())] if times.worst_ns.size else []
    if requirement and not requirement.plain:
        course = episode_course(times.late, measured_ns, requirement.gap_ns)
        episodes = episodes_of_course(times, course, first_due_ns)
    return Evidence(
        episodes=episodes,
        measured_ns=measured_ns,
        asked_duration_ns=requested_duration_ns(record),
        ended_as_asked=record.end is not None and record.end.reason is EndReason.AS_ASKED,
        doubts=doubts,
        obtained=pooled.obtained,
        missed=pooled.never_ran,
        expected=pooled.due,
        worst=_worst(record, summaries, pooled),
        exceedances_observed=observed,
        exceedances_schedule=schedule,
        kernel=record.begin.kernel_release,
        loads=loads_with_rates(record),
        lost=pooled.lost,
        virtual_time=virtual_time_clock(record),
        core=core_beside(record),
        stalled_ns=pooled.stalled_ns,
        stalled_thread=max(summaries, key=lambda s: s.stalled_ns).series.thread if summaries else 0,
        simulated=is_simulated(record),
        first_due_ns=first_due_ns,
        cut_off=record.end is None,
        times=times,
        largest_ns=max(ends, default=None),
        gives_edges=gives_edges,
        high_ns=quantile(pooled.observed_counts, HIGH_SHARE, ends=pooled.observed).value,
        seen_stall_ns=max(
            (event.time_ns - at for event in record.events if (at := stalled_since_ns(event)) is not None), default=0
        ),
    )


def _measured_ns(record: Record, summaries: tuple[Summary, ...], pooled: Summary) -> int:
    """The time in which every thread was watched.

    A stalled thread was watched until the end, however little it measured. In a record that was cut off, the thread
    with the fewest samples may have hung. So only the time that all threads cover counts.
    """
    if record.end is None and summaries:
        return max(min((s.first_due_ns or 0) + s.span_ns for s in summaries) - (pooled.first_due_ns or 0), 0)
    stalled = any(stalled_since_ns(event) is not None for event in record.events)
    return max(pooled.span_ns, end_ns(record, pooled)) if stalled else pooled.span_ns


def end_ns(record: Record, pooled: Summary) -> int:
    """The last instant that the record knows, in nanoseconds of record time."""
    times = [record.end.time_ns] if record.end else []
    times += [event.time_ns for event in record.events]
    times += [int(counter.time_ns[-1]) for counter in record.counters if counter.time_ns.size]
    return max([*times, pooled.span_ns])


def _exceedances(record: Record, summaries: tuple[Summary, ...], pooled: Summary, limit_ns: int) -> tuple[int, int]:
    """Exceedances of all threads, of activations that ran and of the schedule.

    They come from the samples; without samples from the agent's counts, and without counts from the histogram. The
    agent's do not count if one thread has none, or fewer than its histogram: a damaged file has lost some of them.
    """
    counted = (0, 0)
    for summary in summaries:
        level = record.exceeded(summary.series.id, limit_ns)
        if pooled.exact or level is None:
            return count_exceedances(pooled, limit_ns)
        ran, missed = int(level.ran.sum()), int(level.missed.sum())
        fewest, due = (c.exceedances(limit_ns)[0] for c in (summary.observed_counts, summary.schedule_counts))
        if ran < fewest or ran + missed < due:
            return count_exceedances(pooled, limit_ns)
        counted = counted[0] + ran, counted[1] + ran + missed
    return counted if summaries else count_exceedances(pooled, limit_ns)


def count_exceedances(summary: Summary, limit_ns: int) -> tuple[int, int]:
    """Count the activations above the limit: of those that ran, and of the schedule.

    The limit may lie inside a bin. Then the K largest values show how many of the bin's activations were above it. If
    these values do not reach down to the limit, all activations of the bin count as exceedances.
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
    at = when(record.begin.origin_realtime_ns, due)
    return WorstActivation(int(top.value[0]), series.thread, series.cpu, due, at)


@dataclass(frozen=True)
class LimitTest:
    """The test of one limit and its figures. Rates are per nanosecond.

    course: the episodes and the quiet time. limits: how many limits are tested in all. alpha: this limit's share of the
    probability of error. provable: no value was lost, and late times are exact enough for a proof.
    """

    requirement: Requirement
    course: EpisodeCourse
    decision: Decision
    limits: int
    alpha: float
    provable: bool = True

    @property
    def episodes(self) -> int:
        """The number of episodes, as a proof counts them."""
        return self.course.episodes

    @property
    def episodes_refuting(self) -> int:
        """The number of episodes, as a refutation counts them: fewer if late times are known only to the second."""
        return int(self.course.refuting_begins_ns.size)

    @property
    def vague_from_ns(self) -> int | None:
        """The first late time known only to the second, with a gap below a second. No proof comes later."""
        until = claim.provable_until(self.course, None)
        return until if until < self.measured_ns else None

    @property
    def measured_ns(self) -> int:
        return self.course.measured_ns

    @property
    def live_ns(self) -> int:
        """The quiet time."""
        return self.course.live_ns

    @property
    def tau(self) -> float:
        """The measured time in units of at_most_ns."""
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
        """The lower bound of the rate, from all measured time."""
        return statistics.rate_lower(self.episodes_refuting, self.measured_ns, self.alpha)

    @property
    def high(self) -> float:
        """The upper bound of the rate, from quiet time; infinite without quiet time, or if not provable."""
        if not self.provable:
            return math.inf
        return self.requirement.bunches * statistics.rate_upper(self.episodes, self.live_ns, self.alpha)

    @property
    def high_fixed(self) -> float:
        """The upper bound of the rate if the length of the run had been fixed beforehand."""
        if not self.provable or not self.live_ns:
            return math.inf
        return self.requirement.bunches * mean_upper(self.episodes, 1 - self.alpha) / self.live_ns

    @property
    def bunches_bound(self) -> float:
        """PROVEN would hold for bunches of up to this many episodes on average."""
        needed = statistics.tau_needed(self.episodes, self.alpha) * self.requirement.at_most_ns
        return self.live_ns / needed

    @property
    def bunched(self) -> bool | None:
        """Whether the episodes look bunched at the end; None with too few episodes, or without quiet time."""
        known = self.episodes >= claim.LEAST_EPISODES and self.live_ns > 0
        return claim.look_bunched(self.course.starts_live_ns, self.live_ns) if known else None

    @property
    def refuted_at_latest_ns(self) -> int | None:
        """Measured time at which an open episode becomes too long and refutes; None if no episode is open."""
        since = self.course.open_since_ns
        if since is None or self.requirement.longest_ns >= NO_LONGEST:
            return None
        return since + self.requirement.longest_ns

    @property
    def more_ns(self) -> int:
        """The further time until PROVEN, if no further episode comes; 0 if none is needed."""
        lacking = max(self._live_needed_ns(self.episodes) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns if lacking else 0

    @property
    def more_with_one_more_ns(self) -> int:
        """The further time until PROVEN, if one more short episode comes. The gap after this episode is not quiet."""
        lacking = max(self._live_needed_ns(self.episodes + 1) - self.live_ns, 0)
        return lacking + self.course.missing_quiet_ns + self.requirement.gap_ns if lacking else 0

    @property
    def needed_ns(self) -> int:
        """All measured time until PROVEN, if no further episode comes."""
        if self.more_ns:
            return self.measured_ns + self.more_ns
        return self.measured_ns if self.decision.proven_at_ns is None else self.decision.proven_at_ns

    @property
    def needed_with_one_more_ns(self) -> int:
        """All measured time until PROVEN, if one more short episode comes."""
        return self.measured_ns + self.more_with_one_more_ns

    @property
    def chance(self) -> float:
        """The chance of being PROVEN after ``more_ns``; 0 without quiet time."""
        return statistics.chance_of_none(self.episodes, self.live_ns, self.more_ns) if self.live_ns else 0.0

    @property
    def chance_with_one_more(self) -> float:
        """The chance of no episode in ``more_ns``, or of exactly one in ``more_with_one_more_ns``."""
        if not self.live_ns:
            return 0.0
        more = self.more_ns, self.more_with_one_more_ns
        return self.chance + statistics.chance_of_one(self.episodes, self.live_ns, *more)

    def _live_needed_ns(self, episodes: int) -> int:
        scale = self.requirement.bunches * self.requirement.at_most_ns
        return math.ceil(statistics.tau_needed(episodes, self.alpha) * scale)


def figures_of_limit(
    requirement: Requirement, course: EpisodeCourse, limits: int, provable_until_ns: int | None = None
) -> LimitTest:
    """Test one limit and return all figures of the test. limits: how many limits share the probability of error.

    provable_until_ns: from this instant on values were lost. They may have been late, so nothing is PROVEN later. 0:
    nothing is PROVEN at all.
    """
    alpha = (1 - requirement.confidence) / limits
    decision = claim.decide_course(requirement, course, alpha, provable_until_ns)
    known = claim.provable_until(course, None) == course.measured_ns
    return LimitTest(requirement, course, decision, limits, alpha, known and provable_until_ns != 0)
