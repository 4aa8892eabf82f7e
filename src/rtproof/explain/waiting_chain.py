# SPDX-License-Identifier: Apache-2.0
"""Who kept a thread asleep: an interrupt, its own timer, or another thread, and whom that one waited for meanwhile."""

from collections.abc import Sequence

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


def end_of_chain(chain: Sequence[Task], waker: Task) -> NamedCause | None:
    """The cause if a chain is followed no further than to this thread; else None.

    chain: threads, each of which kept the one before waiting; the late thread waits for the first one.
    """
    tids = [task.tid for task in chain]
    if waker.tid in tids:
        circle = chain[tids.index(waker.tid) :]
        return NamedCause(Cause.BLOCKED, f"a circle of {' and '.join(map(_called, circle))}")
    return NamedCause(Cause.BLOCKED, waker.name, waker.tid) if len(tids) == LONGEST_CHAIN else None


def kept_threads(chain: Sequence[Task], cause: NamedCause) -> tuple[str, ...]:
    """The threads of a chain that a cause kept, in this order; without the one that is the cause."""
    if cause.cause is Cause.UNEXPLAINED:
        return ()
    tid = cause.tid if cause.cause in (Cause.BLOCKED, Cause.SLEEP) else None
    return tuple(_called(task) for task in chain if task.tid != tid)


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
