# SPDX-License-Identifier: Apache-2.0
"""Twice ten disturbers whose authors did not know the rules of the explanation, each in guests in virtual time.

Which first causes are right was decided before the first run. The program in novel/ makes a real-time thread late, and
says when. The first ten are in novel.c, the further ten in further.c.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from disturbances import Disturbance, read_victim
from disturbed_guests import LIMIT_NS, System, emulator, machine_of
from explain_parts import ROOT, Details, Figure, Items, Part, percent

from rtproof.agents.build import ProgramSources, build_agent, build_program
from rtproof.core.errors import RtproofError, UserError
from rtproof.explain.budget import LateActivation, TimeBudget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import explain_activations
from rtproof.record.reading import open_record
from rtproof.vm.guest import Job, run_job

EVENTS = 30
SYSTEMS = {
    "6.1-full": System("debian-6.1", "full", chosen=True),
    "6.1-rt": System("debian-6.1-rt", "rt"),
    "6.1-full-2-cpus": System("debian-6.1", "full", chosen=True),
}
CPUS = {"6.1-full-2-cpus": 2}
"""On the second CPU are the programs of these kinds, all but the real-time thread."""
ON_SECOND_CPU = ("stopped", "logger-pipe", "mmap-lock", "requeue", "cpu-max")
FURTHER_SYSTEMS = ("6.1-full", "6.1-rt")
FURTHER_ON_TWO_CPUS = ("membarrier", "pi-chain", "frozen", "moved")
SAMPLES = {"cpu-max": 5600, "membarrier": 5600}
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
    "fifo-peer": Expected(
        "novel_peer, a thread of the same priority, had the CPU",
        {Cause.THREAD: ("novel_peer",)},
    ),
    "stopped": Expected(
        "it was stopped by SIGSTOP of novel_stopper, until novel_stopper sent SIGCONT",
        {Cause.BLOCKED: ("novel_stopper", "SIGSTOP", "SIGCONT"), Cause.SLEEP: ("novel_stopper",)},
    ),
    "poll-rounding": Expected(
        "it slept in poll() until its own timer, beyond the due time",
        {Cause.SLEEP: ANY},
    ),
    "fork-cow": Expected(
        "page faults that copy pages after its own fork()",
        {Cause.PAGE_FAULT: ANY},
    ),
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

ALL_EXPECTED = EXPECTED | FURTHER


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
    choice = f"echo {system.model} > /sys/kernel/debug/sched/preempt || exit\n" if system.chosen else ""
    return f"""\
mount -t tracefs none /sys/kernel/tracing 2> /dev/null
mount -t debugfs none /sys/kernel/debug 2> /dev/null
{choice}/agent run --warmup 100ms --samples {SAMPLES.get(kind, USUAL_SAMPLES)} \\
    --trace explain,calls_of=novel,buffer_kib=8192 -o /out/record & measures=$!
while ! [ -s /out/record ]; do usleep 20000; done
usleep 200000
/novel {kind} $(od -A n -t d8 -j 48 -N 8 /out/record | tr -d ' ') {EVENTS} > /out/novel || exit
wait $measures
"""


def measure_kind(system: System, kind: str, folder: Path, cpus: int = 1) -> dict[str, Any]:
    """One kind in a guest of its own. UserError or TargetError if the guest or its job fails."""
    program = ProgramSources("novel", "the disturbers", ROOT / "bench" / "novel")
    files = (("/agent", build_agent(system.architecture)), ("/novel", build_program(program, system.architecture)))
    outcome = run_job(replace(machine_of(system), cpus=cpus), Job(script(system, kind), files), folder)
    if outcome.exit_code:
        raise UserError(f"the guest of {system.name} failed: {outcome.said.strip()[-300:]}")
    return described(read_events(folder))


def measure(name: str, kinds: Mapping[str, int]) -> dict[str, Any]:
    """These kinds on one system, each with its number of CPUs. A kind that cannot be measured says why."""
    system, measured = SYSTEMS[name], dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder:
        for kind, cpus in kinds.items():
            try:
                measured[kind] = measure_kind(system, kind, Path(folder) / kind, cpus)
            except (RtproofError, OSError, ValueError) as error:
                measured[kind] = {"not_measured": str(error)}
            print(f"    {kind}: {measured[kind]}", flush=True)
    return {"kernel": system.kernel, "preemption": system.model, "qemu": emulator(system), "kinds": measured}


def measure_first(name: str) -> dict[str, Any]:
    """The first ten on one system, or those of them that use its second CPU."""
    cpus = CPUS.get(name, 1)
    return measure(name, dict.fromkeys(EXPECTED if cpus == 1 else ON_SECOND_CPU, cpus))


def measure_further(name: str) -> dict[str, Any]:
    """The further ten on one system."""
    return measure(name, {kind: 2 if kind in FURTHER_ON_TWO_CPUS else 1 for kind in FURTHER})


TABLE_HEAD = """\
| system | kind | events | late by it | first right | among | wrong | unexplained |
|---|---|---:|---:|---:|---:|---:|---:|"""

COLUMNS = ("events", "planted", "right", "among", "wrong", "unexplained")


def table_rows(name: str, one: Details) -> list[str]:
    """The system's rows of the table in docs/explain.md."""
    rows = []
    for kind, of in one["kinds"].items():
        told = [str(of[key]) for key in COLUMNS] if "events" in of else [of["not_measured"]]
        rows.append(f"| {name} | {kind} | {' | '.join(told)} |")
    return rows


def part_figures(items: Items) -> list[Figure]:
    """Of each system: how often the first cause was right."""
    figures = []
    for name, one in items.items():
        kinds = [of for of in one["kinds"].values() if "events" in of]
        planted, right = sum(of["planted"] for of in kinds), sum(of["right"] for of in kinds)
        figures.append(Figure(name, "first cause right", percent(right, planted), "%", planted))
    return figures


def table(items: Items) -> list[str]:
    return ["", TABLE_HEAD, *(row for name, one in items.items() for row in table_rows(name, one))]


PART = Part(
    asked="1: the first cause of disturbers that were written without knowledge of the rules",
    items=lambda: list(SYSTEMS),
    measure=measure_first,
    figures=part_figures,
    lines=table,
)
FURTHER_PART = replace(
    PART,
    asked="1: the first cause of further disturbers, whose author did not know the rules of the explanation either",
    items=lambda: FURTHER_SYSTEMS,
    measure=measure_further,
)
