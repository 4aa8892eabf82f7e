# SPDX-License-Identifier: Apache-2.0
"""Events of a trace for the tests of budgets: made one by one, as a kernel would record them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rtproof.explain.budget import Budget, LateActivation, System, budget
from rtproof.explain.cpu_contexts import Change, CpuTimeline, CpuWalk, Meaning, Window
from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, LOST, SOFTIRQ, TraceEvent

VICTIM, HOG, OTHER = 100, 200, 300
VICTIM_PRIORITY, HOG_PRIORITY, URGENT = 19, 120, 2
NAMES = {VICTIM: "victim", HOG: "hog", OTHER: "other"}
PAIRED = frozenset(
    {"irq_vectors/local_timer", "irq_vectors/irq_work", "irq_handler", "softirq", "hrtimer_expire", "ipi"}
)
OWN_TIMER, OTHER_TIMER = 0xA, 0xB
DUE_NS = 1_000_000
MEANING = Meaning(PAIRED, {1: "TIMER", 3: "NET_RX"}, 0xFF, "function {:#x}".format, every_call=False)


PLAIN = System()
LATER_NS = 20_000_000


@dataclass
class Cpu:
    """A CPU on which things happen in the order in which a test says so."""

    number: int = 0
    pid: int = HOG
    events: list[TraceEvent] = field(default_factory=list)

    def add(self, time_ns: int, event: str, /, flags: int = 0, depth: int = 0, **values: int | str) -> "Cpu":
        self.events.append(TraceEvent(DUE_NS + time_ns, self.number, event, flags, depth, self.pid, values))
        return self

    def switch(self, time_ns: int, to: int, priority: int = HOG_PRIORITY, state: int = 0) -> "Cpu":
        names = {"prev_comm": NAMES.get(self.pid, "idle"), "next_comm": NAMES.get(to, "idle")}
        before = VICTIM_PRIORITY if self.pid == VICTIM else HOG_PRIORITY
        self.add(
            time_ns, "sched_switch", IRQS_OFF, 1, prev_pid=self.pid, prev_prio=before, prev_state=state, next_pid=to,
            next_prio=priority, **names,
        )  # fmt: skip
        self.pid = to
        return self

    def to_victim(self, time_ns: int) -> "Cpu":
        return self.switch(time_ns, VICTIM, VICTIM_PRIORITY)

    def hard(self, time_ns: int, event: str, /, flags: int = 0, depth: int = 0, **values: int | str) -> "Cpu":
        return self.add(time_ns, event, IRQS_OFF | HARDIRQ | flags, depth, **values)

    def timer(self, time_ns: int, depth: int = 0, flags: int = 0) -> "Cpu":
        """The timer's interrupt wakes the victim after 2 us, half of them in its function, and ends 2 us later."""
        self.hard(time_ns, "irq_vectors/local_timer_entry", flags, depth)
        self.hard(time_ns + 1_000, "hrtimer_expire_entry", flags, depth, hrtimer=OWN_TIMER, function=1)
        self.waking(time_ns + 2_000, HARDIRQ | flags, depth + 1)
        self.hard(time_ns + 3_000, "hrtimer_expire_exit", flags, depth, hrtimer=OWN_TIMER)
        return self.hard(time_ns + 4_000, "irq_vectors/local_timer_exit", flags, depth)

    def waking(self, time_ns: int, flags: int = 0, depth: int = 1, target: int | None = None) -> "Cpu":
        where = self.number if target is None else target
        return self.add(
            time_ns, "sched_waking", IRQS_OFF | flags, depth, pid=VICTIM, prio=VICTIM_PRIORITY, target_cpu=where
        )

    def softirq(self, time_ns: int, vec: int, until_ns: int) -> "Cpu":
        self.add(time_ns, "softirq_entry", SOFTIRQ, vec=vec)
        return self.add(until_ns, "softirq_exit", SOFTIRQ, vec=vec)

    def lost(self, time_ns: int) -> "Cpu":
        self.events.append(TraceEvent(DUE_NS + time_ns, self.number, LOST, 0, 0, -1, {"from_ns": 0}))
        return self


def begun(number: int = 0, task: int = HOG) -> Cpu:
    """A CPU on which the victim went to sleep before its due time, and another thread, or idle, has run since."""
    cpu = Cpu(number, VICTIM)
    return cpu.switch(-500_000, task, state=1)


def walked(cpus: Sequence[Cpu], meaning: Meaning = MEANING) -> tuple[dict[int, CpuTimeline], list[Change]]:
    timelines, changes = {}, []
    for cpu in cpus:
        walk = CpuWalk(cpu.number, meaning, [Window(0, 1 << 60)], {VICTIM}, {})
        timelines[cpu.number] = walk.walk(cpu.events)
        changes += walk.changes[VICTIM]
    return timelines, sorted(changes, key=lambda change: change.time_ns)


def late(latency_ns: int) -> LateActivation:
    return LateActivation(0, 0, VICTIM, 1, DUE_NS, latency_ns)


def budget_of(latency_ns: int, *cpus: Cpu, system: System = PLAIN, meaning: Meaning = MEANING) -> Budget:
    """The budget of an activation, after a look at what must hold for each."""
    timelines, changes = walked([cpu.add(LATER_NS, "hrtimer_start") for cpu in cpus], meaning)
    found = budget(late(latency_ns), changes, timelines, system)
    check(found)
    return found


def check(found: Budget) -> None:
    """Every nanosecond is charged once: the parts follow each other from the due time to the end."""
    edges = [found.activation.due_ns, *(part.to_ns for part in found.parts)]
    assert [part.from_ns for part in found.parts] == edges[:-1]
    assert edges[-1] == found.activation.end_ns
    assert all(part.length_ns > 0 for part in found.parts)


def shown(found: Budget) -> list[tuple[str, str, str, int]]:
    """Phase, cause, name and length of each part."""
    return [(part.phase.name, part.cause.cause.value, part.cause.who, part.length_ns) for part in found.parts]
