# SPDX-License-Identifier: Apache-2.0
"""The causes of lateness: their names in files and options, how a sentence names each, and advice on them.

``rules/NAME.toml`` has a list ``advice``: for a cause, and the names it fits, what helps and who says so. Of
one cause, the first advice whose ``name`` fits is taken, so special ones come first.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from rtproof.core.toml import parse_toml


class Blind(Enum):
    """A class of events that a trace lacks, so that a cause may be another one."""

    INTERRUPTS = "an interrupt"
    SOFTIRQS = "a softirq"
    TIMERS = "another timer"
    FAULTS = "a page fault"


_INTERRUPTS = (Blind.INTERRUPTS, Blind.SOFTIRQS)


class Cause(Enum):
    """What a part of the time is charged to. The value is the name in JSON, in rules and in --explain-at-most.

    Behind it: how a sentence names the cause, with who it was for {}; what a cause that says "or" may be; and the
    classes of events, one of which it may really be where they are missing.
    """

    words: str
    hides: tuple[Blind, ...]
    _or: tuple[str, ...]

    def __new__(cls, name: str, words: str = "", possible: str = "", hides: tuple[Blind, ...] = ()) -> "Cause":
        member = object.__new__(cls)
        member._value_, member.words, member.hides, member._or = name, words, hides, tuple(possible.split())
        return member

    IRQ_OFF = "irqoff", "interrupts off while {} ran"
    IRQ_OFF_LIKELY = (
        "irqoff-likely",
        "probably interrupts off while {} ran, else the host or an SMI stopped the CPU",
        "irqoff machine",
        _INTERRUPTS,
    )
    IRQ_OFF_OR_GONE = (
        "irqoff-or-machine",
        "interrupts off while {} ran, or the host or an SMI stopped the CPU",
        "irqoff machine",
        _INTERRUPTS,
    )
    MACHINE = "machine", "the host or an SMI stopped the CPU"
    LATE_TIMER = "late-timer", "the timer's interrupt came late, with interrupts on"
    TIMER_SLACK = "timer-slack", "the timer's slack of {}"
    NMI = "nmi", "NMI {}"
    HARDIRQ = "hardirq", "interrupt {}"
    TIMER = "timer", "the timer's interrupt itself", "", (Blind.TIMERS,)
    OTHER_TIMERS = "other-timers", "another timer in the same interrupt: {}"
    SOFTIRQ = "softirq", "softirq {}"
    SOFTIRQS_OFF = "softirqs-off", "softirqs off while {} ran"
    PREEMPT_OFF = "preemptoff", "preemption off while {} ran", "", _INTERRUPTS
    NO_POINT = "no-preemption-point", "no preemption point while {} ran", "", _INTERRUPTS
    PREEMPT_OFF_OR_NO_POINT = (
        "preemptoff-or-no-point",
        "preemption off or no preemption point while {} ran",
        "preemptoff no-preemption-point",
        _INTERRUPTS,
    )
    THREAD = "thread", "thread {}"
    THROTTLED = "throttled", "throttled by {}"
    THROTTLED_OR_THREAD = "throttled-or-thread", "throttled by {}", "throttled thread"
    THROTTLED_OR_MACHINE = "throttled-or-machine", "throttled by {}, or the host stopped the CPU", "throttled machine"
    IDLE_EXIT = (
        "idle-exit",
        "the CPU woke from idle, or the timer was late, or the host or an SMI stopped the CPU",
        "",
        (Blind.INTERRUPTS,),
    )
    SCHEDULER = "scheduler", "the scheduler", "", _INTERRUPTS
    MIGRATION = "migration", "migration to another CPU, {}"
    RETURN = "return", "switch to the thread and return from its sleep", "", _INTERRUPTS
    OWN_CODE = "own-code", "the thread's own code", "", (Blind.FAULTS,)
    OWN_PREVIOUS = "own-previous", "the thread was still busy with the activation before"
    PAGE_FAULT = "page-fault", "page fault of the thread"
    SYSTEM_CALL = "system-call", "the thread's system call {}"
    SIGNAL_HANDLER = "signal-handler", "the thread's handler of {}"
    OWN_CODE_OR_KERNEL = "own-code-or-kernel", "{}", "own-code page-fault system-call signal-handler"
    BLOCKED = "blocked", "blocked, until {} was done"
    SLEEP = "sleep", "blocked by {}, which slept until its own timer"
    INTERRUPT_WAIT = "interrupt-wait", "waited for {}"
    UNEXPLAINED = "unexplained", "unexplained"

    @property
    def may_be(self) -> tuple["Cause", ...]:
        """What a cause that says "or" may be. Limits on these, and advice, are for the cause too."""
        return tuple(map(Cause, self._or))


WITHOUT_NAME = {
    Cause.MIGRATION: "migration to another CPU",
    Cause.SYSTEM_CALL: "a system call of the thread",
    Cause.SLEEP: "the thread's own sleep",
}
"""The words of causes without a name, where it is not known or says nothing."""
HOST, FIRMWARE = "host", "firmware"
"""Names of who took the machine away, where a count tells it."""
GONE_WORDS = {
    HOST: "the host took the CPU (stolen time)",
    FIRMWARE: "the firmware took the CPU (SMI)",
}


def missing_on(cpu: int) -> str:
    """The name of unexplained time in which a CPU has a switch without an event."""
    return f"a switch is missing on CPU {cpu}"


FAIR_FROM = 100
"""Priorities of the kernel from here on share the CPU, so that no one of them is more urgent."""


def _priority_words(priority: int) -> str:
    """A priority of the kernel, as the user set it."""
    if priority < 0:
        return "SCHED_DEADLINE"
    return f"priority {FAIR_FROM - 1 - priority}" if priority < FAIR_FROM else "ordinary priority"


def rank_words(ran: int, kept: int | None = None) -> str:
    """The kernel's priority of a thread that had the CPU, against that of the late one if it kept this one from it."""
    words = _priority_words(ran)
    late = words if kept is None else _priority_words(kept)
    if words != late:
        return f"of {words}, above {late.removeprefix('priority ')}"
    if kept is None:
        return f"of {words}"
    return f"of {words}, too" if ran < 0 else f"of the same {words}"


@dataclass(frozen=True)
class NamedCause:
    """A cause and who it was, such as preemption off in dd/812.

    Attributes:
        cause: What it is; ``cause.value`` is its name, as ``rtproof explain --explain-at-most`` takes it.
        name: The thread, the interrupt, the softirq or the function; empty where the cause needs none.
        tid: The number of the thread; None for what is no thread, and for all threads of a name.
        function: The function of the kernel, where a stack shows it; else empty.
        ranks: The priorities of a thread that had the CPU and of the late one, in words; empty if not known.
        asked_by: Who sent the interrupt or woke the stopper thread, where an event proves it; else empty.
    """

    cause: Cause
    name: str = ""
    tid: int | None = None
    function: str = ""
    ranks: str = field(default="", compare=False)
    asked_by: str = ""

    @property
    def who(self) -> str:
        """The name with the number of the thread."""
        return self.name if self.tid is None else f"{self.name or 'a thread'}/{self.tid}"

    @property
    def and_others(self) -> "NamedCause":
        """The cause, of this one and of others."""
        if "{}" in self.cause.words:
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
            words = f"thread {who} {self.ranks or 'of the same or a higher priority'}"
        text = words or self.cause.words.format(f"{self.function}() of {who}" if self.function else who)
        hidden = [each.value for each in self.cause.hides if each in blind]
        return f"{text}, or {' or '.join(hidden)} (not traced)" if hidden else text


def words_with_chain(cause: NamedCause, waits_for: Sequence[str], blind: Collection[Blind] = ()) -> str:
    """A cause in words, with the threads that it kept; the one for which the late thread waited comes first."""
    if not waits_for:
        return cause.words(blind)
    *between, kept = waits_for
    waiting = "".join(f", for which {thread} waited" for thread in reversed(between))
    ranks = f" {cause.ranks}" if cause.ranks else ""
    in_place = f"thread {cause.who or 'an unknown thread'}{ranks} in place of {kept}"
    ran = in_place if cause.cause is Cause.THREAD else f"{cause.words(blind)}: it kept {kept}"
    return f"{ran}{waiting}, for which the thread waited"


class Advice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule.

    causes: which it is for. name: a pattern that the whole name fits; "" fits all.
    of_chain: whether it is only for what kept the late thread by keeping another one, for which that one waited.
    short: what helps, in a few words. sentence: what helps. source: who says so.
    """

    causes: tuple[str, ...]
    short: str
    sentence: str
    source: str
    name: str = ""
    of_chain: bool = False


@cache
def all_advice() -> tuple[Advice, ...]:
    """The rules of all files, in the order of their names."""
    folder = resources.files("rtproof.explain").joinpath("rules")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    lists = (parse_toml(file.read_bytes(), dict[Literal["advice"], tuple[Advice, ...]], file.name) for file in files)
    return tuple(rule for found in lists for rule in found["advice"])


def advice_on(cause: NamedCause, *, of_chain: bool = False) -> Advice | None:
    """The first rule that fits a cause, or else what it may be; None if there is none. of_chain: as in ``Advice``."""
    for kind in (cause.cause, *cause.cause.may_be):
        for rule in all_advice():
            named = not rule.name or re.fullmatch(rule.name, cause.name)
            if kind.value in rule.causes and named and (of_chain or not rule.of_chain):
                return rule
    return None
