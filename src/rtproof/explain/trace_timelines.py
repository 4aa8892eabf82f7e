# SPDX-License-Identifier: Apache-2.0
"""What all CPUs of a trace did, and what happened to its threads."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rtproof.explain.cpu_contexts import Change, CpuTimeline, CpuWalk, Meaning, Stretch, Task, WalkNotes
from rtproof.explain.senders import NO_SENDERS, Senders, find_senders
from rtproof.explain.thread_names import ThreadNames
from rtproof.explain.timer_slack import with_slack
from rtproof.explain.trace_events import TraceEvent, Window


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
