# SPDX-License-Identifier: Apache-2.0
"""Streams of events for the kinds of disturbance that no guest can make, as a kernel would record them.

A guest in virtual time has one CPU, so nothing migrates in it. Debian's kernels for armhf have no cpuidle. In these
streams a seeded generator chooses the lengths, so the truth is known to the nanosecond.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from disturbances import Answer, Disturbance, answers

from rtproof.explain.budget import LateActivation, System, TimeBudget, budget
from rtproof.explain.cpu_contexts import Change, CpuWalk, Meaning, Window
from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, TraceEvent

NUMBER = 100
LENGTHS_NS = (50_000, 1_000_000)
DUE_NS, END_NS = 10_000_000, 30_000_000
VICTIM, HOG, MOVER = 100, 200, 300
PRIORITIES = {0: 120, VICTIM: 19, HOG: 120, MOVER: 120}
NAMES = {0: "swapper", VICTIM: "victim", HOG: "hog", MOVER: "mover"}
PAIRED = frozenset({"irq_handler", "irq_vectors/local_timer", "hrtimer_expire"})
MEANING = Meaning(PAIRED, {}, 0xFF, "function {:#x}".format, every_call=False)
INTERRUPT = IRQS_OFF | HARDIRQ


class Stream(NamedTuple):
    """The events of each CPU, how late the victim was, and what made it late; times from the due time."""

    events: dict[int, list[TraceEvent]]
    latency_ns: int
    truth: Disturbance


class _Moment(NamedTuple):
    """Where and when an event happens, and to which thread. flags, depth: how the CPU stands."""

    cpu: int
    pid: int
    at_ns: int
    flags: int = 0
    depth: int = 0


def _event(moment: _Moment, event: str, /, **values: int | str) -> TraceEvent:
    return TraceEvent(DUE_NS + moment.at_ns, moment.cpu, event, moment.flags, moment.depth, moment.pid, values)


def _switch(cpu: int, at_ns: int, before: int, after: int, state: int = 0) -> TraceEvent:
    names = {"prev_comm": NAMES[before], "next_comm": NAMES[after]}
    return _event(
        _Moment(cpu, before, at_ns, IRQS_OFF, 1), "sched_switch", prev_pid=before, prev_prio=PRIORITIES[before],
        prev_state=state, next_pid=after, next_prio=PRIORITIES[after], **names,
    )  # fmt: skip


def _timer(cpu: int, pid: int, at_ns: int, depth: int) -> list[TraceEvent]:
    """The interrupt of the victim's timer wakes the victim 2 us after its entry."""
    first = _Moment(cpu, pid, at_ns, INTERRUPT, depth)
    at = [first._replace(at_ns=at_ns + later) for later in (0, 1_000, 2_000, 3_000, 4_000)]
    return [
        _event(at[0], "irq_handler_entry", irq=30, name="arch_timer"),
        _event(at[1], "hrtimer_expire_entry", hrtimer=1, function=1),
        _event(at[2], "sched_waking", pid=VICTIM, prio=PRIORITIES[VICTIM], target_cpu=cpu),
        _event(at[3], "hrtimer_expire_exit", hrtimer=1),
        _event(at[4], "irq_handler_exit", irq=30),
    ]


def migration(length_ns: int) -> Stream:
    """The victim waits behind a thread with preemption off, until another CPU takes it over."""
    moved_ns = 3_000 + length_ns
    first = [_switch(0, -500_000, VICTIM, HOG, state=1), *_timer(0, HOG, 1_000, 1)]
    second = [
        _switch(1, -400_000, 0, MOVER),
        _event(_Moment(1, MOVER, moved_ns, IRQS_OFF, 2), "sched_migrate_task", pid=VICTIM, orig_cpu=0, dest_cpu=1),
        _switch(1, moved_ns + 4_000, MOVER, VICTIM),
    ]
    return Stream({0: first, 1: second}, moved_ns + 7_000, Disturbance("migration", 3_000, moved_ns + 4_000, 0))


def idle_exit(length_ns: int) -> Stream:
    """The CPU leaves a deep idle state when the timer is due, and takes long."""
    only = [
        _switch(0, -500_000, VICTIM, 0, state=1),
        _event(_Moment(0, 0, -495_000, IRQS_OFF, 1), "cpu_idle", state=2),
        *_timer(0, 0, length_ns, 1),
        _event(_Moment(0, 0, length_ns + 5_000, IRQS_OFF, 1), "cpu_idle", state=0xFFFFFFFF),
        _switch(0, length_ns + 7_000, 0, VICTIM),
    ]
    return Stream({0: only}, length_ns + 10_000, Disturbance("idle-exit", 0, length_ns, 0))


KINDS: dict[str, Callable[[int], Stream]] = {"migration": migration, "idle-exit": idle_exit}


def explained(stream: Stream, system: System) -> TimeBudget:
    """The budget of the victim's activation."""
    timelines, changes = {}, list[Change]()
    for cpu, events in stream.events.items():
        walk = CpuWalk(cpu, MEANING, [Window(0, END_NS)], {VICTIM}, {})
        timelines[cpu] = walk.walk([*events, _event(_Moment(cpu, events[-1].pid, END_NS - DUE_NS), "hrtimer_start")])
        changes += walk.changes[VICTIM]
    ordered = sorted(changes, key=lambda change: change.time_ns)
    return budget(LateActivation(0, 0, VICTIM, 0, DUE_NS, stream.latency_ns), ordered, timelines, system)


def constructed_answers(kind: str, system: System) -> list[Answer]:
    """What the budgets of streams of random lengths say of each."""
    chance = random.Random(kind)  # noqa: S311 - the same lengths each time
    found: list[Answer] = []
    for _ in range(NUMBER):
        stream = KINDS[kind](chance.randint(*LENGTHS_NS))
        truth = stream.truth
        at_due = Disturbance(truth.kind, DUE_NS + truth.begin_ns, DUE_NS + truth.end_ns, truth.tid)
        found += answers([explained(stream, system)], [at_due])[0]
    return found
