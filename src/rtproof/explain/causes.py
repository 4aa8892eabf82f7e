# SPDX-License-Identifier: Apache-2.0
"""The causes of lateness: their names in files and options, and how a sentence names each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Cause(Enum):
    """What a part of the time is charged to. The value is the name in JSON, in rules and in --explain-at-most."""

    IRQ_OFF = "irqoff"
    IRQ_OFF_LIKELY = "irqoff-likely"
    IRQ_OFF_OR_GONE = "irqoff-or-machine"
    MACHINE = "machine"
    LATE_TIMER = "late-timer"
    TIMER_SLACK = "timer-slack"
    NMI = "nmi"
    HARDIRQ = "hardirq"
    TIMER = "timer"
    OTHER_TIMERS = "other-timers"
    SOFTIRQ = "softirq"
    SOFTIRQS_OFF = "softirqs-off"
    PREEMPT_OFF = "preemptoff"
    NO_POINT = "no-preemption-point"
    PREEMPT_OFF_OR_NO_POINT = "preemptoff-or-no-point"
    THREAD = "thread"
    THROTTLED = "throttled"
    THROTTLED_OR_THREAD = "throttled-or-thread"
    THROTTLED_OR_MACHINE = "throttled-or-machine"
    IDLE_EXIT = "idle-exit"
    SCHEDULER = "scheduler"
    MIGRATION = "migration"
    RETURN = "return"
    OWN_CODE = "own-code"
    OWN_PREVIOUS = "own-previous"
    PAGE_FAULT = "page-fault"
    SYSTEM_CALL = "system-call"
    SIGNAL_HANDLER = "signal-handler"
    OWN_CODE_OR_KERNEL = "own-code-or-kernel"
    BLOCKED = "blocked"
    SLEEP = "sleep"
    INTERRUPT_WAIT = "interrupt-wait"
    UNEXPLAINED = "unexplained"


WORDS = {
    Cause.IRQ_OFF: "interrupts off while {} ran",
    Cause.IRQ_OFF_LIKELY: "probably interrupts off while {} ran, else the host or an SMI stopped the CPU",
    Cause.IRQ_OFF_OR_GONE: "interrupts off while {} ran, or the host or an SMI stopped the CPU",
    Cause.MACHINE: "the host or an SMI stopped the CPU",
    Cause.LATE_TIMER: "the timer's interrupt came late, with interrupts on",
    Cause.TIMER_SLACK: "the timer's slack of {}",
    Cause.NMI: "NMI {}",
    Cause.HARDIRQ: "interrupt {}",
    Cause.TIMER: "the timer's interrupt itself",
    Cause.OTHER_TIMERS: "another timer in the same interrupt: {}",
    Cause.SOFTIRQ: "softirq {}",
    Cause.SOFTIRQS_OFF: "softirqs off while {} ran",
    Cause.PREEMPT_OFF: "preemption off while {} ran",
    Cause.NO_POINT: "no preemption point while {} ran",
    Cause.PREEMPT_OFF_OR_NO_POINT: "preemption off or no preemption point while {} ran",
    Cause.THREAD: "thread {}",
    Cause.THROTTLED: "throttled by {}",
    Cause.THROTTLED_OR_THREAD: "throttled by {}",
    Cause.THROTTLED_OR_MACHINE: "throttled by {}, or the host stopped the CPU",
    Cause.IDLE_EXIT: "the CPU woke from idle, or the timer was late, or the host or an SMI stopped the CPU",
    Cause.SCHEDULER: "the scheduler",
    Cause.MIGRATION: "migration to another CPU, {}",
    Cause.RETURN: "switch to the thread and return from its sleep",
    Cause.OWN_CODE: "the thread's own code",
    Cause.OWN_PREVIOUS: "the thread was still busy with the activation before",
    Cause.PAGE_FAULT: "page fault of the thread",
    Cause.SYSTEM_CALL: "the thread's system call {}",
    Cause.SIGNAL_HANDLER: "the thread's handler of {}",
    Cause.OWN_CODE_OR_KERNEL: "{}",
    Cause.BLOCKED: "blocked, until {} was done",
    Cause.SLEEP: "blocked by {}, which slept until its own timer",
    Cause.INTERRUPT_WAIT: "waited for {}",
    Cause.UNEXPLAINED: "unexplained",
}

MAY_BE = {
    Cause.IRQ_OFF_LIKELY: (Cause.IRQ_OFF, Cause.MACHINE),
    Cause.IRQ_OFF_OR_GONE: (Cause.IRQ_OFF, Cause.MACHINE),
    Cause.PREEMPT_OFF_OR_NO_POINT: (Cause.PREEMPT_OFF, Cause.NO_POINT),
    Cause.THROTTLED_OR_THREAD: (Cause.THROTTLED, Cause.THREAD),
    Cause.THROTTLED_OR_MACHINE: (Cause.THROTTLED, Cause.MACHINE),
    Cause.OWN_CODE_OR_KERNEL: (Cause.OWN_CODE, Cause.PAGE_FAULT, Cause.SYSTEM_CALL, Cause.SIGNAL_HANDLER),
}
"""The causes that say "or", and what each may be. Limits on those, and advice, are for the cause too."""
WITHOUT_NAME = {
    Cause.MIGRATION: "migration to another CPU",
    Cause.SYSTEM_CALL: "a system call of the thread",
}
"""The words of causes whose name is no thread, where it is not known."""
HOST, FIRMWARE = "host", "firmware"
"""Names of who took the machine away, where a count tells it."""
GONE_WORDS = {
    HOST: "the host took the CPU (stolen time)",
    FIRMWARE: "the firmware took the CPU (SMI)",
}


def missing_on(cpu: int) -> str:
    """The name of unexplained time in which a CPU has a switch without an event."""
    return f"a switch is missing on CPU {cpu}"


class Blind(Enum):
    """A class of events that a trace lacks, so that a cause may be another one."""

    INTERRUPTS = "an interrupt"
    SOFTIRQS = "a softirq"
    TIMERS = "another timer"
    FAULTS = "a page fault"


MAY_HIDE = {
    Cause.IRQ_OFF_LIKELY: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.IRQ_OFF_OR_GONE: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.IDLE_EXIT: (Blind.INTERRUPTS,),
    Cause.TIMER: (Blind.TIMERS,),
    Cause.PREEMPT_OFF: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.NO_POINT: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.PREEMPT_OFF_OR_NO_POINT: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.SCHEDULER: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.RETURN: (Blind.INTERRUPTS, Blind.SOFTIRQS),
    Cause.OWN_CODE: (Blind.FAULTS,),
}
"""What a cause may really be where events are missing."""


FAIR_FROM = 100
"""Priorities of the kernel from here on share the CPU, so that no one of them is more urgent."""


def _priority_words(priority: int) -> str:
    """A priority of the kernel, as the user set it."""
    if priority < 0:
        return "SCHED_DEADLINE"
    return f"priority {FAIR_FROM - 1 - priority}" if priority < FAIR_FROM else "ordinary priority"


@dataclass(frozen=True)
class Ranks:
    """The kernel's priority of a thread that had the CPU, and of the late one; None if it kept another one from it."""

    ran: int
    kept: int | None = None

    @property
    def words(self) -> str:
        ran = _priority_words(self.ran)
        if self.kept is None:
            return f"of {ran}"
        kept = _priority_words(self.kept)
        if ran != kept:
            return f"of {ran}, above {kept.removeprefix('priority ')}"
        return f"of {ran}, too" if self.ran < 0 else f"of the same {ran}"


@dataclass(frozen=True)
class NamedCause:
    """A cause and who it was, such as preemption off in dd/812.

    Attributes:
        cause: What it is; ``cause.value`` is its name, as ``rtproof explain --explain-at-most`` takes it.
        name: The thread, the interrupt, the softirq or the function; empty where the cause needs none.
        tid: The number of the thread; None for what is no thread, and for all threads of a name.
        function: The function of the kernel, where a stack shows it; else empty.
        ranks: The priorities of a thread that had the CPU and of the late one; None if not known.
        asked_by: Who sent the interrupt or woke the stopper thread, where an event proves it; else empty.
    """

    cause: Cause
    name: str = ""
    tid: int | None = None
    function: str = ""
    ranks: Ranks | None = field(default=None, compare=False)
    asked_by: str = ""

    @property
    def who(self) -> str:
        """The name with the number of the thread."""
        return self.name if self.tid is None else f"{self.name or 'a thread'}/{self.tid}"

    @property
    def and_others(self) -> "NamedCause":
        """The cause, of this one and of others."""
        if "{}" in WORDS[self.cause]:
            return NamedCause(self.cause, f"{self.who or 'an unknown thread'} and others")
        return NamedCause(self.cause) if self.cause is Cause.MACHINE else self

    @property
    def order(self) -> tuple[str, str, int, str, str]:
        """What sorts causes that took equally long."""
        return self.cause.value, self.name, self.tid or 0, self.function, self.asked_by

    def words(self, blind: Collection[Blind] = ()) -> str:
        """The cause in words.

        blind: the classes of events that the trace lacks.
        """
        who = self.who or "an unknown thread"
        who += f" ({self.asked_by})" if self.asked_by else ""
        words = GONE_WORDS.get(self.name) if self.cause is Cause.MACHINE else None
        if not self.name:
            words = WITHOUT_NAME.get(self.cause)
        if self.cause is Cause.SOFTIRQ and self.function:
            words = f"softirq {who}: {self.function}"
        if self.cause is Cause.UNEXPLAINED and self.name:
            words = f"unexplained: {self.name}"
        if self.cause is Cause.THREAD:
            words = f"thread {who} {self.ranks.words if self.ranks else 'of the same or a higher priority'}"
        if self.cause is Cause.SLEEP and not self.name:
            words = "the thread's own sleep"
        text = words or WORDS[self.cause].format(f"{self.function}() of {who}" if self.function else who)
        hidden = [each.value for each in MAY_HIDE.get(self.cause, ()) if each in blind]
        return f"{text}, or {' or '.join(hidden)} (not traced)" if hidden else text


def words_with_chain(cause: NamedCause, waits_for: Sequence[str], blind: Collection[Blind] = ()) -> str:
    """A cause in words, with the threads that it kept; the one for which the late thread waited comes first."""
    if not waits_for:
        return cause.words(blind)
    *between, kept = waits_for
    waiting = "".join(f", for which {thread} waited" for thread in reversed(between))
    known = f" of {_priority_words(cause.ranks.ran)}" if cause.ranks else ""
    in_place = f"thread {cause.who or 'an unknown thread'}{known} in place of {kept}"
    ran = in_place if cause.cause is Cause.THREAD else f"{cause.words(blind)}: it kept {kept}"
    return f"{ran}{waiting}, for which the thread waited"
