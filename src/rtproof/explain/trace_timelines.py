# SPDX-License-Identifier: Apache-2.0
"""What all CPUs of a trace did, what happened to its threads, and what asked for it where events prove that.

Linux 6.5 and newer say who queued a function for another CPU, and when it ran there. On ARM an interrupt and its sender
have the same reason. Some records also say who sent an interrupt to reschedule. rtproof does not ask for that, because
the wake-up that it is for has an event already.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rtproof.explain.causes import NamedCause
from rtproof.explain.cpu_contexts import (
    STOPPERS,
    Change,
    Context,
    CpuTimeline,
    CpuWalk,
    Expiry,
    Layer,
    Meaning,
    SentInterrupt,
    Slack,
    Stretch,
    Task,
    TimerStart,
    WalkNotes,
)
from rtproof.explain.thread_names import ThreadNames
from rtproof.explain.trace_events import TraceEvent, Window

RESCHEDULE = "reschedule"
CALLS = ("call_function", "call_function_single")
"""The vectors of x86 for interrupts from other CPUs."""
MOST_SENDERS = 2
OTHER_CLOCK_NS = 100_000_000
"""Two readings that lie further apart are of different clocks, such as CLOCK_REALTIME and the trace's."""
LEAST_NS = 1_000
"""A shorter slack makes nobody late. Who has set PR_SET_TIMERSLACK to its least value has one of 1 ns."""


@dataclass(frozen=True, eq=False)
class Senders:
    """Who sent what. calls: by the CPU and when the interrupt came that ran the function.

    sent: to a CPU, of a kind, in order of time. taken: when it took interrupts of that kind. woken: what happened to
    each thread.
    """

    calls: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)
    sent: Mapping[tuple[int, str | int], Sequence[SentInterrupt]] = field(default_factory=dict)
    taken: Mapping[tuple[int, str | int], Sequence[int]] = field(default_factory=dict)
    woken: Mapping[int, Sequence[Change]] = field(default_factory=dict)

    def of_interrupt(self, cpu: int, context: Context) -> str:
        """Who sent an interrupt; "" if no event tells."""
        called = self.calls.get((cpu, context.since_ns), ())
        if called or context.name in CALLS:
            return _listed(called)
        key = cpu, context.name if context.name == RESCHEDULE else context.key
        taken, sent = self.taken.get(key), self.sent.get(key)
        if not taken or not sent or context.layer is not Layer.INTERRUPT:
            return ""
        at = bisect_left(taken, context.since_ns)
        first = bisect_right(sent, taken[at - 1], key=_time) if at else 0
        return _listed([each.words for each in sent[first : bisect_right(sent, context.since_ns, key=_time)]])

    def of_stopper(self, stretch: Stretch) -> str:
        """Who woke the stopper thread that has the CPU; "" if no event tells, or if another thread has the CPU."""
        task = stretch.task
        if task is None or not task.name.startswith(STOPPERS):
            return ""
        changes = self.woken.get(task.tid, ())
        last = bisect_right(changes, stretch.task_since_ns, key=lambda change: change.time_ns)
        waking = next((change for change in reversed(changes[:last]) if change.what in ("waking", "out")), None)
        if waking is None or waking.what == "out":
            return ""
        context = waking.context
        by = f"{waking.by.name or 'a thread'}/{waking.by.tid}" if waking.by else ""
        by = by or (f"{context.layer.value} {context.name}" if context else "")
        return f"woken by {by} on CPU {waking.cpu}" if by else ""

    def named(self, cause: NamedCause, cpu: int, stretch: Stretch) -> NamedCause:
        """The cause with who asked for it."""
        asked_by = self.of_interrupt(cpu, stretch.top) if stretch.top else self.of_stopper(stretch)
        return replace(cause, asked_by=asked_by) if asked_by else cause


NO_SENDERS = Senders()


def find_senders(
    sent: Iterable[SentInterrupt],
    served: Iterable[tuple[int, int, int, int]],
    woken: Mapping[int, Sequence[Change]],
    taken: Mapping[tuple[int, str | int], list[int]],
) -> Senders:
    """sent, served: of all CPUs, as in ``WalkNotes``. woken, taken: as in Senders."""
    queued: dict[tuple[int, int], list[SentInterrupt]] = defaultdict(list)
    others: dict[tuple[int, str | int], list[SentInterrupt]] = defaultdict(list)
    for each in sorted(sent, key=_time):
        for cpu in each.targets:
            if each.call:
                queued[cpu, each.call].append(each)
            else:
                others[cpu, each.kind].append(each)
    calls: dict[tuple[int, int], list[str]] = defaultdict(list)
    for time_ns, cpu, since_ns, call in served:
        some = queued.get((cpu, call), [])
        if at := bisect_right(some, time_ns, key=_time):
            calls[cpu, since_ns].append(some[at - 1].words)
    return Senders(calls, others, taken, woken)


def _time(each: SentInterrupt) -> int:
    return each.time_ns


def _listed(words: Sequence[str]) -> str:
    """Two of them, and how many more; "" if there are none."""
    several = list(dict.fromkeys(words))
    more = f" and {len(several) - MOST_SENDERS} more" if len(several) > MOST_SENDERS else ""
    return f"sent by {' and '.join(several[:MOST_SENDERS])}{more}" if several else ""


@dataclass(frozen=True)
class Timelines:
    """The timelines of all CPUs, and what happened to each thread, in order of time.

    changes: of the watched threads always, of others within the windows only. deepest: how often preemption was off at
    most, of all threads that left the CPU.
    """

    of_cpus: Mapping[int, CpuTimeline]
    changes: Mapping[int, Sequence[Change]]
    senders: Senders = NO_SENDERS
    deepest: int = 0

    def of_thread(self, tid: int) -> Sequence[Change]:
        return self.changes.get(tid, ())

    def hold(self, tid: int, due_ns: int, end_ns: int) -> bool:
        """Whether the trace has a thread running behind its due time, and begins before it."""
        changes = self.of_thread(tid)
        first = bisect_left(changes, due_ns, key=lambda change: change.time_ns)
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
        begin = bisect_right(changes, due_ns, key=lambda change: change.time_ns)
        before = next((each for each in reversed(changes[:begin]) if each.what in ("in", "out", "gone")), None)
        if before is None or before.what != "in" or before.cpu not in self.of_cpus:
            return False
        timeline = self.of_cpus[before.cpu]
        covered = timeline.to_ns is not None and timeline.to_ns >= end_ns
        return covered and all(hole.to_ns <= before.time_ns or hole.from_ns >= end_ns for hole in timeline.lost)


def walk_cpus(
    events: Iterable[tuple[int, Iterable[TraceEvent]]],
    meaning: Meaning,
    windows: Sequence[Window],
    watched: Collection[int],
    names: dict[int, str],
) -> Timelines:
    """events: of each CPU, in order of time. windows: joined. names: of threads, as far as they are known before."""
    notes = WalkNotes(frozenset(watched), names)
    walked = {cpu: CpuWalk(cpu, meaning, windows, notes).walk(found) for cpu, found in events}
    changes = {tid: _named_wakers(some, notes.sightings) for tid, some in notes.changes.items()}
    for tid, starts in notes.starts.items():
        changes[tid] = with_slack(changes.get(tid, []), sorted(starts))
    senders = find_senders(notes.sent, notes.served, changes, notes.taken)
    of_cpus = {cpu: _with_newest_names(timeline, notes.sightings) for cpu, timeline in walked.items()}
    return Timelines(of_cpus, changes, senders, notes.deepest)


# An event tells the name of a thread only when it runs or is woken; until then, the walk has an older one.


def _named_wakers(changes: Iterable[Change], names: ThreadNames) -> list[Change]:
    """The changes in order of time, each waker with the name that it had then."""
    ordered = sorted(changes, key=lambda change: change.time_ns)
    if not names.changed:
        return ordered
    return [each._replace(by=_named(each.by, each.time_ns, names)) if each.by else each for each in ordered]


def _with_newest_names(timeline: CpuTimeline, names: ThreadNames) -> CpuTimeline:
    if not names.changed:
        return timeline

    def named(stretch: Stretch) -> Stretch:
        known = stretch.task and _named(stretch.task, stretch.from_ns, names)
        return stretch if known == stretch.task else stretch._replace(task=known)

    return replace(timeline, stretches=tuple(map(named, timeline.stretches)))


def _named(task: Task, time_ns: int, names: ThreadNames) -> Task:
    name = names.at(task.tid, time_ns + 1)
    return task._replace(name=name) if name else task


# When the timer that a thread set for itself was due, and how much later the kernel may let it expire.


def with_slack(changes: Sequence[Change], starts: Sequence[TimerStart]) -> list[Change]:
    """The changes of a thread, its wakings with the times of the timer that the thread had started.

    Both in order of time.
    """
    return [each._replace(slack=_slack(each.timer, starts)) if each.timer else each for each in changes]


def _slack(timer: Expiry, starts: Sequence[TimerStart]) -> Slack | None:
    begun = bisect_right(starts, timer.time_ns, key=lambda start: start[0])
    start = next((start for start in reversed(starts[:begun]) if start[1] == timer.timer), None)
    if start is None:
        return None
    started_ns, _, expires_ns, slack_ns = start
    late_ns = max(0, timer.now_ns - expires_ns)
    since_due_ns = timer.now_ns - expires_ns + slack_ns
    # When the timer's clock was read, by the trace's clock. Where the two are one clock, that is the time that was
    # read. Otherwise it is at the earliest when the interrupt began, whose entry would else count as sleep.
    one_clock = 0 <= timer.time_ns - timer.now_ns < OTHER_CLOCK_NS
    read_ns = timer.now_ns if one_clock else timer.entered_ns
    begin_ns = read_ns - since_due_ns if since_due_ns >= 0 else started_ns  # no timer expires before
    return Slack(slack_ns, begin_ns, timer.time_ns - late_ns)
