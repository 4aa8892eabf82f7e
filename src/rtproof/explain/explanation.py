# SPDX-License-Identifier: Apache-2.0
"""Why a run was late: a budget for each late activation that its trace holds, and the causes of all of them together.

Ordinary activations get budgets too, because only they show what is different in the late ones.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.units import whole_number
from rtproof.explain.advice import Advice, advice_on
from rtproof.explain.budget import LOOK_BACK_NS, LateActivation, System, TimeBudget, budget, watched_threads
from rtproof.explain.causes import Blind, Cause, NamedCause, Ranks, words_with_chain
from rtproof.explain.cpu_contexts import (
    Change,
    CpuTimeline,
    CpuWalk,
    SentInterrupt,
    ServedCall,
    TimerStart,
    joined,
)
from rtproof.explain.incomplete_windows import TraceWindows, trace_windows
from rtproof.explain.machine_gone_counts import NOTHING_COUNTED, MachineCounts, RecordCounts, read_counts, with_counts
from rtproof.explain.name_sightings import NameSightings
from rtproof.explain.program_waits import ProgramWaits
from rtproof.explain.senders import find_senders
from rtproof.explain.stacks import CommonPath, common_path
from rtproof.explain.thread_activations import BY_MARKS
from rtproof.explain.thread_names import ThreadNames, thread_names
from rtproof.explain.throttling import recorded_limits
from rtproof.explain.timer_slack import with_slack
from rtproof.explain.trace_events import Window
from rtproof.explain.trace_source import TraceSource, trace_source
from rtproof.record.activations import NO_ACTIVATIONS, Activations, join_activations, number_activations
from rtproof.record.contents import Int64Array, Moment, Record, Series, Snapshot, SnapshotReason
from rtproof.summary import kernel_trace
from rtproof.summary.fields import judged_series
from rtproof.summary.measured_kernel import kernel_config, preemption_model
from rtproof.summary.recorded_facts import fact_number, requested_limits_ns, virtual_time_clock
from rtproof.summary.system_facts import is_guest
from rtproof.summary.target_threads import own_threads
from rtproof.summary.trace_text import VECTOR
from rtproof.summary.tracing_effect import in_untraced_turns

DEFAULT_TOP = 32
ORDINARY = 32
MOST_LATE = 20_000
"""A run with more late activations has budgets of the largest ones; the others are counted."""


@dataclass(frozen=True)
class CauseRow:
    """What took time of late activations, over all of them.

    Attributes:
        cause: What took it, and who.
        threads: How many threads it was; with one, the cause has its number.
        share: Its part of the time of all late activations, from 0 to 1.
        total_ns: The time that it took of all late activations.
        late: In how many late activations it has a part.
        first_in: In how many it took the most.
        median_ns: The median of its part in the activations that have one.
        largest_ns: The largest of these parts.
        typical_ns: The median of the same kind of cause over ordinary activations.
        path: The functions of the kernel in which interrupts found it mostly; None without stacks.
        open_in: In how many it is one of several causes that are too close to tell which took the most.
        waits_for: For most of its time, the threads that it kept, each of which kept the one before waiting; the late
            thread waited for the first one; empty if it kept the late thread itself.
    """

    cause: NamedCause
    threads: int
    share: float
    total_ns: int
    late: int
    first_in: int
    median_ns: int
    largest_ns: int
    typical_ns: int
    path: CommonPath | None = None
    open_in: int = 0
    waits_for: tuple[str, ...] = ()

    def words(self, blind: Collection[Blind] = ()) -> str:
        """The cause in words, with the threads that it kept."""
        return words_with_chain(self.cause, self.waits_for, blind)

    @property
    def advice(self) -> Advice | None:
        """What helps, with ``short``, ``sentence`` and ``source``; None where nothing is known."""
        return advice_on(self.cause, of_chain=bool(self.waits_for))


@dataclass(frozen=True)
class Explanation:
    """The budgets of a run. Times in ns from the origin of the record.

    limit_ns: above which an activation is late; None: the largest were taken.
    budgets: of late activations, the latest first. ordinary: of ordinary ones, in order of time.
    rows: the causes, the largest share first.
    late: how many activations are late. outside: how many of them the trace does not hold. untraced: how many more came
    in turns without tracing, which measure what tracing adds; they count nowhere else.
    left_out: how many were left out because there are too many. blind: what the trace has no events for.
    counts_preemption: whether the kernel counts how often preemption is off.
    recorder: what a flight recorder kept and lost; None without one, or if the record was cut off.
    timelines: what each CPU did around these activations. clock_error_ns: of the trace's times, where they had to be
    brought to the record's clock; else 0. machine: what was counted of time in which the machine was gone.
    windows: which of the times that the trace was kept for lack events.
    """

    limit_ns: int | None
    budgets: tuple[TimeBudget, ...]
    ordinary: tuple[TimeBudget, ...]
    rows: tuple[CauseRow, ...]
    late: int
    outside: int
    untraced: int
    left_out: int
    blind: tuple[Blind, ...]
    counts_preemption: bool
    skipped: Mapping[str, int]
    timelines: tuple[CpuTimeline, ...] = field(repr=False)
    clock_error_ns: int
    machine: MachineCounts = NOTHING_COUNTED
    recorder: kernel_trace.RecorderWindows | None = None
    windows: TraceWindows = field(default_factory=TraceWindows)

    @property
    def open_count(self) -> int:
        """In how many late activations the first cause is not clear."""
        return sum(len(each.possible_firsts) > 1 for each in self.budgets)

    @property
    def total_ns(self) -> int:
        """The time of all budgets of late activations."""
        return sum(each.activation.latency_ns for each in self.budgets)

    def share_of(self, *causes: Cause) -> float:
        """The share of the late time that these causes took."""
        return sum(row.share for row in self.rows if row.cause.cause in causes)


def explain(record: Record, limit_ns: int | None = None, top: int = DEFAULT_TOP) -> Explanation:
    """Explain the late activations of a record.

    limit_ns: above which an activation is late; without it the smallest limit of the run, and without that the ``top``
    largest. UserError if the record has no trace, or one that cannot explain anything.
    """
    source = trace_source(record, record.begin.origin_monotonic_ns)
    limit_ns = limit_ns or min(requested_limits_ns(record), default=None) or _recorder_threshold_ns(record)
    chosen = (_kept_by_recorder if kernel_trace.has_recorder(record) else _chosen)(record, limit_ns, top)
    counts = read_counts(record)
    trace = _read_trace(source, [*chosen.late, *chosen.ordinary], counts)
    inside = [each for each in chosen.late if trace.holds(each)]
    waits = ProgramWaits(record, record.begin.origin_monotonic_ns)
    told = tuple(waits.added_to(trace.budget(each)) for each in inside)
    budgets, machine = with_counts(record, counts, told)
    usual = tuple(trace.budget(each) for each in chosen.ordinary if trace.holds(each))
    return Explanation(
        limit_ns=limit_ns,
        budgets=budgets,
        ordinary=usual,
        rows=cause_rows(budgets, usual),
        late=chosen.count,
        outside=len(chosen.late) - len(inside),
        untraced=chosen.untraced,
        left_out=chosen.count - len(chosen.late),
        blind=_blind(source),
        counts_preemption=trace.system.counts,
        skipped=dict(trace.skipped),
        timelines=tuple(trace.timelines.values()),
        clock_error_ns=trace.clock_error_ns,
        machine=machine,
        recorder=kernel_trace.recorder_windows(record),
        windows=trace_windows(record, trace.timelines, map(_span, [*inside, *chosen.ordinary])),
    )


def explain_activations(record: Record, activations: Sequence[LateActivation]) -> tuple[TimeBudget, ...]:
    """The budgets of activations that somebody else measured beside a traced run; of those that the trace holds.

    Their times count from the record's origin. Errors as of ``explain``.
    """
    source = trace_source(record, record.begin.origin_monotonic_ns)
    trace = _read_trace(source, activations, read_counts(record))
    waits = ProgramWaits(record, record.begin.origin_monotonic_ns)
    return tuple(waits.added_to(trace.budget(each)) for each in activations if trace.holds(each))


# Which activations are explained.


NO_SAMPLES = "the record has no samples, so the late activations are unknown"


@dataclass(frozen=True)
class Choice:
    """The late activations, largest first, how many there are in all, and a sample of ordinary ones.

    untraced: how many late ones came in turns without tracing; the others hold none of these.
    """

    late: list[LateActivation]
    count: int
    ordinary: list[LateActivation]
    untraced: int = 0


def _chosen(record: Record, limit_ns: int | None, top: int) -> Choice:
    every = [(series, *_by_tracing(record, series)) for series in judged_series(record)]
    found = [(series, traced) for series, traced, _ in every if traced.value.size]
    if not found:
        raise UserError(NO_SAMPLES)
    values = np.concatenate([some.value for _, some in found])
    above_ns = limit_ns if limit_ns is not None else _below_largest(values, top)
    late = [each for series, some in found for each in _as_late(record, series, some.where(some.value > above_ns))]
    late.sort(key=lambda each: (-each.latency_ns, each.due_ns))
    count = len(late) if limit_ns is not None else min(top, len(late))
    low, high = np.quantile(values, (0.25, 0.75))
    middle = [(series, some.where((some.value >= low) & (some.value <= min(high, above_ns)))) for series, some in found]
    usual = [each for series, some in middle for each in _as_late(record, series, some)]
    untraced = sum(int((gone.value > above_ns).sum()) for _, _, gone in every)
    return Choice(late[: min(count, MOST_LATE)], count, _spread(usual, ORDINARY), untraced)


def _by_tracing(record: Record, series: Series) -> tuple[Activations, Activations]:
    """The activations with tracing, and those in turns without."""
    every = _activations(record, series)
    off = in_untraced_turns(record, every.due_ns)
    return every.where(~off), every.where(off)


def late_times(record: Record, limit_ns: int | None, top: int) -> dict[int, tuple[Int64Array, Int64Array]]:
    """Due times and values of the late activations, by the id of their series. limit_ns and top as for ``explain``."""
    found = {series.id: _activations(record, series) for series in judged_series(record)}
    values = np.concatenate([some.value for some in found.values()]) if found else np.zeros(0, np.int64)
    if not values.size:
        raise UserError(NO_SAMPLES)
    above_ns = limit_ns if limit_ns is not None else _below_largest(values, top)
    late = {of: some.where(some.value > above_ns) for of, some in found.items()}
    return {of: (some.due_ns, some.value) for of, some in late.items()}


def _below_largest(values: Int64Array, top: int) -> int:
    """The largest value that so many values are above; of equal ones there may be more above."""
    first = max(0, values.size - top)
    return int(np.partition(values, first)[first]) - 1


def _activations(record: Record, series: Series) -> Activations:
    parts = []
    for block in record.blocks(series.id):
        missed = np.zeros(block.values.size, np.int64)
        missed[block.gap_position] = block.gap_missed
        parts.append(number_activations(series, block.first_index, block.first_due_ns, block.values, missed))
    return join_activations(parts) if parts else NO_ACTIVATIONS


def _as_late(record: Record, series: Series, some: Activations) -> Iterator[LateActivation]:
    tid = fact_number(record, "tid", Moment.START, series.thread)
    if tid is None:
        return
    for index, due_ns, value in zip(some.index.tolist(), some.due_ns.tolist(), some.value.tolist(), strict=True):
        yield LateActivation(series.id, series.thread, tid, index, due_ns, value, series.method == BY_MARKS)


def _spread(usual: list[LateActivation], most: int) -> list[LateActivation]:
    """A random sample, the same each time."""
    if len(usual) <= most:
        return usual
    places = np.random.default_rng(0).choice(len(usual), most, replace=False)
    return [usual[at] for at in sorted(places)]


# Which activations a flight recorder kept.


def _recorder_threshold_ns(record: Record) -> int | None:
    """Above which the flight recorder kept activations; None without a recorder, or without a threshold of its own."""
    words = kernel_trace.trace_information(record).get("recorder", "").split()
    told = dict(word.partition("=")[::2] for word in words)
    return whole_number(told.get("threshold_ns", "")) or None


def _kept_by_recorder(record: Record, limit_ns: int | None, top: int) -> Choice:
    """As ``_chosen``, of the activations that have a window. Above a limit, those that have none are counted too."""
    late, usual = _with_windows(record, ordinary=False), _with_windows(record, ordinary=True)
    late.sort(key=lambda each: (-each.latency_ns, each.due_ns))
    if limit_ns is None:
        return Choice(late[:top], min(top, len(late)), usual)
    above = [each for each in late if each.latency_ns > limit_ns]
    if not record.chunk_refs:
        return Choice(above, len(above), usual)
    return replace(_chosen(record, limit_ns, top), ordinary=usual)


def _with_windows(record: Record, *, ordinary: bool) -> list[LateActivation]:
    """The activations that have a window, for the reason that they were ordinary or for another one."""
    series = {each.id: each for each in judged_series(record)}
    wanted = (each for each in record.snapshots if (each.reason is SnapshotReason.ORDINARY) is ordinary)
    return [each for snapshot in wanted for each in _of_snapshot(record, series, snapshot)]


def _of_snapshot(record: Record, kept: Mapping[int, Series], snapshot: Snapshot) -> list[LateActivation]:
    series = kept.get(snapshot.series)
    tid = fact_number(record, "tid", Moment.START, series.thread) if series else None
    if series is None or tid is None or snapshot.value <= 0:
        return []
    return [LateActivation(series.id, series.thread, tid, snapshot.index, snapshot.due_ns, snapshot.value)]


# The trace as timelines.


@dataclass(frozen=True)
class ReadTrace:
    """The timelines of all CPUs, what happened to threads, and what is known of the system.

    changes: of the measured threads. partners: of all threads, those that are not measured around the activations only.

    recorded: series and index of the activations that a flight recorder kept; None if all of the trace was kept.
    """

    timelines: dict[int, CpuTimeline]
    changes: dict[int, list[Change]]
    partners: dict[int, list[Change]]
    system: System
    skipped: Counter[str]
    recorded: frozenset[tuple[int, int]] | None = None
    clock_error_ns: int = 0

    def holds(self, activation: LateActivation) -> bool:
        """Whether the trace has the thread running after the activation's due time, and begins before it."""
        if self.recorded is not None and (activation.series, activation.index) not in self.recorded:
            return False
        changes = self.changes.get(activation.tid, [])
        first = bisect_left(changes, activation.due_ns, key=lambda change: change.time_ns)
        ran = next((changes[at] for at in range(first, len(changes)) if changes[at].what == "in"), None)
        if ran is None or (ran.time_ns > activation.end_ns and not self._switch_is_missing(activation, ran)):
            return self._ran_through(activation, changes)
        begin_ns = self.timelines[ran.cpu].from_ns if ran.cpu in self.timelines else None
        return begin_ns is not None and begin_ns <= activation.due_ns

    def _switch_is_missing(self, activation: LateActivation, ran: Change) -> bool:
        """Whether the thread got the CPU at an unknown time that may lie before the activation's end."""
        missing = self.timelines[ran.cpu].missing if ran.cpu in self.timelines else ()
        at = bisect_left(missing, ran.time_ns, key=lambda one: one.to_ns)
        return at < len(missing) and missing[at].to_ns == ran.time_ns and missing[at].from_ns < activation.end_ns

    def _ran_through(self, activation: LateActivation, changes: Sequence[Change]) -> bool:
        """Whether the thread had the CPU from before the due time to the end: it never slept, so it never woke."""
        begin = bisect_right(changes, activation.due_ns, key=lambda change: change.time_ns)
        before = next((each for each in reversed(changes[:begin]) if each.what in ("in", "out", "gone")), None)
        if before is None or before.what != "in" or before.cpu not in self.timelines:
            return False
        timeline = self.timelines[before.cpu]
        covered = timeline.to_ns is not None and timeline.to_ns >= activation.end_ns
        return covered and all(
            hole.to_ns <= before.time_ns or hole.from_ns >= activation.end_ns for hole in timeline.lost
        )

    def budget(self, activation: LateActivation) -> TimeBudget:
        return budget(activation, self.changes.get(activation.tid, []), self.timelines, self.system, self.partners)


def _span(activation: LateActivation) -> Window:
    return Window(activation.due_ns - LOOK_BACK_NS, activation.end_ns)


def _read_trace(source: TraceSource, activations: Sequence[LateActivation], counts: RecordCounts) -> ReadTrace:
    record = source.record
    windows = joined(map(_span, activations))
    names = kernel_trace.task_names(record)
    watched = watched_threads(activations)
    timelines: dict[int, CpuTimeline] = {}
    changes: dict[int, list[Change]] = defaultdict(list)
    partners: dict[int, list[Change]] = defaultdict(list)
    sightings: list[NameSightings] = []
    starts: dict[int, list[TimerStart]] = defaultdict(list)
    sent: list[SentInterrupt] = []
    served: list[ServedCall] = []
    taken: dict[tuple[int, str | int], list[int]] = {}
    deepest = 0
    for cpu in source.cpus:
        walk = CpuWalk(cpu, source.meaning, windows, watched, names)
        timelines[cpu] = walk.walk(source.events(cpu))
        deepest = max(deepest, walk.deepest)
        sightings.append(walk.sightings)
        for kept_of, found_of in ((changes, walk.changes), (partners, walk.partners)):
            for tid, found in found_of.items():
                kept_of[tid] += found
        for tid, some in walk.starts.items():
            starts[tid] += some
        sent += walk.sent
        served += walk.served
        taken |= walk.taken
    kept = frozenset((each.series, each.index) for each in record.snapshots)
    recorded = kept if kernel_trace.has_recorder(record) else None
    system = _system(source, deepest, counts.ever_stolen)
    called = thread_names(sightings)
    measured = {tid: with_slack(found, sorted(starts[tid])) for tid, found in _ordered(changes, called).items()}
    told = _ordered(partners, called) | measured
    return ReadTrace(
        timelines={cpu: called.in_timeline(timeline) for cpu, timeline in timelines.items()},
        changes=measured,
        partners=told,
        system=replace(system, senders=find_senders(sent, served, told, taken)),
        skipped=source.skipped,
        recorded=recorded,
        clock_error_ns=source.clock_error_ns,
    )


def _ordered(changes: Mapping[int, list[Change]], called: ThreadNames) -> dict[int, list[Change]]:
    """The changes of each thread on all CPUs in order of time."""
    return {tid: sorted(called.in_changes(found), key=lambda change: change.time_ns) for tid, found in changes.items()}


def _system(source: TraceSource, deepest: int, ever_stolen: bool) -> System:
    """deepest: how often preemption was off at most, of all threads that left the CPU.

    ever_stolen: whether a hypervisor took time since the system started. So it is a guest, whatever else says nothing.
    """
    record, names = source.record, source.names
    model = preemption_model(record).effective.value or ""
    real_time = model.split()[:1] == ["rt"]  # or "rt (lazy)", of 6.12
    config = kernel_config(record)
    counts = deepest > 0 or (config is not None and config.has("PREEMPT_COUNT"))
    can_be_gone = (ever_stolen or is_guest(record)) and not virtual_time_clock(record)
    return System(
        own=own_threads(record),
        preempts=real_time or model in ("full", "lazy"),
        real_time=real_time,
        counts=counts,
        sees_interrupts=Blind.INTERRUPTS not in _blind(source),
        can_be_gone=can_be_gone,
        limits=recorded_limits(record),
        sees_calls="sys_exit" in names,
    )


def _blind(source: TraceSource) -> tuple[Blind, ...]:
    names = source.names
    least_vectors = LEAST_VECTORS if source.record.begin.agent_version else OCCURRING_VECTORS
    classes = {
        Blind.INTERRUPTS: "irq_handler_entry" in names and _has_all_vectors(names, least_vectors),
        Blind.SOFTIRQS: "softirq_entry" in names,
        Blind.TIMERS: "hrtimer_expire_entry" in names,
        Blind.FAULTS: "page_fault_user" in names,
    }
    return tuple(missing for missing, there in classes.items() if not there)


def _has_all_vectors(names: Collection[str], least: int) -> bool:
    """Whether interrupts without a handler have events. On x86 each has a vector; elsewhere they are IPIs."""
    vectors = [name for name in names if VECTOR.fullmatch(name)]
    return "ipi_entry" in names or sum(name.endswith("_entry") for name in vectors) >= least


LEAST_VECTORS = 5
"""A trace with fewer vectors of x86 has not all that every kernel has: timer, reschedule, two calls, work."""
OCCURRING_VECTORS = 2
"""The same for a trace of which only the events that occurred are known. Who chose some chose the timer's alone."""


# The causes of all late activations together.


def cause_rows(budgets: Sequence[TimeBudget], ordinary: Sequence[TimeBudget]) -> tuple[CauseRow, ...]:
    """One row for each cause, the largest share first. Threads of one name share a row."""
    of_late, usual = [_by_name(each) for each in budgets], [_by_kind(each) for each in ordinary]
    threads: dict[NamedCause, set[int | None]] = defaultdict(set)
    ranks: dict[NamedCause, set[Ranks | None]] = defaultdict(set)
    for cause in (part.cause for each in budgets for part in each.parts):
        threads[replace(cause, tid=None)].add(cause.tid)
        ranks[replace(cause, tid=None)].add(cause.ranks)
    first = Counter(replace(each.first, tid=None) for each in budgets)
    several = [found for each in budgets if len(found := each.possible_firsts) > 1]
    left_open = Counter(cause for found in several for cause in {replace(one, tid=None) for one in found})
    late_ns = sum(each.activation.latency_ns for each in budgets)
    paths, chains = _paths(budgets), _chains(budgets)
    rows = [
        replace(
            _row(known, tids, [each[cause] for each in of_late if cause in each], (first[cause], late_ns), usual),
            path=paths.get(cause),
            open_in=left_open[cause],
            waits_for=chains[cause],
        )
        for cause, tids in threads.items()
        for known in (replace(cause, ranks=_the_only(ranks[cause])),)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.cause.order)))


def _the_only(ranks: set[Ranks | None]) -> Ranks | None:
    return next(iter(ranks)) if len(ranks) == 1 else None


def _paths(budgets: Sequence[TimeBudget]) -> dict[NamedCause, CommonPath]:
    stacks: dict[NamedCause, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
    for part in (part for each in budgets for part in each.parts if part.stack):
        stacks[replace(part.cause, tid=None)].append((part.stack, part.length_ns))
    return {cause: common_path(some) for cause, some in stacks.items()}


def _chains(budgets: Sequence[TimeBudget]) -> dict[NamedCause, tuple[str, ...]]:
    """The threads that each cause kept for most of its time, by their names alone where it was several of the names."""
    lengths_ns: dict[NamedCause, Counter[tuple[str, ...]]] = defaultdict(Counter)
    threads: dict[tuple[NamedCause, tuple[str, ...]], set[tuple[str, ...]]] = defaultdict(set)
    for part in (part for each in budgets for part in each.parts):
        cause, names = replace(part.cause, tid=None), tuple(who.rpartition("/")[0] for who in part.waits_for)
        lengths_ns[cause][names] += part.length_ns
        threads[cause, names].add(part.waits_for)
    longest = {cause: max(found, key=lambda names: (found[names], names)) for cause, found in lengths_ns.items()}
    several = {cause: threads[cause, names] for cause, names in longest.items()}
    return {cause: next(iter(same)) if len(same) == 1 else longest[cause] for cause, same in several.items()}


def _row(
    cause: NamedCause,
    tids: set[int | None],
    lengths_ns: Sequence[int],
    totals: tuple[int, int],
    usual: Sequence[Counter[NamedCause]],
) -> CauseRow:
    """totals: in how many activations the cause is the first one, and the time of all late activations."""
    first_in, late_ns = totals
    kind = _kind(cause, bool(tids - {None}))
    return CauseRow(
        cause=replace(cause, tid=next(iter(tids))) if len(tids) == 1 else cause,
        threads=len(tids - {None}),
        share=sum(lengths_ns) / late_ns if late_ns else 0.0,
        total_ns=sum(lengths_ns),
        late=len(lengths_ns),
        first_in=first_in,
        median_ns=round(median(lengths_ns)),
        largest_ns=max(lengths_ns),
        typical_ns=round(median([each[kind] for each in usual])) if usual else 0,
    )


def _by_name(of: TimeBudget) -> Counter[NamedCause]:
    total: Counter[NamedCause] = Counter()
    for cause, length_ns in of.by_cause.items():
        total[replace(cause, tid=None)] += length_ns
    return total


def _by_kind(of: TimeBudget) -> Counter[NamedCause]:
    """The same of an ordinary activation, where it does not matter which thread it was."""
    total: Counter[NamedCause] = Counter()
    for cause, length_ns in of.by_cause.items():
        total[_kind(cause, cause.tid is not None)] += length_ns
    return total


def _kind(cause: NamedCause, of_thread: bool) -> NamedCause:
    return NamedCause(cause.cause, "" if of_thread else cause.name)
