# SPDX-License-Identifier: Apache-2.0
"""Which of its own disturbances the module rtproof_disturb made late, and what an explanation says of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause

KINDS = {
    "irqs-off": (Cause.IRQ_OFF, Cause.IRQ_OFF_OR_GONE),
    "preempt-off": (Cause.PREEMPT_OFF,),
    "raw-spinlock": (Cause.PREEMPT_OFF,),
    "bh-off": (Cause.SOFTIRQS_OFF,),
    "kernel-code": (Cause.NO_POINT,),
    "tasklet": (Cause.SOFTIRQ,),
    "hard-irq": (Cause.HARDIRQ,),
    "other-timer": (Cause.OTHER_TIMERS,),
    "urgent-task": (Cause.THREAD,),
}
"""The causes that are right for each kind of disturbance."""
NAMES = {
    "tasklet": ("TASKLET",),
    "hard-irq": ("irq_work",),
    "urgent-task": ("rtproof_urgent",),
    "other-timer": ("timer_fires [rtproof_disturb]", "timer_fires"),
}
"""The names that are right; of the others it is that of the module's task. "" where no name is known."""


NESTED = (Cause.TIMER, Cause.OTHER_TIMERS, Cause.HARDIRQ)


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
    """

    truth: Disturbance
    overlap_ns: int
    found: TimeBudget

    @property
    def cause(self) -> Cause:
        return self.found.first.cause

    @property
    def right(self) -> bool:
        return self.cause in KINDS[self.truth.kind]

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


def answers(budgets: Sequence[TimeBudget], truth: Sequence[Disturbance]) -> tuple[list[Answer], list[TimeBudget]]:
    """The budgets whose activation a disturbance meets, and those that none does."""
    met, alone = [], []
    for each in budgets:
        due_ns, end_ns = each.activation.due_ns, each.activation.end_ns
        overlaps = {one: min(one.end_ns, end_ns) - max(one.begin_ns, due_ns) for one in truth}
        longest = max(overlaps, key=lambda one: overlaps[one], default=None)
        if longest is None or overlaps[longest] <= 0:
            alone.append(each)
        else:
            met.append(Answer(longest, overlaps[longest], each))
    return met, alone


def confusion(found: Sequence[Answer]) -> dict[str, Counter[str]]:
    """For each kind, how often each cause was the first one."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for each in found:
        table[each.truth.kind][each.cause.value] += 1
    return table


def quantile_of(values: Sequence[int], share: float) -> int:
    """The nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def in_order(truth: Sequence[Disturbance]) -> bool:
    return all(before.end_ns <= after.begin_ns for before, after in pairwise(truth))
