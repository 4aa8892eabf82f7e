# SPDX-License-Identifier: Apache-2.0
"""What all CPUs of a trace did, what happened to its threads, and what asked for it where events prove that.

Linux 6.5 and newer say who queued a function for another CPU, and when it ran there. On ARM an interrupt and its sender
have the same reason. Some records also say who sent an interrupt to reschedule. rtproof does not ask for that, because
the wake-up that it is for has an event already.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from rtproof.explain.causes import NamedCause
from rtproof.explain.thread_modes import UNKNOWN, Mode
from rtproof.explain.trace_events import OTHER_CLOCK_NS, TraceEvent, Window

RESCHEDULE = "reschedule"
CALLS = ("call_function", "call_function_single")
"""The vectors of x86 for interrupts from other CPUs."""
STOPPERS = ("migration/", "stopper/")
"""The beginnings of the names of threads that move others as they are told."""
MOST_SENDERS = 2


class Layer(Enum):
    """A kind of context, and how pages name it."""

    SOFTIRQ = "softirq"
    INTERRUPT = "interrupt"
    TIMER = "timer"
    NMI = "NMI"


class Context(NamedTuple):
    """One context on the stack. key: the address of a timer, or the reason of an interrupt from another CPU.

    since_ns: when it was entered. hard: whether the kernel says that it runs in a hard interrupt. by_thread: a softirq
    that no interrupt has brought: the thread below raised it and runs it itself, as who sends to the loopback device.
    """

    layer: Layer
    name: str
    key: int
    since_ns: int
    hard: bool = True
    by_thread: bool = False


class Task(NamedTuple):
    """A thread as the scheduler sees it. priority: of the kernel, where less is more urgent; None if unknown."""

    tid: int
    name: str
    priority: int | None

    @property
    def idle(self) -> bool:
        return self.tid == 0

    @property
    def words(self) -> str:
        return f"{self.name or 'a thread'}/{self.tid}"


class Stretch(NamedTuple):
    """A part of a CPU's time between two events. Nothing changed in it.

    top: what ran over the task, or None if the task ran. task: None where the trace does not tell.
    task_since_ns: when the task got the CPU. evidence: the latest event since then that tells how an interrupt found
    the task: its flags, and as its depth how often preemption was off.
    irqs_off: exact, where the kernel traces it; else None. mode: of the task.
    idle_state: of an idle CPU, or -1. irqs_off_at_end: what the closing event says, if it is one of the task itself.
    missing: whether a switch without an event lies in it, so that it has no task.
    """

    from_ns: int
    to_ns: int
    top: Context | None
    task: Task | None
    task_since_ns: int
    evidence: TraceEvent | None
    irqs_off: bool | None
    mode: Mode
    idle_state: int
    irqs_off_at_end: bool | None
    missing: bool = False


class Change(NamedTuple):
    """What happened to a thread. what: waking, in, out (of the CPU), migrate or gone.

    gone: it lost the CPU at an unknown time behind this one, because its switch has no event.
    cpu: where it happened; of a migration, where the thread goes. target_cpu: of a waking, where the thread shall run.
    ready: of a thread that went out, whether it wants to go on. priority: the thread's, as the kernel has it.
    by: of a waking, who did it, or None for an interrupt or a softirq. context: of such an interrupt or softirq, if
    known. disk: whose request it had just ended; "" if none. timer: the event of the timer that did it, and
    timer_ns: when the timer's interrupt began, as far as events show.
    why: of a migration, in words. mode: of a thread that went out, what it was doing.
    """

    time_ns: int
    what: str
    cpu: int
    target_cpu: int
    ready: bool
    by: Task | None
    priority: int
    why: str = ""
    timer: TraceEvent | None = None
    timer_ns: int = 0
    mode: Mode = UNKNOWN
    context: Context | None = None
    disk: str = ""


@dataclass(frozen=True)
class CpuTimeline:
    """The stretches of one CPU within the windows, in order.

    times: of all its events. from_ns, to_ns: of the first event and the last; None without any.
    stacks: the functions of the kernel that interrupts hit, by the time of the interrupt; () for other code.
    missing: where switches have no events, in the windows or not.
    """

    cpu: int
    stretches: tuple[Stretch, ...]
    times: Sequence[int]
    lost: tuple[Window, ...]
    stacks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[Window, ...] = ()

    @property
    def from_ns(self) -> int | None:
        return self.times[0] if self.times else None

    @property
    def to_ns(self) -> int | None:
        return self.times[-1] if self.times else None

    def between(self, from_ns: int, to_ns: int) -> Sequence[Stretch]:
        """The stretches that meet a part of the time, in order; those at its ends may reach beyond it."""
        first = bisect_right(self.stretches, from_ns, key=lambda stretch: stretch.to_ns)
        last = bisect_left(self.stretches, to_ns, key=lambda stretch: stretch.from_ns)
        return self.stretches[first:last]

    def count(self, from_ns: int, to_ns: int) -> int:
        """How many events lie strictly between two times."""
        return max(0, bisect_left(self.times, to_ns) - bisect_right(self.times, from_ns))

    def silences(self, from_ns: int, to_ns: int, least_ns: int) -> int:
        """How often it had no event for so long between two times. Where events were lost, nobody knows."""
        within = self.times[bisect_right(self.times, from_ns) : bisect_left(self.times, to_ns)]
        long = [Window(one, next_one) for one, next_one in pairwise(within) if next_one - one >= least_ns]
        return sum(all(hole.to_ns <= gap.from_ns or hole.from_ns >= gap.to_ns for hole in self.lost) for gap in long)


@dataclass(frozen=True)
class Meaning:
    """What is needed to understand the events of a kernel.

    names: of events whose both ends were traced, without ``_entry``. vectors: names of softirqs by number.
    sleeping: the bits of ``prev_state`` of a thread that wants to run no more. symbol: the name of an address.
    every_call: whether all system calls and page faults were traced, so that user mode can be told.
    call: the name of a system call. file: words for a file by its device and inode. urgent: kernel priorities of
    threads with a real-time policy, by a look beside the trace. shown_by_timers: the interrupt of which only the end
    was traced: the first function of a timer is its begin. faults: whether page faults have events.
    """

    paired: frozenset[str]
    softirqs: dict[int, str]
    sleeping: int
    symbol: Callable[[int], str]
    every_call: bool
    call: Callable[[int], str] = "number {}".format
    file: Callable[[str, int], str] = "with inode {1} on {0}".format
    urgent: Mapping[int, int] = field(default_factory=dict)
    shown_by_timers: str = ""
    faults: bool = True


def joined(windows: Iterable[Window]) -> list[Window]:
    """The same time as windows that do not touch, in order."""
    found: list[Window] = []
    for window in sorted(windows):
        if found and window.from_ns <= found[-1].to_ns:
            found[-1] = Window(found[-1].from_ns, max(found[-1].to_ns, window.to_ns))
        else:
            found.append(window)
    return found


class ThreadNames:
    """The names of threads, as the events of one CPU after the other tell them. Ask for them behind the last CPU.

    A new thread has its parent's name until it takes another one.
    """

    def __init__(self) -> None:
        self._seen: dict[int, list[tuple[int, str]]] = defaultdict(list)  # when a CPU told a name for the last time
        self._latest: dict[int, int] = {}  # the place in this list of what the present CPU told last
        self._begun: dict[int, tuple[int, str]] = {}

    def begin_cpu(self) -> None:
        """The next events are of another CPU, in order of time again."""
        self._latest.clear()

    def see(self, tid: int, name: str, time_ns: int) -> None:
        """An event tells the name of a thread."""
        seen, at = self._seen[tid], self._latest.get(tid)
        if at is not None and seen[at][1] == name:
            seen[at] = max(time_ns, seen[at][0]), name
        else:
            self._latest[tid] = len(seen)
            seen.append((time_ns, name))

    def begin(self, tid: int, name: str, time_ns: int) -> None:
        """A thread begins with the name of its parent."""
        self.see(tid, name, time_ns)
        self._begun[tid] = time_ns, name

    def rename(self, tid: int, names: tuple[str, str], time_ns: int) -> None:
        """A thread takes another name. names: the one before and the new one."""
        self.see(tid, names[0], time_ns - 1)
        self.see(tid, names[1], time_ns)

    def at(self, tid: int, time_ns: int) -> str:
        """The name of a thread; "" if it had only one. Between two sightings it may have had either: the newer one."""
        seen = self.of_several.get(tid)
        return seen[min(bisect_left(seen, time_ns, key=_time), len(seen) - 1)][1] if seen else ""

    @cached_property
    def of_several(self) -> dict[int, list[tuple[int, str]]]:
        """The names of the threads that had more than one, each with the last time at which it was told."""
        several = {tid: seen for tid, seen in self._seen.items() if len({name for _, name in seen}) > 1}
        return {tid: _own_names(sorted(seen), self._begun.get(tid)) for tid, seen in several.items()}


def _own_names(seen: list[tuple[int, str]], begun: tuple[int, str] | None) -> list[tuple[int, str]]:
    """The names without the one that the thread had from its parent until it took its own."""
    if begun is None:
        return seen
    since = bisect_left(seen, begun[0], key=_time)  # before, another thread had the number
    own = next((at for at in range(since, len(seen)) if seen[at][1] != begun[1]), since)
    return [*seen[:since], *seen[own:]]


Sendings = dict[tuple[int, str | int], list[tuple[int, str]]]
"""When who sent something to a CPU, by the CPU and what tells it from others."""


class Timelines:
    """The timelines of all CPUs, and what happened to each thread, in order of time.

    watched: threads whose changes are noted always, those of others within the windows only. names: of threads by id,
    the newest ones. starts: of timers, by thread and timer: when, when it expires, and how much later than it is due it
    may. taken: when each CPU took which interrupts. sent: these interrupts, by their vector on x86, or their reason on
    ARM. queued: functions for a CPU, by their call. served: when which CPU ran such a function, when its interrupt
    came, and the call. calls: who queued it, by the CPU and when the interrupt came.
    deepest: how often preemption was off at most; it is off in every switch, so this stays 0 only where nobody counts.
    """

    def __init__(self, watched: Collection[int] = (), names: dict[int, str] | None = None) -> None:
        self.watched, self.names = frozenset(watched), {} if names is None else names
        self.of_cpus: dict[int, CpuTimeline] = {}
        self.changes: dict[int, list[Change]] = defaultdict(list)
        self.starts: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        self.sightings = ThreadNames()
        self.taken: dict[tuple[int, str | int], list[int]] = defaultdict(list)
        self.sent: Sendings = defaultdict(list)
        self.queued: Sendings = defaultdict(list)
        self.served: list[tuple[int, int, int, int]] = []
        self.calls: dict[tuple[int, int], list[str]] = defaultdict(list)
        self.deepest = 0

    def finish(self) -> None:
        """Put what was noted CPU by CPU in the order of time, with the name that each thread had then.

        An event tells the name of a thread only when it runs or is woken; until then, the walk has an older one.
        """
        every: tuple[list[Any], ...] = (
            *self.changes.values(), *self.starts.values(), *self.sent.values(), *self.queued.values()
        )  # fmt: skip
        for noted in every:
            noted.sort(key=_time)

        def named(task: Task | None, time_ns: int) -> Task | None:
            name = self.sightings.at(task.tid, time_ns + 1) if task else ""
            return task._replace(name=name) if task and name else task

        if self.sightings.of_several:
            for changes in self.changes.values():
                changes[:] = (each._replace(by=named(each.by, each.time_ns)) if each.by else each for each in changes)
            for cpu, timeline in self.of_cpus.items():
                stretches = (each._replace(task=named(each.task, each.from_ns)) for each in timeline.stretches)
                self.of_cpus[cpu] = replace(timeline, stretches=tuple(stretches))
        for time_ns, cpu, since_ns, call in sorted(self.served):
            queued = self.queued.get((cpu, call), [])
            if at := bisect_right(queued, time_ns, key=_time):
                self.calls[cpu, since_ns].append(queued[at - 1][1])

    # Who asked for an interrupt or for the stopper thread.

    def with_sender(self, cause: NamedCause, cpu: int, stretch: Stretch) -> NamedCause:
        """The cause with who asked for it, where events tell."""
        asked_by = self._sender(cpu, stretch.top) if stretch.top else self._waker_of_stopper(stretch)
        return replace(cause, asked_by=asked_by) if asked_by else cause

    def _sender(self, cpu: int, context: Context) -> str:
        """Who sent an interrupt; "" if no event tells."""
        words = self.calls.get((cpu, context.since_ns), [])
        if not words and context.name not in CALLS and context.layer is Layer.INTERRUPT:
            key = cpu, context.name if context.name == RESCHEDULE else context.key
            taken, sent = self.taken.get(key, []), self.sent.get(key, [])
            at = bisect_left(taken, context.since_ns)
            first = bisect_right(sent, taken[at - 1], key=_time) if at else 0
            words = [each for _, each in sent[first : bisect_right(sent, context.since_ns, key=_time)]] if taken else []
        several = list(dict.fromkeys(words))
        more = f" and {len(several) - MOST_SENDERS} more" if len(several) > MOST_SENDERS else ""
        return f"sent by {' and '.join(several[:MOST_SENDERS])}{more}" if several else ""

    def _waker_of_stopper(self, stretch: Stretch) -> str:
        """Who woke the stopper thread that has the CPU; "" if no event tells, or if another thread has the CPU."""
        task = stretch.task
        if task is None or not task.name.startswith(STOPPERS):
            return ""
        changes = self.of_thread(task.tid)
        last = bisect_right(changes, stretch.task_since_ns, key=_time)
        waking = next((change for change in reversed(changes[:last]) if change.what in ("waking", "out")), None)
        if waking is None or waking.what == "out":
            return ""
        context = waking.context
        by = waking.by.words if waking.by else f"{context.layer.value} {context.name}" if context else ""
        return f"woken by {by} on CPU {waking.cpu}" if by else ""

    # When the timer that a thread set for itself was due.

    def slack(self, tid: int, waking: Change) -> tuple[int, int, int] | None:
        """How much later than it is due the thread's timer may wake it, from when on at the earliest, and until when.

        None if the thread set no timer for this waking, or if the trace does not tell.
        """
        timer = waking.timer
        starts = self.starts.get((tid, timer.number("hrtimer")), []) if timer else []
        begun = bisect_right(starts, timer.time_ns, key=_time) if timer else 0
        if timer is None or not begun:
            return None
        started_ns, expires_ns, slack_ns = starts[begun - 1]
        now_ns = timer.number("now")
        late_ns = max(0, now_ns - expires_ns)
        since_due_ns = now_ns - expires_ns + slack_ns
        # When the timer's clock was read, by the trace's clock. Where the two are one clock, that is the time that was
        # read. Otherwise it is at the earliest when the interrupt began, whose entry would else count as sleep.
        one_clock = 0 <= timer.time_ns - now_ns < OTHER_CLOCK_NS
        read_ns = now_ns if one_clock else waking.timer_ns
        begin_ns = read_ns - since_due_ns if since_due_ns >= 0 else started_ns  # no timer expires before
        return slack_ns, begin_ns, timer.time_ns - late_ns

    def of_thread(self, tid: int) -> Sequence[Change]:
        return self.changes.get(tid, ())

    def hold(self, tid: int, due_ns: int, end_ns: int) -> bool:
        """Whether the trace has a thread running behind its due time, and begins before it."""
        changes = self.of_thread(tid)
        first = bisect_left(changes, due_ns, key=_time)
        ran = next((changes[at] for at in range(first, len(changes)) if changes[at].what == "in"), None)
        if ran is None or (ran.time_ns > end_ns and not self._switch_is_missing(end_ns, ran)):
            return self._ran_through(changes, due_ns, end_ns)
        begin_ns = self.of_cpus[ran.cpu].from_ns if ran.cpu in self.of_cpus else None
        return begin_ns is not None and begin_ns <= due_ns

    def _switch_is_missing(self, end_ns: int, ran: Change) -> bool:
        """Whether the thread got the CPU at an unknown time that may lie before the end."""
        missing = self.of_cpus[ran.cpu].missing if ran.cpu in self.of_cpus else ()
        at = bisect_left(missing, ran.time_ns, key=lambda one: one.to_ns)
        return at < len(missing) and missing[at].to_ns == ran.time_ns and missing[at].from_ns < end_ns

    def _ran_through(self, changes: Sequence[Change], due_ns: int, end_ns: int) -> bool:
        """Whether the thread had the CPU from before the due time to the end: it never slept, so it never woke."""
        begin = bisect_right(changes, due_ns, key=_time)
        before = next((each for each in reversed(changes[:begin]) if each.what in ("in", "out", "gone")), None)
        if before is None or before.what != "in" or before.cpu not in self.of_cpus:
            return False
        timeline = self.of_cpus[before.cpu]
        covered = timeline.to_ns is not None and timeline.to_ns >= end_ns
        return covered and all(hole.to_ns <= before.time_ns or hole.from_ns >= end_ns for hole in timeline.lost)


def _time(noted: tuple[Any, ...]) -> int:
    """When it happened: the first of all that is noted."""
    time_ns: int = noted[0]
    return time_ns
