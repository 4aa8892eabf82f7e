# SPDX-License-Identifier: Apache-2.0
"""The time budget of one activation: every nanosecond from its due time to its end, charged to one cause.

The parts neither overlap nor leave a hole, so they add up to the latency by construction. What a trace does not show is
charged to ``unexplained``.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import groupby, pairwise
from typing import NamedTuple

from rtproof.core.phrases import duration
from rtproof.explain.causes import FAIR_FROM, Blind, Cause, NamedCause, missing_on, rank_words, words_with_chain
from rtproof.explain.thread_modes import (
    A_FAULT,
    AT_END,
    FAULT,
    HANDLER,
    KERNEL,
    UNCLEAR,
    UNKNOWN,
    USER,
    Mode,
    call_words,
)
from rtproof.explain.throttling import CERTAIN, LONG, NO_LIMITS, PROVEN, IdleRun, Limits, idle_runs, withheld_until
from rtproof.explain.trace_events import BH_OFF, SOFTIRQ, Window
from rtproof.explain.trace_timelines import Change, Context, Layer, Stretch, Task, Timelines

TIMER_INTERRUPT = re.compile(r"local_timer|.*(timer|tick|twd).*", re.IGNORECASE)
"""Names of interrupts that expire timers: the vector of x86, and the handlers of other machines."""
RACE_NS = 50_000
"""A thread that got the CPU this soon after the waking may not have known of the waking yet."""
LOOK_AHEAD = 8
"""So many changes are looked at to find where a thread runs next."""
SILENT_FROM_NS = 50_000
DENSE = 5
"""If this many events are expected in a gap and there is none, chance makes that once in 148 gaps."""
IN_GAP = (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE, Cause.MACHINE)
"""Causes of a gap that an interrupt ended: its stack shows where it came."""
IN_SECTION = (Cause.PREEMPT_OFF, Cause.SOFTIRQS_OFF, Cause.NO_POINT, Cause.PREEMPT_OFF_OR_NO_POINT)
"""Causes in which a less urgent thread ran: the stack is that of the latest interrupt that hit it."""
ASKED_FOR = (Cause.HARDIRQ, Cause.THREAD, *IN_GAP)
"""Causes that another CPU may have asked for: its interrupt, or the stopper thread, with interrupts off or not."""
INTERRUPTS = (Cause.TIMER, Cause.OTHER_TIMERS, Cause.HARDIRQ, Cause.NMI, Cause.SOFTIRQ)
EDGE_NS, SWITCH_NS = 500, 2_000
"""So much of an interrupt lies before its first event, as much behind its last, and so much of a switch before
``sched_switch``. The thread that ran before is charged with it. Measured in virtual time, where an instruction takes
1 ns: docs/explain.md, "Too close to tell apart".
"""
TIMERS, TIMER_EDGE_NS = (Cause.TIMER, Cause.OTHER_TIMERS), 750
"""The first event of a timer's interrupt may be that of its first function, 0.25 us further inside."""
LOOK_BACK_NS = 1_000_000
"""This much time before a due time is kept, to see what came before."""
TIMERS_SOFTIRQ = "HRTIMER"
"""The softirq in which timers expire that may wait, and on PREEMPT_RT most timers."""
ARRIVAL_NS = 100_000
"""Within this time behind its migration a thread waits for the interrupt that tells its new CPU."""
_RESTORES = re.compile(
    r"_*raw_(spin|read|write)_unlock_irq(restore)?|_*rt_(spin|read|write)_unlock_irq\w*|(raw_|arch_)?local_irq_(restore|enable)"
    r"|native_(restore_fl|irq_enable)|trace_hardirqs_on\w*"
)
"""Functions that switch interrupts on again for their callers. Just behind them an interrupt comes that had to wait."""
LEAST_SLACK_NS = 1_000
"""A shorter slack makes nobody late. Who has set PR_SET_TIMERSLACK to its least value has one of 1 ns."""
LONGEST_CHAIN = 8
"""So many threads are followed, each of which kept the one before waiting."""
SLEEPS_WITH = "hrtimer_wakeup"
"""The function of a timer that wakes the thread that set it: of nanosleep, and of the time limits of other calls."""
OF_RCU = ("rcu_", "rcuc/", "rcub/", "rcuo")
"""The beginnings of the names of the kernel's threads for RCU. Timers only let them look how far the CPUs are."""
KERNELS_TIMERS = "TIMER"
"""The softirq of the timers with which the kernel's own code sleeps (``schedule_timeout``)."""
GROUPS_MEMORY = "memory.high of its control group, or another limit of {}"
"""Above memory.high, the kernel lets a thread sleep before it returns to its program."""
IN_MODE = {
    USER: Cause.OWN_CODE,
    FAULT: Cause.PAGE_FAULT,
    KERNEL: Cause.SYSTEM_CALL,
    HANDLER: Cause.SIGNAL_HANDLER,
    AT_END: Cause.OWN_CODE_OR_KERNEL,
    UNCLEAR: Cause.OWN_CODE_OR_KERNEL,
}


class Phase(Enum):
    """A: until the thread is woken. B: until it runs. C: until the end."""

    A = "until it was woken"
    B = "until it ran"
    C = "until the end"


@dataclass(frozen=True)
class LateActivation:
    """One activation of a measuring thread.

    Attributes:
        series: The number of its series in the record.
        thread: The measuring thread.
        tid: The number of the thread on the target.
        index: The number of the activation.
        due_ns: When it was due, from the origin of the record.
        latency_ns: How late it was.
        marked: Whether it lies between two marks, so that the thread had the CPU when it began.
    """

    series: int
    thread: int
    tid: int
    index: int
    due_ns: int
    latency_ns: int
    marked: bool = False

    @property
    def end_ns(self) -> int:
        """When it ended, from the origin of the record."""
        return self.due_ns + self.latency_ns

    @property
    def span(self) -> Window:
        """From a little before it was due to its end."""
        return Window(self.due_ns - LOOK_BACK_NS, self.end_ns)


@dataclass(frozen=True)
class BudgetPart:
    """A part of the time of one late activation, and who took it.

    Attributes:
        from_ns: When it begins, from the origin of the record.
        to_ns: When it ends.
        phase: A: until the thread was woken. B: until it ran. C: until the end.
        cause: Who took it.
        cpu: Where; -1 if that is not known.
        stack: The functions of the kernel in which an interrupt found who was charged, innermost first; empty
            if not known.
        waits_for: The threads that it kept, each of which kept the one before waiting; the late thread waited for the
            first one; empty if it kept the late thread itself.
        waits_in: The functions of its program in which the late thread slept, innermost first; empty if not
            known.
    """

    from_ns: int
    to_ns: int
    phase: Phase
    cause: NamedCause
    cpu: int
    stack: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    waits_in: tuple[str, ...] = ()

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.to_ns - self.from_ns

    def words(self, blind: Collection[Blind] = ()) -> str:
        """The cause in words, with the threads that it kept."""
        return words_with_chain(self.cause, self.waits_for, blind)

    @property
    def waited_for(self) -> tuple[str, ...]:
        """The threads that were waited for, each of which waited for the next: ``waits_for``, and the cause if one."""
        holder = self.cause.cause in (Cause.BLOCKED, Cause.SLEEP) and self.cause.tid is not None
        return (*self.waits_for, self.cause.who) if holder else self.waits_for


@dataclass(frozen=True)
class TimeBudget:
    """Where the time of one late activation went.

    Attributes:
        activation: The activation. The parts add up to its latency.
        parts: In order of time, without gaps.
        woken_ns: When the thread was woken; None if the trace does not tell.
        ran_ns: When it got the CPU; None if the trace does not tell.
    """

    activation: LateActivation
    parts: tuple[BudgetPart, ...]
    woken_ns: int | None
    ran_ns: int | None

    @cached_property
    def by_cause(self) -> dict[NamedCause, int]:
        """How many ns each cause took, the largest first."""
        total: Counter[NamedCause] = Counter()
        for part in self.parts:
            total[part.cause] += part.length_ns
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0].order)))

    @property
    def first(self) -> NamedCause:
        """The cause that took the most."""
        return next(iter(self.by_cause), NamedCause(Cause.UNEXPLAINED))

    @cached_property
    def possible_firsts(self) -> tuple[NamedCause, ...]:
        """The causes that may have taken the most: ``first``, and those that its error may have made smaller."""
        total, first = self.by_cause, self.first
        less, more = _charging_errors(self.parts)
        least_ns = total.get(first, 0) - less[first]
        others = [cause for cause in total if cause != first and total[cause] + more[cause] > least_ns]
        return first, *others

    @property
    def waits(self) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
        """From when to when which threads were waited for, in order of time."""
        runs = ((threads, list(run)) for threads, run in groupby(self.parts, key=lambda part: part.waited_for))
        return tuple((run[0].from_ns, run[-1].to_ns, threads) for threads, run in runs if threads)

    @property
    def whole(self) -> bool:
        """Whether the trace explains all of the time."""
        return all(part.cause.cause is not Cause.UNEXPLAINED for part in self.parts)


def _charging_errors(parts: Sequence[BudgetPart]) -> tuple[Counter[NamedCause], Counter[NamedCause]]:
    """By how many ns each cause may really have taken less, and more, than its parts say.

    No event marks the beginning or the end of an interrupt, or the beginning of a switch, exactly.
    """
    less: Counter[NamedCause] = Counter()
    more: Counter[NamedCause] = Counter()
    for before, after in pairwise(parts):
        outer, inner = (before, after) if after.cause.cause in INTERRUPTS else (after, before)
        if before.phase is not Phase.C and after.phase is Phase.C:
            less[before.cause] += SWITCH_NS
            more[after.cause] += SWITCH_NS
        elif inner.cause.cause in INTERRUPTS and before.cause != after.cause:
            edge_ns = TIMER_EDGE_NS if inner is after and inner.cause.cause in TIMERS else EDGE_NS
            less[outer.cause] += edge_ns
            more[inner.cause] += edge_ns
    return less, more


@dataclass(frozen=True)
class System:
    """What the rules need to know of the system.

    own: threads of rtproof. preempts: whether the kernel preempts its own code wherever preemption is on.
    real_time: whether it is PREEMPT_RT, where softirqs that are off do not keep a thread from running.
    counts: whether the kernel counts how often preemption is off. sees_interrupts: whether all interrupts have events.
    can_be_gone: whether it is a guest whose time goes on while its hypervisor runs others.
    limits: what may withhold the CPU from a thread. sees_calls: whether the end of each system call has an event.
    """

    own: frozenset[int] = frozenset()
    preempts: bool = False
    real_time: bool = False
    counts: bool = True
    sees_interrupts: bool = False
    can_be_gone: bool = False
    limits: Limits = NO_LIMITS
    sees_calls: bool = True


class _Mode(Enum):
    ASLEEP = "asleep"
    READY = "ready"
    RUNS = "runs"


class _Step(NamedTuple):
    """A part of the time in which a thread's own state does not change. moves: it will run on another CPU.

    waking: what ends its sleep. unknown: why it has no mode, if known. chain: the threads that were waited for, each
    by the one before; the last one is in this state. cause: of all of it, where that is known: who let the thread sleep
    at the end of the chain, or that its timer is due and may still wait.
    after: what happened last, if anything did. why: of one that moves, in words. doing: what it did when it ran last.
    """

    from_ns: int
    to_ns: int
    mode: _Mode | None
    phase: Phase
    cpu: int
    moves: bool
    waking: Change | None = None
    unknown: str = ""
    chain: tuple[Task, ...] = ()
    cause: NamedCause | None = None
    after: str = ""
    why: str = ""
    doing: Mode = UNKNOWN

    @property
    def waits(self) -> bool:
        """Whether it sleeps in the middle of an activation, or until another thread wakes it, as from a stop."""
        by_thread = self.waking is not None and self.waking.by is not None
        return self.mode is _Mode.ASLEEP and (self.phase is Phase.C or by_thread or bool(self.chain))


def budget(activation: LateActivation, trace: Timelines, system: System) -> TimeBudget:
    """The budget of an activation."""
    changes = trace.of_thread(activation.tid)
    first = bisect_left(changes, activation.due_ns, key=_time)
    within = changes[first : bisect_right(changes, activation.end_ns, key=_time)]
    waking = next((change for change in within if change.what == "waking"), None)
    woken_ns = waking.time_ns if waking else None
    ran_ns = next((change.time_ns for change in within if change.what == "in"), None)
    # The thread's priority at the end of the activation.
    known = [one for one in changes[: first + len(within)][-LOOK_AHEAD:] if one.what in ("waking", "in", "out")]
    rules = _Rules(activation, known[-1].priority if known else FAIR_FROM, trace, system, woken_ns)
    slack = trace.slack(activation.tid, waking) if waking else None
    parts: list[BudgetPart] = []
    for own_step in _steps(activation, changes):
        if own_step.waits:
            rules.waited(own_step)
        for step in _followed(own_step, activation, trace):
            of_step = _PartnerRules(step, rules) if step.chain else rules
            parts += (part for piece in _cut(step, slack) for part in of_step.parts(piece))
    return TimeBudget(activation, tuple(_merged(parts)), woken_ns, ran_ns)


def _time(change: Change) -> int:
    return change.time_ns


def _cut(step: _Step, slack: tuple[int, int, int] | None) -> Iterator[_Step]:
    """A step in which the thread sleeps, apart: the time before its own timer is due, and the timer's slack.

    slack: as ``Timelines.slack`` has it.
    """
    if slack is None or step.mode is not _Mode.ASLEEP or step.phase is not Phase.A or step.waits:
        yield step
        return
    length_ns, begin_ns, until_ns = slack
    due_ns = max(step.from_ns, min(step.to_ns, begin_ns))
    if due_ns - step.from_ns < LEAST_SLACK_NS:
        due_ns = step.from_ns
    end_ns = due_ns
    if length_ns >= LEAST_SLACK_NS:
        end_ns = max(due_ns, min(step.to_ns, until_ns, due_ns + length_ns))
    pieces = (
        step._replace(to_ns=due_ns, cause=NamedCause(Cause.SLEEP)),
        step._replace(from_ns=due_ns, to_ns=end_ns, cause=NamedCause(Cause.TIMER_SLACK, duration(length_ns))),
        step._replace(from_ns=end_ns),
    )
    yield from (piece for piece in pieces if piece.to_ns > piece.from_ns)


def _merged(parts: Sequence[BudgetPart]) -> Iterator[BudgetPart]:
    """Join parts that follow each other and have all in common."""
    for _, group in groupby(parts, key=lambda part: (part.phase, part.cause, part.cpu, part.waits_for)):
        same = list(group)
        stack = next((part.stack for part in same if part.stack), ())
        yield replace(same[0], to_ns=same[-1].to_ns, stack=stack)


def _steps(activation: LateActivation, changes: Sequence[Change]) -> Iterator[_Step]:
    """The states of the thread from the due time to the end, without gaps.

    Phase A ends with the waking and B with the switch to the thread. A thread that never slept is in A until it does.
    """
    begin = bisect_right(changes, activation.due_ns, key=_time)
    within = changes[begin : bisect_left(changes, activation.end_ns, key=_time)]
    mode: _Mode | None = None
    for change in changes[max(0, begin - 3) : begin]:
        mode = _mode_after(mode, change)
    if mode is None and begin < len(changes):  # by what happens first behind the due time
        mode = {"waking": _Mode.ASLEEP, "in": _Mode.READY, "out": _Mode.RUNS}.get(changes[begin].what)
    phase, cpu, doing = Phase.A, changes[begin - 1].cpu if begin else -1, UNKNOWN
    if activation.marked:
        mode, phase, cpu = _Mode.RUNS, Phase.C, changes[max(0, begin - 1)].cpu if changes else -1
    edges = [activation.due_ns, *map(_time, within), activation.end_ns]
    for at, (from_ns, to_ns) in enumerate(pairwise(edges), begin):
        last = changes[at - 1] if at else None
        if last and at > begin:
            mode, cpu = _mode_after(mode, last), last.target_cpu
            if phase is Phase.A and last.what == "waking":
                phase = Phase.C if mode is _Mode.RUNS else Phase.B
            elif phase is Phase.B and last.what == "in":
                phase = Phase.C
            doing = last.mode if last.what == "out" and last.mode.kind else doing
        unknown = missing_on(last.cpu) if last and last.what == "gone" else ""
        after, why = (last.what, last.why) if last else ("", "")
        step = _Step(from_ns, to_ns, mode, phase, cpu, False, unknown=unknown, after=after, why=why, doing=doing)
        yield _step(step, changes[at : at + LOOK_AHEAD])


def _mode_after(mode: _Mode | None, change: Change) -> _Mode | None:
    if change.what == "in":
        return _Mode.RUNS
    if change.what == "out":
        return _Mode.READY if change.ready else _Mode.ASLEEP
    if change.what == "waking":
        return mode if mode is _Mode.RUNS else _Mode.READY
    return None if change.what == "gone" else mode


def _step(step: _Step, later: Sequence[Change]) -> _Step:
    """One state of the thread, with its CPU. later: what happens to the thread from its end on."""
    waking = next((change for change in later if change.what == "waking"), None)
    run = next((change for change in later if change.what == "in"), None)
    if step.mode is _Mode.ASLEEP and waking:
        return step._replace(cpu=waking.cpu, waking=waking)
    if step.mode is _Mode.READY and run:
        known = step.cpu if step.cpu >= 0 else run.cpu
        moved = next((change for change in later if change.what == "migrate" and change.time_ns <= run.time_ns), None)
        return step._replace(cpu=known, moves=run.cpu != known, why=step.why or (moved.why if moved else ""))
    return step._replace(cpu=later[0].cpu) if later and (step.mode is None or step.cpu < 0) else step


def end_of_chain(chain: Sequence[Task], waker: Task) -> NamedCause | None:
    """The cause if a chain is followed no further than to this thread; else None.

    chain: threads, each of which kept the one before waiting; the late thread waits for the first one.
    """
    tids = [task.tid for task in chain]
    if waker.tid in tids:
        circle = chain[tids.index(waker.tid) :]
        return NamedCause(Cause.BLOCKED, f"a circle of {' and '.join(task.words for task in circle)}")
    return NamedCause(Cause.BLOCKED, waker.name, waker.tid) if len(tids) == LONGEST_CHAIN else None


def kept_threads(chain: Sequence[Task], cause: NamedCause) -> tuple[str, ...]:
    """The threads of a chain that a cause kept, in this order; without the one that is the cause."""
    if cause.cause is Cause.UNEXPLAINED:
        return ()
    tid = cause.tid if cause.cause in (Cause.BLOCKED, Cause.SLEEP) else None
    return tuple(task.words for task in chain if task.tid != tid)


def woken_by_interrupt(waking: Change | None, sleeper: Task | None, doing: Mode = UNKNOWN) -> NamedCause:
    """What a thread slept for that no other thread woke. sleeper: None for the late thread itself.

    doing: what it was doing when it went to sleep.
    """
    context = waking.context if waking else None
    if waking is None:
        return NamedCause(Cause.BLOCKED)
    if context is None:
        return NamedCause(Cause.INTERRUPT_WAIT, "an interrupt")
    if doing.kind == AT_END and context.name in (KERNELS_TIMERS, SLEEPS_WITH):
        return NamedCause(Cause.THROTTLED, GROUPS_MEMORY.format(doing.name))
    if context.layer is Layer.TIMER and context.name == SLEEPS_WITH:
        return NamedCause(Cause.SLEEP, sleeper.name, sleeper.tid) if sleeper else NamedCause(Cause.SLEEP)
    rcu = ["a grace period of RCU"] if sleeper and sleeper.name.startswith(OF_RCU) else []
    disk = [f"disk {waking.disk}"] if waking.disk else []
    known = {FAULT: f"in {A_FAULT}", KERNEL: f"in {call_words(doing.name)}" if doing.name else ""}.get(doing.kind)
    file = [f"file {doing.file}"] if known and doing.file else []
    names = [*rcu, *disk, f"{context.layer.value} {context.name}", *([known] if known else []), *file]
    return NamedCause(Cause.INTERRUPT_WAIT, ", ".join(names))


def _followed(step: _Step, activation: LateActivation, trace: Timelines) -> Iterator[_Step]:
    """A step; of a sleep the steps of the thread that was waited for, and so on."""
    by = step.waking.by if step.waking else None
    if not step.waits:
        yield step
    elif step.waking is None or by is None or by.idle:
        yield step._replace(cause=woken_by_interrupt(step.waking, step.chain[-1] if step.chain else None, step.doing))
    elif (known := end_of_chain(step.chain, by)) is not None:
        yield step._replace(cause=known)
    else:
        for inner in _steps_of(by, step, step.waking, activation, trace):
            yield from _followed(inner, activation, trace)


def _steps_of(
    partner: Task, step: _Step, waking: Change, activation: LateActivation, trace: Timelines
) -> Iterator[_Step]:
    """What the thread that ended a sleep did while it lasted. It had the CPU when it ended the sleep."""
    changes = trace.of_thread(partner.tid)
    known_from = bisect_left(changes, activation.due_ns - LOOK_BACK_NS, key=_time)
    first = max(known_from, bisect_left(changes, step.from_ns, key=_time) - LOOK_AHEAD)
    last = bisect_left(changes, waking.time_ns, key=_time)
    priority = FAIR_FROM if partner.priority is None else partner.priority
    ran = Change(waking.time_ns, "out", waking.cpu, waking.cpu, True, None, priority)
    known = [*changes[first:last], ran]
    sleep = replace(
        activation, tid=partner.tid, due_ns=step.from_ns, latency_ns=step.to_ns - step.from_ns, marked=False
    )
    for each in _steps(sleep, known):
        begin = bisect_right(known, each.from_ns, key=_time)
        before = known[max(0, begin - LOOK_AHEAD) : begin]
        told = [change.priority for change in before if change.what in ("waking", "in", "out")]
        called = partner._replace(priority=told[-1] if told else priority)
        yield each._replace(phase=step.phase, chain=(*step.chain, called))


class _Rules:
    """Charges the stretches of an activation by what was on top of the CPU and by the phase."""

    def __init__(
        self, activation: LateActivation, priority: int, trace: Timelines, system: System, woken_ns: int | None
    ) -> None:
        self._activation, self._priority, self._trace = activation, priority, trace
        self._timelines = trace.of_cpus
        self._system, self._woken_ns = system, woken_ns
        self._own_timer: Context | None = None
        self._gap_ends: dict[int, int] = {}
        self._idle: list[IdleRun] = []
        self._withheld_ns: int | None = None
        self._may_be_limited = system.limits.of_group is not False

    def waited(self, sleep: _Step) -> None:
        """The thread slept in the middle of its activation. From now on this is its waking, and its timer."""
        self._woken_ns = sleep.to_ns
        self._own_timer = sleep.waking.context if sleep.waking else None

    def parts(self, step: _Step) -> Iterator[BudgetPart]:
        """The parts of a step. Where no stretch covers it, it is unexplained."""
        timeline = self._timelines.get(step.cpu)
        clipped = [
            _clipped(stretch, step) for stretch in (timeline.between(step.from_ns, step.to_ns) if timeline else ())
        ]
        at_ns, unexplained = step.from_ns, NamedCause(Cause.UNEXPLAINED)
        for stretch, cause in zip(clipped, self._causes(step, clipped), strict=True):
            if stretch.from_ns > at_ns:
                yield BudgetPart(at_ns, stretch.from_ns, step.phase, unexplained, step.cpu)
            if stretch.to_ns > stretch.from_ns:
                stack = self._stack(step.cpu, stretch, cause)
                yield BudgetPart(stretch.from_ns, stretch.to_ns, step.phase, cause, step.cpu, stack)
            at_ns = max(at_ns, stretch.to_ns)
        if at_ns < step.to_ns:
            yield BudgetPart(at_ns, step.to_ns, step.phase, unexplained, step.cpu)

    def _causes(self, step: _Step, stretches: Sequence[Stretch]) -> Iterator[NamedCause]:
        """The cause of each stretch. Who woke a thread that slept tells what it slept for, whoever had the CPU."""
        told = self._told(step, stretches) if step.cause is None else [step.cause] * len(stretches)
        for stretch, cause in zip(stretches, told, strict=True):
            if stretch.missing and cause.cause is Cause.UNEXPLAINED:
                yield NamedCause(Cause.UNEXPLAINED, missing_on(step.cpu))
            elif cause.cause in ASKED_FOR:
                yield self._trace.with_sender(cause, step.cpu, stretch)
            else:
                yield cause

    def _told(self, step: _Step, stretches: Sequence[Stretch]) -> list[NamedCause]:
        if step.mode is _Mode.ASLEEP:
            self._own_timer = stretches[-1].top if stretches else None
            return self._asleep(step, stretches)
        if step.mode is None:
            return [NamedCause(Cause.UNEXPLAINED, step.unknown)] * len(stretches)
        if step.mode is _Mode.RUNS:
            return [self._on_top(stretch) or self._runs(step, stretch) for stretch in stretches]
        certain_ns = step.from_ns + (0 if step.after == "out" else RACE_NS)
        self._idle = list(idle_runs(stretches, self._timelines, self._priority, certain_ns=certain_ns))
        if self._may_be_limited:
            self._withheld_ns = withheld_until(stretches, self._timelines, self._priority)
        return [self._on_top(stretch) or self._ready(step, stretch) for stretch in stretches]

    def _stack(self, cpu: int, stretch: Stretch, cause: NamedCause) -> tuple[str, ...]:
        """The stack of an interrupt that came within the charged time or ended it."""
        hit_ns = None
        if cause.cause in IN_GAP:
            hit_ns = self._gap_ends.get(stretch.from_ns)
        elif cause.cause in IN_SECTION and stretch.evidence and stretch.evidence.time_ns >= self._activation.due_ns:
            hit_ns = stretch.evidence.time_ns
        return () if hit_ns is None else self._timelines[cpu].stacks.get(hit_ns) or ()

    def _on_top(self, stretch: Stretch) -> NamedCause | None:
        """The cause if something ran over the task; None otherwise."""
        top = stretch.top
        if top is None:
            return None if stretch.task else NamedCause(Cause.UNEXPLAINED)
        if top.layer is Layer.NMI:
            return NamedCause(Cause.NMI, top.name)
        if top.layer is Layer.SOFTIRQ:
            return NamedCause(Cause.SOFTIRQ, top.name)
        if top.layer is Layer.TIMER:
            if top == self._own_timer:
                return NamedCause(Cause.TIMER)
            soft = NamedCause(Cause.SOFTIRQ, TIMERS_SOFTIRQ, function=top.name)
            return NamedCause(Cause.OTHER_TIMERS, top.name) if top.hard else soft
        timer = TIMER_INTERRUPT.fullmatch(top.name)
        return NamedCause(Cause.TIMER) if timer else NamedCause(Cause.HARDIRQ, top.name)

    # Phase A: why the interrupt that woke the thread came late.

    def _asleep(self, step: _Step, stretches: Sequence[Stretch]) -> list[NamedCause]:
        causes: list[NamedCause] = []
        for waits, group in groupby(stretches, key=_is_gap):
            together = list(group)
            if waits:
                causes += self._gap(step, together)
            else:
                causes += [self._on_top(stretch) or NamedCause(Cause.UNEXPLAINED) for stretch in together]
        return causes

    def _gap(self, step: _Step, gap: Sequence[Stretch]) -> list[NamedCause]:
        """Charge a time in which no interrupt came although one was due.

        An event of the task with interrupts on shows that the timer itself was late until then.
        """
        on = [at for at, stretch in enumerate(gap) if stretch.irqs_off_at_end is False and stretch.irqs_off is None]
        late = max(on, default=-1) + 1
        seen_off = any(stretch.irqs_off_at_end and not _in_idle_state(stretch) for stretch in gap[late:])
        silent = late < len(gap) and self._all_silent(step.cpu, gap[late].from_ns, gap[-1].to_ns)
        self._gap_ends |= {stretch.from_ns: gap[-1].to_ns for stretch in gap[late:]}
        stack = self._timelines[step.cpu].stacks.get(gap[-1].to_ns)
        return [
            NamedCause(Cause.LATE_TIMER)
            if at < late and not stretch.irqs_off
            else self._cause_in_gap(stretch, seen_off, silent, stack)
            for at, stretch in enumerate(gap)
        ]

    def _cause_in_gap(
        self, stretch: Stretch, seen_off: bool, silent: bool, stack: tuple[str, ...] | None
    ) -> NamedCause:
        """The cause of one stretch of a gap.

        seen_off: an event saw interrupts off. silent: no CPU had an event. stack: of the interrupt that ended the gap.
        """
        task = stretch.task
        if task is None:
            return NamedCause(Cause.UNEXPLAINED)
        if stretch.irqs_off is False:
            return NamedCause(Cause.LATE_TIMER)
        if (stretch.irqs_off or seen_off) and not _in_idle_state(stretch):
            if not self._may_hide_host(stretch):
                return self._by_running(Cause.IRQ_OFF, stretch, task)
            return NamedCause(Cause.MACHINE) if silent else self._by_running(Cause.IRQ_OFF_OR_GONE, stretch, task)
        return self._by_stack(stretch, task, silent, stack)

    def _may_hide_host(self, stretch: Stretch) -> bool:
        """Whether a guest may have been gone in a stretch.

        An event with interrupts off tells only of its instant, and the events of ``irq_disable`` only of both ends.
        """
        return self._system.can_be_gone and stretch.to_ns - stretch.from_ns >= SILENT_FROM_NS

    def _by_stack(self, stretch: Stretch, task: Task, silent: bool, stack: tuple[str, ...] | None) -> NamedCause:
        """What no event of the gap tells."""
        # User code ran. The kernel's way back to it ends with interrupts off, but is short.
        hit_user = stretch.mode.kind in (USER, HANDLER) or (
            stack == () and self._system.sees_interrupts and not task.idle
        )
        if silent or (hit_user and stretch.to_ns - stretch.from_ns >= SILENT_FROM_NS and not stretch.top):
            return NamedCause(Cause.MACHINE)
        if task.idle and not stretch.top:
            return NamedCause(Cause.IDLE_EXIT)
        function = let_interrupts_in(stack or ()) or ""
        likely = function and not self._may_hide_host(stretch)
        cause = Cause.IRQ_OFF_LIKELY if likely else Cause.IRQ_OFF_OR_GONE
        return replace(self._by_running(cause, stretch, task), function=function)

    def _by_running(self, cause: Cause, stretch: Stretch, task: Task) -> NamedCause:
        return NamedCause(cause, f"softirq {stretch.top.name}") if stretch.top else self._by(cause, task)

    def _all_silent(self, cpu: int, from_ns: int, to_ns: int) -> bool:
        """Whether all CPUs, each of which has many events normally, had none over the same time.

        A CPU that often has none for so long tells nothing: it may have been idle.
        """
        length_ns = to_ns - from_ns
        others = [timeline for number, timeline in self._timelines.items() if number != cpu]
        if length_ns < SILENT_FROM_NS or not others:
            return False
        inner = length_ns // 20
        return all(
            not other.count(from_ns + inner, to_ns - inner)
            and other.count(from_ns - 10 * length_ns, to_ns + 10 * length_ns) >= 20 * DENSE
            and other.silences(from_ns - 10 * length_ns, to_ns + 10 * length_ns, length_ns - 2 * inner) <= 1
            for other in others
        )

    # Phase B, and phase C while the thread wants to run: why it did not.

    def _ready(self, step: _Step, stretch: Stretch) -> NamedCause:
        task = stretch.task
        if task is None:
            return NamedCause(Cause.UNEXPLAINED)
        # A thread may keep the CPU from the late one; those of ordinary priority share it.
        other = not task.idle and task.tid != self._activation.tid and task.priority is not None
        if other and ((task.priority or 0) <= self._priority or self._priority >= FAIR_FROM):
            before = self._withheld_ns is not None and stretch.to_ns <= self._withheld_ns
            if before and (task.priority or 0) >= FAIR_FROM:
                turn = f", or it was the turn of {task.name or 'an unknown thread'}"
                return self._throttled(turn, Cause.THROTTLED_OR_THREAD)
            return replace(self._by(Cause.THREAD, task), ranks=self._ranks(task))
        known = self._without_rank(step, stretch, task)
        if known:
            return known
        since_ns = self._woken_ns if self._woken_ns is not None else self._activation.due_ns
        since_ns = max(since_ns, step.from_ns) if step.after == "migrate" else since_ns
        if stretch.task_since_ns > since_ns + RACE_NS:  # the scheduler chose a less urgent thread meanwhile
            return self._throttled(f", while {self._by(Cause.THREAD, task).name or 'an unknown thread'} ran")
        return self._holds(step, stretch, task)

    def _without_rank(self, step: _Step, stretch: Stretch, task: Task) -> NamedCause | None:
        """The cause where priorities play no part; None where they do."""
        if task.idle:
            return self._beside_idle(step, stretch)
        # A thread that came to a CPU waits until an interrupt tells the CPU of it.
        arrives = step.after == "migrate" and stretch.from_ns - step.from_ns < ARRIVAL_NS
        if step.moves or (arrives and (stretch.evidence is None or stretch.evidence.time_ns < step.from_ns)):
            return NamedCause(Cause.MIGRATION, step.why)
        if task.tid == self._activation.tid:
            return NamedCause(Cause.RETURN)
        return NamedCause(Cause.UNEXPLAINED) if task.priority is None else None

    def _beside_idle(self, step: _Step, stretch: Stretch) -> NamedCause:
        """Why a thread that is ready does not run on a CPU that is idle."""
        runs = (run for run in self._idle if run[0] <= stretch.from_ns and stretch.to_ns <= run[1])
        *_, shows = next(runs, (0, 0, ""))
        if shows in (CERTAIN, PROVEN):
            stopped = self._system.can_be_gone and shows == PROVEN
            return self._throttled("", Cause.THROTTLED_OR_MACHINE if stopped else Cause.THROTTLED, idle=True)
        if step.moves or step.after == "migrate":
            return NamedCause(Cause.MIGRATION, step.why)
        return NamedCause(Cause.IDLE_EXIT if shows == LONG else Cause.SCHEDULER)

    def _throttled(self, more: str, cause: Cause = Cause.THROTTLED, *, idle: bool = False) -> NamedCause:
        return NamedCause(cause, f"{self._system.limits.words(self._priority, idle=idle)}{more}")

    def _ranks(self, task: Task) -> str:
        known = task.priority is not None and self._priority != FAIR_FROM  # which stands for an unknown one
        return rank_words(task.priority or 0, self._priority) if known else ""

    def _holds(self, step: _Step, stretch: Stretch, task: Task) -> NamedCause:
        """Why a less urgent thread kept the CPU: by how the latest interrupt found it."""
        evidence = stretch.evidence
        if evidence is None:
            return self._by(Cause.PREEMPT_OFF_OR_NO_POINT, task)
        stack = self._timelines[step.cpu].stacks.get(evidence.time_ns) or ()
        if evidence.depth > unlocks(stack):
            return self._by(Cause.PREEMPT_OFF, task)
        if not self._system.real_time and evidence.flags & (BH_OFF | SOFTIRQ):
            return self._by(Cause.SOFTIRQS_OFF, task)
        if not self._system.counts:
            return self._by(Cause.PREEMPT_OFF_OR_NO_POINT, task)
        return NamedCause(Cause.SCHEDULER) if self._system.preempts else self._by(Cause.NO_POINT, task)

    # The thread has the CPU.

    def _runs(self, step: _Step, stretch: Stretch) -> NamedCause:
        if step.phase is Phase.A:
            return NamedCause(Cause.OWN_PREVIOUS)
        marked = self._activation.marked
        mode = stretch.mode if stretch.mode.kind else step.doing
        if mode.kind == KERNEL and not marked and mode.since_ns < self._activation.due_ns:
            return NamedCause(Cause.RETURN)
        cause = IN_MODE.get(mode.kind, Cause.OWN_CODE if marked else Cause.RETURN)
        if cause is Cause.OWN_CODE and not self._system.sees_calls:
            return NamedCause(Cause.OWN_CODE_OR_KERNEL, mode.or_else("a system call").name)
        named = mode.kind in (KERNEL, HANDLER, AT_END, UNCLEAR)
        return NamedCause(cause, mode.name if named else "")

    def _by(self, cause: Cause, task: Task) -> NamedCause:
        name = f"rtproof's {task.name}" if task.tid in self._system.own else task.name
        return NamedCause(cause, "idle" if task.idle else name, None if task.idle else task.tid)


class _PartnerRules(_Rules):
    """The same for the last thread of a chain, of which it does not matter what it did while it ran."""

    def __init__(self, step: _Step, late: _Rules) -> None:
        self._thread = step.chain[-1]
        since = replace(late._activation, tid=self._thread.tid, due_ns=step.from_ns, marked=False)
        super().__init__(since, self._thread.priority or 0, late._trace, late._system, None)
        self._may_be_limited = True  # its groups may be others

    def parts(self, step: _Step) -> Iterator[BudgetPart]:
        return (replace(part, waits_for=kept_threads(step.chain, part.cause)) for part in super().parts(step))

    def _on_top(self, stretch: Stretch) -> NamedCause | None:
        timer = stretch.top is not None and stretch.top.layer is Layer.TIMER
        return NamedCause(Cause.TIMER) if timer else super()._on_top(stretch)

    def _ranks(self, task: Task) -> str:
        return "" if task.priority is None else rank_words(task.priority)

    def _runs(self, step: _Step, stretch: Stretch) -> NamedCause:
        return self._by(Cause.BLOCKED, self._thread)


def _clipped(stretch: Stretch, step: _Step) -> Stretch:
    """The part of a stretch within a step. An event behind it no longer tells of it."""
    off = stretch.irqs_off_at_end if stretch.to_ns <= step.to_ns else None
    from_ns, to_ns = max(stretch.from_ns, step.from_ns), min(stretch.to_ns, step.to_ns)
    return stretch._replace(from_ns=from_ns, to_ns=to_ns, irqs_off_at_end=off)


def _in_idle_state(stretch: Stretch) -> bool:
    """Whether the CPU was in an idle state, which it may enter and leave with interrupts off."""
    return stretch.task is not None and stretch.task.idle and stretch.top is None and stretch.idle_state >= 0


def _is_gap(stretch: Stretch) -> bool:
    """Whether no hard interrupt runs, so that one that is due should come."""
    top = stretch.top
    return (top is None or top.layer is Layer.SOFTIRQ or not top.hard) and stretch.task is not None


def unlocks(functions: Sequence[str]) -> bool:
    """Whether an interrupt came where a spinlock lets interrupts in and has not yet switched preemption on again.

    Then the kernel counts preemption as off once more than it is as soon as the function ends.
    """
    return bool(functions) and "unlock_irq" in functions[0]


def let_interrupts_in(functions: Sequence[str]) -> str | None:
    """The function that had interrupts off until the interrupt came; None if the stack does not end behind a restore.

    Where an interrupt hits any other code, interrupts may have been on there for long.
    """
    if not functions or not _RESTORES.fullmatch(functions[0]):
        return None
    return next((name for name in functions if not _RESTORES.fullmatch(name)), None)
