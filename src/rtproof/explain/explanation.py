# SPDX-License-Identifier: Apache-2.0
"""Why a run was late: a budget for each late activation that its trace holds, and the causes of all of them together.

Ordinary activations get budgets too, because only they show what is different in the late ones.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.units import whole_number
from rtproof.explain.budget import BudgetPart, LateActivation, System, TimeBudget, budget
from rtproof.explain.causes import Advice, Blind, Cause, NamedCause, advice_on, words_with_chain
from rtproof.explain.cpu_contexts import walk_cpus
from rtproof.explain.machine_gone_counts import NOTHING_COUNTED, MachineCounts, ever_stolen, read_counts, with_counts
from rtproof.explain.program_waits import ProgramWaits
from rtproof.explain.thread_activations import BY_MARKS
from rtproof.explain.throttling import recorded_limits
from rtproof.explain.trace_events import Window
from rtproof.explain.trace_source import TraceSource
from rtproof.explain.trace_timelines import CpuTimeline, Timelines, joined
from rtproof.record.activations import NO_ACTIVATIONS, Activations, join_activations, number_activations
from rtproof.record.contents import Moment, Record, Series, SnapshotReason
from rtproof.summary import kernel_trace
from rtproof.summary.fields import judged_series
from rtproof.summary.measured_kernel import kernel_config, preemption_model
from rtproof.summary.recorded_facts import fact_number, requested_limits_ns, virtual_time_clock
from rtproof.summary.system_facts import is_guest
from rtproof.summary.target_threads import own_threads
from rtproof.summary.trace_text import VECTOR
from rtproof.summary.tracing_effect import in_untraced_turns, untraced_times

DEFAULT_TOP = 32
ORDINARY = 32
MOST_LATE = 20_000
"""A run with more late activations has budgets of the largest ones; the others are counted."""


class CommonPath(NamedTuple):
    """What some stacks have in common.

    functions: functions of the kernel, the outermost first, in which more than half of the time was spent. share: of
    the time of the parts that have a stack. stacks: how many stacks there are.
    """

    functions: tuple[str, ...]
    share: float
    stacks: int


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
class TraceWindows:
    """The windows of a flight recorder, or without one the times of the explained activations.

    count: how many there are. whole: how many lack no event. lost: how many lack events that the kernel or the recorder
    lost. untraced: how many reach into a turn without tracing. missing: in how many a switch between threads has no
    event. missing_on: the same for each CPU that has any; a window may lack several.
    """

    count: int = 0
    whole: int = 0
    lost: int = 0
    untraced: int = 0
    missing: int = 0
    missing_on: Mapping[int, int] = field(default_factory=dict)


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
    source = TraceSource(record, record.begin.origin_monotonic_ns)
    limit_ns = limit_ns or min(requested_limits_ns(record), default=None)
    if limit_ns is None:  # a flight recorder may have kept those above a threshold of its own
        words = kernel_trace.trace_information(record).get("recorder", "").split()
        threshold = next((word for word in words if word.startswith("threshold_ns=")), "")
        limit_ns = whole_number(threshold.partition("=")[2]) or None
    late, ordinary, untraced = _chosen(record, limit_ns, top)
    most_late = late[:MOST_LATE]
    counts = read_counts(record)
    trace, system = _read_trace(source, [*most_late, *ordinary], ever_stolen(counts))
    inside = _held(record, trace, most_late)
    budgets, machine = with_counts(record, counts, _budgets(record, trace, system, inside))
    usual = tuple(budget(each, trace, system) for each in _held(record, trace, ordinary))
    return Explanation(
        limit_ns=limit_ns,
        budgets=budgets,
        ordinary=usual,
        rows=cause_rows(budgets, usual),
        late=len(late),
        outside=len(most_late) - len(inside),
        untraced=untraced,
        left_out=len(late) - len(most_late),
        blind=_blind(source),
        counts_preemption=system.counts,
        skipped=dict(source.skipped),
        timelines=tuple(trace.of_cpus.values()),
        clock_error_ns=source.clock_error_ns,
        machine=machine,
        recorder=kernel_trace.recorder_windows(record),
        windows=trace_windows(record, trace.of_cpus, (each.span for each in [*inside, *ordinary])),
    )


def explain_activations(record: Record, activations: Sequence[LateActivation]) -> tuple[TimeBudget, ...]:
    """The budgets of activations that somebody else measured beside a traced run; of those that the trace holds.

    Their times count from the record's origin. Errors as of ``explain``.
    """
    source = TraceSource(record, record.begin.origin_monotonic_ns)
    trace, system = _read_trace(source, activations, ever_stolen(read_counts(record)))
    return _budgets(record, trace, system, _held(record, trace, activations))


def _budgets(
    record: Record, trace: Timelines, system: System, activations: Sequence[LateActivation]
) -> tuple[TimeBudget, ...]:
    """The budgets of late activations, with the functions of the program in which the thread waited."""
    waits = ProgramWaits(record, record.begin.origin_monotonic_ns)
    return tuple(waits.added_to(budget(each, trace, system)) for each in activations)


def _held(record: Record, trace: Timelines, activations: Sequence[LateActivation]) -> list[LateActivation]:
    """The activations that the trace holds, and of a flight recorder those that it kept."""
    kept = {(each.series, each.index) for each in record.snapshots} if kernel_trace.has_recorder(record) else None
    wanted = (each for each in activations if kept is None or (each.series, each.index) in kept)
    return [each for each in wanted if trace.hold(each.tid, each.due_ns, each.end_ns)]


# Which activations are explained.


def _chosen(record: Record, limit_ns: int | None, top: int) -> tuple[list[LateActivation], list[LateActivation], int]:
    """The late activations, the largest first; a sample of ordinary ones; and how many late ones were not traced.

    A flight recorder kept only some. Without a limit, only those that have a window are late; with one, the others are
    counted too.
    """
    if not kernel_trace.has_recorder(record):
        return _of_samples(record, limit_ns, top)
    late, usual = _with_windows(record, ordinary=False), _with_windows(record, ordinary=True)
    if limit_ns is None:
        return _largest_first(late)[:top], usual, 0
    if not record.chunk_refs:
        return _largest_first(each for each in late if each.latency_ns > limit_ns), usual, 0
    late, _, untraced = _of_samples(record, limit_ns, top)
    return late, usual, untraced


def _of_samples(
    record: Record, limit_ns: int | None, top: int
) -> tuple[list[LateActivation], list[LateActivation], int]:
    every = measured_activations(record)
    off = [in_untraced_turns(record, some.due_ns) for _, some in every]
    traced = [(series, some.where(~away)) for (series, some), away in zip(every, off, strict=True)]
    above_ns = late_above_ns(traced, limit_ns, top)
    late = [each for series, some in traced for each in _as_late(record, series, some.where(some.value > above_ns))]
    low, high = np.quantile(np.concatenate([some.value for _, some in traced]), (0.25, 0.75))
    middle = [
        (series, some.where((some.value >= low) & (some.value <= min(high, above_ns)))) for series, some in traced
    ]
    usual = [each for series, some in middle for each in _as_late(record, series, some)]
    if len(usual) > ORDINARY:  # a random sample, the same each time
        usual = [usual[at] for at in sorted(np.random.default_rng(0).choice(len(usual), ORDINARY, replace=False))]
    untraced = sum(int((some.value[away] > above_ns).sum()) for (_, some), away in zip(every, off, strict=True))
    most = top if limit_ns is None else len(late)
    return _largest_first(late)[:most], usual, untraced


def _largest_first(late: Iterable[LateActivation]) -> list[LateActivation]:
    return sorted(late, key=lambda each: (-each.latency_ns, each.due_ns))


def measured_activations(record: Record) -> list[tuple[Series, Activations]]:
    """The activations of each series that is judged."""
    return [(series, _activations(record, series)) for series in judged_series(record)]


def late_above_ns(measured: Sequence[tuple[Series, Activations]], limit_ns: int | None, top: int) -> int:
    """Above which an activation is late: the limit, or without one what the ``top`` largest are above.

    UserError without any activation.
    """
    values = np.concatenate([some.value for _, some in measured]) if measured else np.zeros(0, np.int64)
    if not values.size:
        raise UserError("the record has no samples, so the late activations are unknown")
    if limit_ns is not None:
        return limit_ns
    # The largest value that so many values are above; of equal ones there may be more above.
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


# Which activations a flight recorder kept.


def _with_windows(record: Record, *, ordinary: bool) -> list[LateActivation]:
    """The activations that have a window, for the reason that they were ordinary or for another one."""
    found = []
    series = {each.id: each for each in judged_series(record)}
    for kept in record.snapshots:
        of = series.get(kept.series)
        tid = fact_number(record, "tid", Moment.START, of.thread) if of else None
        if of and tid is not None and kept.value > 0 and (kept.reason is SnapshotReason.ORDINARY) is ordinary:
            found.append(LateActivation(of.id, of.thread, tid, kept.index, kept.due_ns, kept.value))
    return found


# The trace as timelines.


def _read_trace(
    source: TraceSource, activations: Sequence[LateActivation], ever_stolen: bool
) -> tuple[Timelines, System]:
    """What happened around the activations, and what the system is.

    ever_stolen: whether a hypervisor took time since the system started. So it is a guest, whatever else says nothing.
    """
    record = source.record
    events = ((cpu, source.events(cpu)) for cpu in source.cpus)
    watched, names = {each.tid for each in activations}, kernel_trace.task_names(record)
    trace = walk_cpus(events, source.meaning, joined(each.span for each in activations), watched, names)
    model, config = preemption_model(record).effective.value or "", kernel_config(record)
    real_time = model.split()[:1] == ["rt"]  # or "rt (lazy)", of 6.12
    system = System(
        own=own_threads(record),
        preempts=real_time or model in ("full", "lazy"),
        real_time=real_time,
        counts=trace.deepest > 0 or (config is not None and config.has("PREEMPT_COUNT")),
        sees_interrupts=Blind.INTERRUPTS not in _blind(source),
        can_be_gone=(ever_stolen or is_guest(record)) and not virtual_time_clock(record),
        limits=recorded_limits(record),
        sees_calls="sys_exit" in source.names,
    )
    return trace, system


def _blind(source: TraceSource) -> tuple[Blind, ...]:
    names = source.names
    # Interrupts without a handler have events too: on x86 each has a vector, elsewhere they are IPIs.
    vectors = sum(name.endswith("_entry") for name in names if VECTOR.fullmatch(name))
    least = LEAST_VECTORS if source.record.begin.agent_version else OCCURRING_VECTORS
    classes = {
        Blind.INTERRUPTS: "irq_handler_entry" in names and ("ipi_entry" in names or vectors >= least),
        Blind.SOFTIRQS: "softirq_entry" in names,
        Blind.TIMERS: "hrtimer_expire_entry" in names,
        Blind.FAULTS: "page_fault_user" in names,
    }
    return tuple(missing for missing, there in classes.items() if not there)


LEAST_VECTORS = 5
"""A trace with fewer vectors of x86 has not all that every kernel has: timer, reschedule, two calls, work."""
OCCURRING_VECTORS = 2
"""The same for a trace of which only the events that occurred are known. Who chose some chose the timer's alone."""


# Which of the times that the trace was kept for lack events.

Spans = Sequence[tuple[int, int]]
"""Parts of the time that do not overlap, in order: from when to when, in ns."""


def meets(span: Window, holes: Spans) -> bool:
    """Whether any of these parts of the time lies within a time, or a part of it does."""
    at = bisect_right(holes, span.to_ns, key=lambda hole: hole[0])
    return at > 0 and holes[at - 1][1] > span.from_ns


def trace_windows(record: Record, timelines: Mapping[int, CpuTimeline], activations: Iterable[Window]) -> TraceWindows:
    """What the windows of a record lack. activations: the times of those that are explained."""
    kept = [(Window(one.from_ns, one.to_ns), not one.whole) for one in record.snapshots]
    if not kernel_trace.has_recorder(record):
        lost_ns = [[(hole.from_ns, hole.to_ns) for hole in each.lost] for each in timelines.values()]
        kept = [(span, any(meets(span, holes) for holes in lost_ns)) for span in activations]
    return count_windows(kept, untraced_times(record), {cpu: each.missing for cpu, each in timelines.items()})


def count_windows(kept: Sequence[tuple[Window, bool]], untraced: Spans, missing: Mapping[int, Spans]) -> TraceWindows:
    """kept: windows, each with whether events of it were lost. missing: where CPUs have switches without an event."""
    on: Counter[int] = Counter()
    reasons: Counter[str] = Counter()
    for span, lost in kept:
        cpus = [cpu for cpu, holes in missing.items() if meets(span, holes)]
        on.update(cpus)
        lacks = {"lost": lost, "untraced": meets(span, untraced), "missing": bool(cpus)}
        reasons.update([reason for reason, there in lacks.items() if there] or ["whole"])
    return TraceWindows(len(kept), missing_on=dict(sorted(on.items())), **reasons)


# The causes of all late activations together.


def cause_rows(budgets: Sequence[TimeBudget], ordinary: Sequence[TimeBudget]) -> tuple[CauseRow, ...]:
    """One row for each cause, the largest share first. Threads of one name share a row."""
    parts: dict[NamedCause, list[tuple[int, BudgetPart]]] = defaultdict(list)
    for number, each in enumerate(budgets):
        for part in each.parts:
            parts[_of_name(part.cause)].append((number, part))
    first = Counter(_of_name(each.first) for each in budgets)
    several = [found for each in budgets if len(found := each.possible_firsts) > 1]
    left_open = Counter(cause for found in several for cause in {_of_name(one) for one in found})
    late_ns = sum(each.activation.latency_ns for each in budgets)
    usual: list[Counter[NamedCause]] = []
    for each in ordinary:
        usual.append(Counter())
        for cause, length_ns in each.by_cause.items():
            usual[-1][_kind(cause, cause.tid is not None)] += length_ns
    rows = [
        replace(_row(cause, some, late_ns, usual), first_in=first[cause], open_in=left_open[cause])
        for cause, some in parts.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.cause.order)))


def _row(
    cause: NamedCause, parts: Sequence[tuple[int, BudgetPart]], late_ns: int, usual: Sequence[Counter[NamedCause]]
) -> CauseRow:
    """parts: those of the cause, each with the number of its budget. late_ns: the time of all late activations.

    usual: the time of each kind of cause of each ordinary activation.
    """
    of_budgets: Counter[int] = Counter()
    chains: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)  # the threads kept, by their names
    for number, part in parts:
        of_budgets[number] += part.length_ns
        chains[tuple(who.rpartition("/")[0] for who in part.waits_for)][part.waits_for] += part.length_ns
    longest = max(chains, key=lambda names: (chains[names].total(), names))
    tids, ranks = {part.cause.tid for _, part in parts}, {part.cause.ranks for _, part in parts}
    stacks = [(part.stack, part.length_ns) for _, part in parts if part.stack]
    kind = _kind(cause, bool(tids - {None}))
    return CauseRow(
        cause=replace(cause, tid=_the_only(tids), ranks=_the_only(ranks) or ""),
        threads=len(tids - {None}),
        share=of_budgets.total() / late_ns if late_ns else 0.0,
        total_ns=of_budgets.total(),
        late=len(of_budgets),
        first_in=0,
        median_ns=round(median(of_budgets.values())),
        largest_ns=max(of_budgets.values()),
        typical_ns=round(median([each[kind] for each in usual])) if usual else 0,
        path=common_path(stacks) if stacks else None,
        waits_for=_the_only({*chains[longest]}) or longest,
    )


def common_path(stacks: Sequence[tuple[tuple[str, ...], int]]) -> CommonPath:
    """The longest path from the outermost function inwards that has more than half of the time.

    stacks: each with the length of the time that it stands for, in ns.
    """
    whole_ns = sum(length_ns for _, length_ns in stacks)
    paths: Counter[tuple[str, ...]] = Counter()
    for stack, length_ns in stacks:
        outermost_first = stack[::-1]
        for depth in range(1, len(outermost_first) + 1):
            paths[outermost_first[:depth]] += length_ns
    often = [path for path, length_ns in paths.items() if 2 * length_ns > whole_ns]
    path = max(often, key=len, default=())
    return CommonPath(path, paths[path] / whole_ns if path else 0.0, len(stacks))


Found = TypeVar("Found")


def _the_only(found: Set[Found]) -> Found | None:
    return next(iter(found)) if len(found) == 1 else None


def _of_name(cause: NamedCause) -> NamedCause:
    """The same cause of all threads of a name."""
    return replace(cause, tid=None)


def _kind(cause: NamedCause, of_thread: bool) -> NamedCause:
    """The cause of any thread, where it does not matter which thread it was."""
    return NamedCause(cause.cause, "" if of_thread else cause.name)
