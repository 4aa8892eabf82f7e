# SPDX-License-Identifier: Apache-2.0
"""Who kept a thread asleep: an interrupt, its own timer, or another thread, and whom that one waited for meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.cpu_contexts import Change, Layer, Task
from rtproof.explain.thread_modes import A_FAULT, AT_END, FAULT, KERNEL, UNKNOWN, Mode, call_words

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
Partners = Mapping[int, Sequence[Change]]
"""What happened to each thread, in order of time."""
NO_PARTNERS: Partners = {}


@dataclass(frozen=True)
class Chain:
    """Threads, each of which kept the one before waiting. The late thread waits for the first one."""

    threads: tuple[Task, ...] = ()

    @property
    def last(self) -> Task | None:
        return self.threads[-1] if self.threads else None

    def with_thread(self, waker: Task) -> "Chain":
        return Chain((*self.threads, waker))

    def end(self, waker: Task) -> NamedCause | None:
        """The cause if the chain is followed no further than to this thread; else None."""
        tids = [task.tid for task in self.threads]
        if waker.tid in tids:
            circle = self.threads[tids.index(waker.tid) :]
            return NamedCause(Cause.BLOCKED, f"a circle of {' and '.join(map(_called, circle))}")
        return NamedCause(Cause.BLOCKED, waker.name, waker.tid) if len(tids) == LONGEST_CHAIN else None

    def kept_by(self, cause: NamedCause) -> tuple[str, ...]:
        """The threads that a cause kept, in this order; without the one that is the cause."""
        if cause.cause is Cause.UNEXPLAINED:
            return ()
        tid = cause.tid if cause.cause in (Cause.BLOCKED, Cause.SLEEP) else None
        return tuple(_called(task) for task in self.threads if task.tid != tid)


NO_CHAIN = Chain()


def _called(task: Task) -> str:
    return f"{task.name or 'a thread'}/{task.tid}"


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
