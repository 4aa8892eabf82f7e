# SPDX-License-Identifier: Apache-2.0
"""Which of its own disturbances the module rtproof_disturb made late, and what an explanation says of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtproof.explain.budget import LateActivation, TimeBudget
from rtproof.explain.causes import Cause

KINDS = {
    "irqs-off": (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE),
    "preempt-off": (Cause.PREEMPT_OFF,),
    "raw-spinlock": (Cause.PREEMPT_OFF,),
    "bh-off": (Cause.SOFTIRQS_OFF,),
    "kernel-code": (Cause.NO_POINT,),
    "tasklet": (Cause.SOFTIRQ,),
    "hard-irq": (Cause.HARDIRQ,),
    "other-timer": (Cause.OTHER_TIMERS,),
    "urgent-task": (Cause.THREAD,),
    "nmi": (Cause.NMI,),
    "idle-exit": (Cause.IDLE_EXIT,),
    "hi-tasklet": (Cause.SOFTIRQ,),
    "tasklet-irqs-off": (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE),
    "spin-lock-irqsave": (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE),
    "read-lock": (Cause.PREEMPT_OFF,),
    "migrate-disable": (Cause.NO_POINT,),
    "softirq-timer": (Cause.SOFTIRQ,),
    "rcu-callback": (Cause.SOFTIRQ,),
    "deadline-task": (Cause.THREAD,),
    "stop-machine": (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE),
    "page-fault": (Cause.PAGE_FAULT,),
    "lock-held": (Cause.BLOCKED,),
    "inversion": (Cause.THREAD,),
    "own-sleep": (Cause.SLEEP,),
    "partner-sleep": (Cause.SLEEP,),
}
"""The causes that are right for each kind of disturbance."""
OF_VICTIM = ("page-fault", "lock-held", "inversion", "own-sleep", "partner-sleep")
"""The kinds that a program makes of its own thread; the module makes the others."""
AlsoRight = frozenset[tuple[str, Cause]]
NOT_COUNTED: AlsoRight = frozenset(
    (kind, Cause.PREEMPT_OFF_OR_NO_POINT)
    for kind in ("preempt-off", "raw-spinlock", "bh-off", "kernel-code", "read-lock", "migrate-disable")
)
"""What looks alike on a kernel that does not count how often preemption is off."""
NO_FAULT_EVENTS: AlsoRight = frozenset({("page-fault", Cause.OWN_CODE)})
"""A kernel without events for page faults: in words the cause is "own code, or a page fault"."""
NO_FAULT_ENDS: AlsoRight = frozenset({("page-fault", Cause.OWN_CODE_OR_KERNEL)})
"""Before Linux 5.11 no event tells when a page fault ends: in words the cause is the same."""
NAMES = {
    "tasklet": ("TASKLET",),
    "hard-irq": ("irq_work", "IPI"),
    "urgent-task": ("rtproof_urgent",),
    "other-timer": ("timer_fires [rtproof_disturb]", "timer_fires"),
    "nmi": ("nmi_comes [rtproof_disturb]", "nmi_comes"),
    "idle-exit": ("",),
    "hi-tasklet": ("HI",),
    "tasklet-irqs-off": ("softirq TASKLET",),
    "softirq-timer": ("TIMER",),
    "rcu-callback": ("RCU",),
    "deadline-task": ("rtproof_dl",),
    "stop-machine": ("migration/0",),
    "page-fault": ("",),
    "lock-held": ("rtproof_holder",),
    "inversion": ("rtproof_hog",),
    "own-sleep": ("",),
    "partner-sleep": ("rtproof_partner",),
}
"""The names that are right; of the others it is that of the module's task. "" where no name is known."""


NESTED = (
    Cause.TIMER, Cause.OTHER_TIMERS, Cause.HARDIRQ, Cause.SOFTIRQ, Cause.THREAD, Cause.OWN_CODE_OR_KERNEL,
)  # fmt: skip
"""What is within a disturbance beside its cause. The last one is a page fault too, where a preemption hides its end."""


@dataclass(frozen=True)
class Disturbance:
    """What the module says: times in ns from the origin of the record."""

    kind: str
    begin_ns: int
    end_ns: int
    tid: int


@dataclass(frozen=True)
class Answer:
    """One late activation: what disturbed it, and the budget's first cause with its length.

    overlap_ns: how much of the disturbance lies between the due time and the end.
    also_right: causes of kinds that are right too, on a kernel that cannot tell them better.
    """

    truth: Disturbance
    overlap_ns: int
    found: TimeBudget
    also_right: AlsoRight = frozenset()

    @property
    def cause(self) -> Cause:
        return self.found.first.cause

    @property
    def right(self) -> bool:
        return self.cause in KINDS[self.truth.kind] or (self.truth.kind, self.cause) in self.also_right

    @property
    def name_right(self) -> bool:
        name = self.found.first.name
        return name in NAMES.get(self.truth.kind, ("rtproof_disturb",)) or name.startswith("0x")

    @property
    def error_ns(self) -> int:
        """How much longer the budget says than the truth, without the interrupts that hit the disturbance."""
        return next(iter(self.found.by_cause.values())) + self._nested_ns - self.overlap_ns

    @property
    def _nested_ns(self) -> int:
        """The time of interrupts within the disturbance, which the budget charges to themselves."""
        within = (
            min(part.to_ns, self.truth.end_ns) - max(part.from_ns, self.truth.begin_ns)
            for part in self.found.parts
            if part.cause.cause in NESTED and part.cause != self.found.first
        )
        return sum(max(0, length_ns) for length_ns in within)


def read_truth(text: str, origin_ns: int) -> list[Disturbance]:
    """The lines of /proc/rtproof_disturb."""
    lines = [line.split() for line in text.splitlines()]
    return [
        Disturbance(kind, int(begin) - origin_ns, int(end) - origin_ns, int(tid)) for kind, begin, end, tid in lines
    ]


def read_victim(text: str, origin_ns: int) -> tuple[list[LateActivation], list[Disturbance]]:
    """What the program victim prints: its activations, and what made each late."""
    lines = [line.split() for line in text.splitlines()]
    times = [[int(word) for word in line[1:]] for line in lines if line[0] == "activation"]
    activations = [
        LateActivation(0, 0, tid, index, due - origin_ns, end - due) for index, (tid, due, end) in enumerate(times)
    ]
    told = "\n".join(" ".join(line) for line in lines if line[0] != "activation")
    return activations, read_truth(told, origin_ns)


def answers(
    budgets: Sequence[TimeBudget], truth: Sequence[Disturbance], also_right: AlsoRight = frozenset()
) -> tuple[list[Answer], list[TimeBudget]]:
    """The budgets whose activation a disturbance meets, and those that none does. also_right: as in ``Answer``."""
    met, alone = [], []
    for each in budgets:
        due_ns, end_ns = each.activation.due_ns, each.activation.end_ns
        overlaps = {one: min(one.end_ns, end_ns) - max(one.begin_ns, due_ns) for one in truth}
        longest = max(overlaps, key=lambda one: overlaps[one], default=None)
        if longest is None or overlaps[longest] <= 0:
            alone.append(each)
        else:
            met.append(Answer(longest, overlaps[longest], each, also_right))
    return met, alone


def confusion(found: Sequence[Answer]) -> dict[str, Counter[str]]:
    """For each kind, how often each cause was the first one."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for each in found:
        table[each.truth.kind][each.cause.value] += 1
    return table


def in_order(truth: Sequence[Disturbance]) -> bool:
    return all(before.end_ns <= after.begin_ns for before, after in pairwise(truth))
