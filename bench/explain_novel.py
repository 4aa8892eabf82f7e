# SPDX-License-Identifier: Apache-2.0
"""Three times ten disturbers whose authors did not know the rules of the explanation, each in guests in virtual time.

Which first causes are right was decided before the first run. The program in novel/ makes a real-time thread late, and
says when. The first ten are in novel.c, the further ten in further.c, the last ten
in third.c.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disturbances import Disturbance, read_victim
from disturbed_guests import LIMIT_NS, SYSTEMS, System, choice_of_model, emulator, run_in_guest
from part import ROOT, Details, Figure, Part, percent

from rtproof.agents.build import ProgramSources, build_program
from rtproof.core.errors import RtproofError
from rtproof.explain.budget import LateActivation, TimeBudget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import explain_activations
from rtproof.record.reading import open_record

EVENTS = 30
ON_SECOND_CPU = ("stopped", "logger-pipe", "mmap-lock", "requeue", "cpu-max")
"""On it are the programs of these kinds, all but the real-time thread."""
FURTHER_ON_TWO_CPUS = ("membarrier", "pi-chain", "frozen", "moved")
THIRD_ON_TWO_CPUS = ("shootdown", "perf-all")
SAMPLES = {"cpu-max": 5600, "membarrier": 5600, "memory-high": 5600}
"""Of the timer probe beside the program, one each millisecond; a program of this kind takes longer than the others."""
USUAL_SAMPLES = 2300

INTERRUPTS_OFF = (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE)
ANY: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Expected:
    """words: what an engineer would say. right: the first causes that say so, each with the names that it may have.

    A name is right if it holds one of these.
    """

    words: str
    right: Mapping[Cause, tuple[str, ...]]

    def accepts(self, found: NamedCause) -> bool:
        return any(name in found.name for name in self.right.get(found.cause, ()))


EXPECTED = {
    "fifo-peer": Expected("novel_peer, a thread of the same priority, had the CPU", {Cause.THREAD: ("novel_peer",)}),
    "stopped": Expected(
        "it was stopped by SIGSTOP of novel_stopper, until novel_stopper sent SIGCONT",
        {Cause.BLOCKED: ("novel_stopper", "SIGSTOP", "SIGCONT"), Cause.SLEEP: ("novel_stopper",)},
    ),
    "poll-rounding": Expected("it slept in poll() until its own timer, beyond the due time", {Cause.SLEEP: ANY}),
    "fork-cow": Expected("page faults that copy pages after its own fork()", {Cause.PAGE_FAULT: ANY}),
    "logger-pipe": Expected(
        "blocked by the lock that novel_logger held, which waited for novel_reader to read, which slept",
        {Cause.BLOCKED: ("novel_logger", "novel_reader"), Cause.SLEEP: ("novel_reader",)},
    ),
    "printk": Expected(
        "interrupts off while novel_printer printed on the serial console; nobody is late on PREEMPT_RT",
        dict.fromkeys(INTERRUPTS_OFF, ("novel_printer",)),
    ),
    "udp-broadcast": Expected(
        "the network's softirq in novel_sender; on PREEMPT_RT its own send waits for novel_sender with softirqs off",
        {Cause.SOFTIRQ: ("NET",), Cause.SOFTIRQS_OFF: ("novel_sender",), Cause.BLOCKED: ("novel_sender",)},
    ),
    "mmap-lock": Expected(
        "its page fault waited for novel_mapper, which held the lock of the address space in mprotect()",
        {Cause.BLOCKED: ("novel_mapper",), Cause.PAGE_FAULT: ANY},
    ),
    "requeue": Expected(
        "blocked by novel_signaller, which held the lock for long after it signalled the condition",
        {Cause.BLOCKED: ("novel_signaller",)},
    ),
    "cpu-max": Expected(
        "it waited for the answer of novel_worker, which was throttled by its group's cpu.max",
        {Cause.THROTTLED: ANY, Cause.THROTTLED_OR_THREAD: ANY},
    ),
}
"""Decided and committed before the first run."""

FURTHER = {
    "sleepers": Expected(
        "the timers of many novel_sleeper threads expired in the same interrupt, before its own timer",
        {Cause.OTHER_TIMERS: ("hrtimer_wakeup",)},
    ),
    "perf-counters": Expected(
        "the switch from novel_counted took perf's counters off; sched_switch lies before that, the return behind it",
        {Cause.SCHEDULER: ANY, Cause.RETURN: ANY},
    ),
    "close-file": Expected(
        "its close() freed the pages of the file, at the latest on the way back to the program",
        {Cause.SYSTEM_CALL: ("close",), Cause.OWN_CODE_OR_KERNEL: ("close", "task work", "task_work")},
    ),
    "membarrier": Expected(
        "its membarrier() waited for a grace period of RCU, whose thread slept until the next tick",
        {
            Cause.SLEEP: ("rcu",),
            Cause.BLOCKED: ("rcu",),
            Cause.INTERRUPT_WAIT: ("rcu", "RCU"),
            Cause.SYSTEM_CALL: ("membarrier",),
        },
    ),
    "pty-worker": Expected(
        "novel_filter had the CPU, so that the kernel worker that passes the byte on could not run",
        {Cause.THREAD: ("novel_filter",)},
    ),
    "pi-chain": Expected(
        "novel_urgent had the other CPU, so that novel_second could not release the lock that novel_first waited for",
        {Cause.THREAD: ("novel_urgent",)},
    ),
    "vfork": Expected(
        "it waited in vfork() until novel_child, which closed descriptors, called exec()",
        {Cause.BLOCKED: ("novel_child",)},
    ),
    "frozen": Expected(
        "it waited for the answer of novel_worker, which was frozen until novel_freezer thawed the group",
        {
            Cause.SLEEP: ("novel_freezer",),
            Cause.BLOCKED: ("novel_freezer", "freez", "frozen"),
            Cause.THROTTLED: ("freez", "frozen"),
        },
    ),
    "deadline-budget": Expected(
        "it had used up its SCHED_DEADLINE budget, and waited for the next period",
        {Cause.THROTTLED: ("DEADLINE", "deadline", "budget", "runtime")},
    ),
    "moved": Expected(
        "novel_manager moved it to the other CPU, where novel_manager, which is more urgent, computed",
        {Cause.THREAD: ("novel_manager",), Cause.MIGRATION: ("novel_manager",)},
    ),
}
"""Of the further ten, likewise."""

THIRD = {
    "robust": Expected(
        "blocked by the lock that novel_owner held until it died",
        {Cause.BLOCKED: ("novel_owner",)},
    ),
    "record-lock": Expected(
        "novel_busy had the CPU, so that novel_holder could not release the file's lock",
        {Cause.THREAD: ("novel_busy",)},
    ),
    "shootdown": Expected(
        "its munmap() waited for the other CPU to flush its TLB, where novel_profiler had interrupts off",
        {
            Cause.SYSTEM_CALL: ("munmap",),
            Cause.OWN_CODE_OR_KERNEL: ("munmap", "TLB"),
            Cause.INTERRUPT_WAIT: ("TLB", "novel_profiler"),
            **dict.fromkeys(INTERRUPTS_OFF, ("novel_profiler",)),
        },
    ),
    "io-uring": Expected(
        "it waited for the write that the kernel's thread iou-wrk of its own ring did", {Cause.BLOCKED: ("iou-wrk",)}
    ),
    "herd": Expected(
        "interrupts off while novel_waker woke the waiters; on PREEMPT_RT its read waits for the lock of the eventfd",
        {**dict.fromkeys(INTERRUPTS_OFF, ("novel_waker",)), Cause.BLOCKED: ("novel_waker",)},
    ),
    "monitor": Expected(
        "its mmap() waited for novel_monitor, which held the lock of the address space to read smaps_rollup",
        {Cause.BLOCKED: ("novel_monitor",)},
    ),
    "signal-queue": Expected(
        "its handler of the queued signals",
        {Cause.SIGNAL_HANDLER: ANY, Cause.OWN_CODE_OR_KERNEL: ("signal", "handler", "SIG")},
    ),
    "nice": Expected("novel_cruncher, an ordinary thread like it, had the CPU", {Cause.THREAD: ("novel_cruncher",)}),
    "memory-high": Expected(
        "throttled by its group's memory.high, at the page fault that went above it",
        {
            Cause.THROTTLED: ("memory",),
            Cause.SLEEP: ("memory", "mem_cgroup", "page fault"),
            Cause.BLOCKED: ("memory", "mem_cgroup", "page fault"),
            Cause.INTERRUPT_WAIT: ("memory", "mem_cgroup"),
            Cause.PAGE_FAULT: ANY,
        },
    ),
    "perf-all": Expected(
        "the interrupt by which novel_profiler of the other CPU switched off the counters of this one",
        {
            Cause.HARDIRQ: (
                "call_function",
                "call function",
                "function call",
                "IPI",
                "remote_function",
                "novel_profiler",
            ),
            **dict.fromkeys(INTERRUPTS_OFF, ("call_function", "IPI", "novel_profiler")),
        },
    ),
}
"""Of the last ten, likewise."""

ALL_EXPECTED = EXPECTED | FURTHER | THIRD
OF_FURTHER = {kind: 2 if kind in FURTHER_ON_TWO_CPUS else 1 for kind in FURTHER}
OF_THIRD = {kind: 2 if kind in THIRD_ON_TWO_CPUS else 1 for kind in THIRD}
ITEMS: Mapping[str, tuple[System, Mapping[str, int]]] = {
    **{name: (SYSTEMS[name], dict.fromkeys(EXPECTED, 1)) for name in ("6.1-full", "6.1-rt")},
    "6.1-full-2-cpus": (SYSTEMS["6.1-full"], dict.fromkeys(ON_SECOND_CPU, 2)),
    **{f"further-{name}": (SYSTEMS[name], OF_FURTHER) for name in ("6.1-full", "6.1-rt")},
    **{f"third-{name}": (SYSTEMS[name], OF_THIRD) for name in ("6.1-full", "6.1-rt")},
}
"""Each with its system, and with the kinds and their numbers of CPUs."""


@dataclass(frozen=True)
class Event:
    """One activation with what disturbed it. found: None if the activation was in time, or is not in the trace."""

    truth: Disturbance
    activation: LateActivation
    found: TimeBudget | None

    @property
    def planted(self) -> bool:
        """Whether the disturbance alone makes the activation late."""
        end_ns = min(self.truth.end_ns, self.activation.due_ns + self.activation.latency_ns)
        return end_ns - max(self.truth.begin_ns, self.activation.due_ns) > LIMIT_NS

    @property
    def outcome(self) -> str:
        """Of a planted event: right, among, wrong, unexplained, or not in the trace."""
        if self.found is None:
            return "not in the trace"
        expected = ALL_EXPECTED[self.truth.kind]
        if expected.accepts(self.found.first):
            return "right"
        if self.found.first.cause is Cause.UNEXPLAINED:
            return "unexplained"
        return "among" if any(map(expected.accepts, self.found.by_cause)) else "wrong"


OUTCOMES = ("right", "among", "wrong", "unexplained", "not in the trace")


def read_events(folder: Path) -> list[Event]:
    """What a guest left of one kind."""
    record = open_record(folder / "record")
    activations, truth = read_victim((folder / "novel").read_text(), record.begin.origin_monotonic_ns)
    late = [each for each in activations if each.latency_ns > LIMIT_NS]
    budgets = {each.activation: each for each in explain_activations(record, late)}
    return [Event(one, each, budgets.get(each)) for one, each in zip(truth, activations, strict=True)]


def described(events: Sequence[Event]) -> dict[str, Any]:
    """What the file says of one kind."""
    planted = [each for each in events if each.planted]
    outcomes = Counter(each.outcome for each in planted)
    said = Counter(each.found.first.words() for each in planted if each.found)
    return {
        "events": len(events),
        "planted": len(planted),
        "late_without_it": sum(each.found is not None for each in events if not each.planted),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        "first_causes": dict(said.most_common()),
        "late_us": sorted(each.activation.latency_ns // 1000 for each in planted),
    }


def script(system: System, kind: str) -> str:
    """The guest's job: leaves the record /out/record and what the program says in /out/novel."""
    return f"""\
mount -t tracefs none /sys/kernel/tracing 2> /dev/null
{choice_of_model(system)}/agent run --warmup 100ms --samples {SAMPLES.get(kind, USUAL_SAMPLES)} \\
    --trace explain,calls_of=novel,buffer_kib=8192 -o /out/record & measures=$!
while ! [ -s /out/record ]; do usleep 20000; done
usleep 200000
/novel {kind} $(od -A n -t d8 -j 48 -N 8 /out/record | tr -d ' ') {EVENTS} > /out/novel || exit
wait $measures
"""


def measure_kind(system: System, kind: str, cpus: int) -> dict[str, Any]:
    """One kind in a guest of its own, or why it cannot be measured."""
    program = ProgramSources("novel", "the disturbers", ROOT / "bench" / "novel")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "out"
        try:
            files = {"/novel": build_program(program, system.architecture)}
            run_in_guest(system, script(system, kind), files, folder, cpus)
            return described(read_events(folder))
        except (RtproofError, OSError, ValueError) as error:
            return {"not_measured": str(error)}


def measure(name: str) -> dict[str, Any]:
    """The ten of a set on one system, or those of them that use its second CPU."""
    system, kinds = ITEMS[name]
    measured: dict[str, Any] = {}
    for kind, cpus in kinds.items():
        measured[kind] = measure_kind(system, kind, cpus)
        print(f"    {kind}: {measured[kind]}", flush=True)
    planted, right = (sum(kind.get(key, 0) for kind in measured.values()) for key in ("planted", "right"))
    return {"qemu": emulator(system), "planted": planted, "right_percent": percent(right, planted), "kinds": measured}


COLUMNS = ("events", "planted", "right", "among", "wrong", "unexplained")


def rows(name: str, one: Details) -> list[str]:
    """A row for each kind of the tables in docs/explain-measured.md."""
    return [
        f"| {name} | {kind} | {of.get('not_measured') or ' | '.join(str(of[key]) for key in COLUMNS)} |"
        for kind, of in one["kinds"].items()
    ]


PART = Part(
    goal="of disturbers that were written without knowledge of the rules the first cause is right in 90 %",
    items=lambda: list(ITEMS),
    measure=measure,
    figures=(Figure("right_percent", "first cause right", "%", of="planted"),),
    head="| item | kind | events | late by it | first right | among | wrong | unexplained |",
    rows=rows,
)
