# SPDX-License-Identifier: Apache-2.0
"""Guests in which the module rtproof_disturb makes the timer probe late, and what an explanation says of that.

A program, the victim, makes a thread of its own late by page faults, by locks and by sleeps. Each system is one kernel
with one preemption model. The guest's time is virtual: an instruction is a nanosecond.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from disturbances import (
    KINDS,
    NO_FAULT_ENDS,
    NO_FAULT_EVENTS,
    NOT_COUNTED,
    AlsoRight,
    Answer,
    Disturbance,
    answers,
    read_truth,
    read_victim,
)

from rtproof.agents.build import ProgramSources, build_agent, build_program
from rtproof.core.errors import UserError
from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation, explain, explain_activations
from rtproof.lab import kernel_catalogue
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary.measured_kernel import preemption_model
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine, emulator_version

LIMIT_NS = 20_000
SAMPLES = 3500
PATIENCE_S = 3600
MODULE = "rtproof_disturb"
VICTIM_ACTIVATIONS = 180
PERIOD_MS_OF_VICTIM = 4
PREEMPTED_BY_RT = ("hi-tasklet", "spin-lock-irqsave", "read-lock", "migrate-disable", "softirq-timer", "rcu-callback")
NEVER_LATE: dict[str, frozenset[str]] = {
    "none": frozenset(),
    "voluntary": frozenset(),
    "full": frozenset({"kernel-code", "migrate-disable"}),
    "rt": frozenset({"kernel-code", "bh-off", "tasklet", *PREEMPTED_BY_RT}),
}
"""The kinds that a kernel with a preemption model preempts, so that they make nobody late."""


BUILT_MODELS = (("PREEMPT_RT", "rt"), ("PREEMPT", "full"), ("PREEMPT_VOLUNTARY", "voluntary"), ("PREEMPT_NONE", "none"))
NEEDS_X86 = "this architecture has no NMI that its events show"
NEEDS_CPUIDLE = "Debian's kernel for armhf has no cpuidle"
NEEDS_POLICY = "before Linux 5.14 a module may not make a deadline task"


@dataclass(frozen=True)
class System:
    """A kernel of the catalogue with a preemption model.

    chosen: whether the guest has to choose that model. also_right: what is right because the kernel cannot tell better.
    not_made: why the guest does not make some kinds.
    """

    kernel: str
    model: str
    chosen: bool = False
    also_right: AlsoRight = frozenset()
    not_made: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Such as 6.1-none or 6.1-rt-arm64."""
        series = self.kernel.removeprefix("debian-").partition("@")[0].replace("-rt", "")
        number, _, architecture = series.partition("-")
        return "-".join(word for word in (number, self.model, architecture) if word)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the module and the victim make here."""
        return tuple(kind for kind in KINDS if kind not in dict(self.not_made))

    @property
    def never_late(self) -> frozenset[str]:
        return NEVER_LATE[self.model]

    @property
    def fifo_50(self) -> bool:
        """Whether a module may give its threads only this priority, which is not urgent here: Linux 5.9 to 5.13."""
        return self.kernel.startswith("debian-5.10")

    @property
    def architecture(self) -> str:
        return kernel_catalogue.catalogue_entry(self.kernel).arch


ON_ARM64 = (("nmi", NEEDS_X86),)
ON_ARMHF = (*ON_ARM64, ("idle-exit", NEEDS_CPUIDLE))
ON_5_10 = (("deadline-task", NEEDS_POLICY),)
ALL = (
    System("debian-6.1", "none", chosen=True),
    System("debian-6.1", "full", chosen=True),
    System("debian-6.1-rt", "rt"),
    System("debian-6.12", "none", chosen=True),
    System("debian-6.12", "full", chosen=True),
    System("debian-6.12-rt", "rt"),
    System("debian-6.1-arm64", "voluntary", also_right=NOT_COUNTED | NO_FAULT_EVENTS, not_made=ON_ARM64),
    System("debian-6.1-rt-arm64", "rt", also_right=NO_FAULT_EVENTS, not_made=ON_ARM64),
    System("debian-6.1-armhf", "voluntary", also_right=NOT_COUNTED | NO_FAULT_EVENTS, not_made=ON_ARMHF),
    System("debian-6.1-rt-armhf", "rt", also_right=NO_FAULT_EVENTS, not_made=ON_ARMHF),
    System("debian-5.10", "voluntary", also_right=NOT_COUNTED | NO_FAULT_ENDS, not_made=ON_5_10),
    System("debian-5.10-rt@5.10.223-1", "rt", also_right=NO_FAULT_ENDS, not_made=ON_5_10),
)
SYSTEMS = {system.name: system for system in ALL}


@dataclass(frozen=True)
class Disturbed:
    """What an explanation says of each disturbance. alone: late activations that no disturbance meets."""

    system: System
    record: Record
    explanation: Explanation
    of_victim: tuple[TimeBudget, ...]
    truth: list[Disturbance]
    met: list[Answer]
    alone: list[TimeBudget]

    @property
    def unexplained(self) -> float:
        """The share of the late time that is unexplained."""
        parts = [part for each in (*self.explanation.budgets, *self.of_victim) for part in each.parts]
        whole_ns = sum(part.length_ns for part in parts)
        return sum(part.length_ns for part in parts if part.cause.cause is Cause.UNEXPLAINED) / whole_ns

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that must make somebody late here."""
        return tuple(kind for kind in self.system.kinds if kind not in self.system.never_late)

    def of_kind(self, kind: str) -> list[Answer]:
        return [each for each in self.met if each.truth.kind == kind]


def choice_of_model(system: System) -> str:
    """Commands of a guest that choose the preemption model. Debugfs is mounted then."""
    mount = "mount -t debugfs none /sys/kernel/debug 2> /dev/null\n"
    return mount + (f"echo {system.model} > /sys/kernel/debug/sched/preempt || exit\n" if system.chosen else "")


def script(system: System, samples: int = SAMPLES) -> str:
    """The guest's job: leaves the record /out/record and the module's list /out/truth.

    The origin of CLOCK_MONOTONIC is the first i64 behind the run id and the origin of the date in the first chunk.
    """
    choice = ""
    if "nmi" in system.kinds:  # or the kernel prints that the NMI took long
        choice += "echo 10000000 > /sys/kernel/debug/x86/nmi_longest_ns || exit\n"
    urgency = "/victim urgent $(pidof rtproof_urgent) || exit\n" if system.fifo_50 else ""
    return f"""\
mount -t tracefs none /sys/kernel/tracing 2> /dev/null
{choice_of_model(system)}{choice}
/agent run --warmup 100ms --samples {samples} --trace explain,buffer_kib=8192 -o /out/record & measures=$!
while ! [ -s /out/record ]; do usleep 20000; done
usleep 300000
insmod /{MODULE}.ko period_ms=5 origin_ns=$(od -A n -t d8 -j 48 -N 8 /out/record | tr -d ' ') || exit
{urgency}wait $measures || exit
cat /proc/{MODULE} > /out/truth
rmmod {MODULE} || exit
/agent run --warmup 100ms --samples {VICTIM_ACTIVATIONS * PERIOD_MS_OF_VICTIM + 600} \\
    --trace explain,calls_of=victim,buffer_kib=8192 -o /out/beside & measures=$!
while ! [ -s /out/beside ]; do usleep 20000; done
usleep 200000
/victim $(od -A n -t d8 -j 48 -N 8 /out/beside | tr -d ' ') {VICTIM_ACTIVATIONS} > /out/victim || exit
wait $measures
"""


def read_disturbed(system: System, folder: Path) -> Disturbed:
    """Explain what a guest left. UserError if the kernel did not have the preemption model that the system names."""
    record = open_record(folder / "record")
    model = preemption_model(record).effective.value
    model = model or _built_model(system)
    if model.split()[:1] != [system.model]:  # 6.12 has "rt (lazy)"
        raise UserError(f"{system.name} was measured with the preemption model {model}")
    explanation = explain(record, LIMIT_NS)
    truth = read_truth((folder / "truth").read_text(), record.begin.origin_monotonic_ns)
    met, alone = answers(explanation.budgets, truth, system.also_right)
    of_victim, own_truth = _read_victim(folder)
    own_met, own_alone = answers(of_victim, own_truth, system.also_right)
    made = {each.kind for each in (*truth, *own_truth)}
    if made != set(system.kinds):
        raise UserError(f"{system.name}: there was {sorted(made)} and should be {sorted(system.kinds)}")
    return Disturbed(
        system, record, explanation, of_victim, [*truth, *own_truth], [*met, *own_met], [*alone, *own_alone]
    )


def _built_model(system: System) -> str:
    """The model in the kernel's configuration, which the guest itself does not have."""
    image = kernel_catalogue.fetch_kernel(system.kernel).image
    (config,) = image.parent.glob("config-*")
    options = config.read_text().splitlines()
    return next((model for option, model in BUILT_MODELS if f"CONFIG_{option}=y" in options), "")


def _read_victim(folder: Path) -> tuple[tuple[TimeBudget, ...], list[Disturbance]]:
    """The budgets of the victim's late activations, and what it did to itself."""
    record = open_record(folder / "beside")
    activations, truth = read_victim((folder / "victim").read_text(), record.begin.origin_monotonic_ns)
    late = [each for each in activations if each.latency_ns > LIMIT_NS]
    return explain_activations(record, late), truth


def run_in_guest(system: System, text: str, files: Mapping[str, Path], folder: Path, cpus: int = 1) -> None:
    """Run commands beside the agent and these files; the folder gets /out. UserError or TargetError if that fails."""
    machine = Machine(kernel_catalogue.fetch_kernel(system.kernel), cpus=cpus)
    agent = ("/agent", build_agent(system.architecture))
    outcome = run_job(machine, Job(text, (agent, *files.items())), folder, PATIENCE_S)
    if outcome.exit_code:
        raise UserError(f"the guest of {system.name} failed: {outcome.said.strip()[-300:]}")


def victim(architecture: str) -> Path:
    """The program that makes itself late. UserError if nothing here can build it."""
    return build_program(ProgramSources("victim", "the victim", Path(__file__).parent / "victim"), architecture)


def measure(system: System, folder: Path, samples: int = 2 * SAMPLES) -> Disturbed:
    """Disturb the timer probe in a guest. UserError or TargetError if the guest or its job fails."""
    module = kernel_catalogue.module_for_kernel(system.kernel, MODULE)
    files = {"/victim": victim(system.architecture), f"/{MODULE}.ko": module}
    run_in_guest(system, script(system, samples), files, folder)
    return read_disturbed(system, folder)


def emulator(system: System) -> str:
    """What QEMU says of its version."""
    return emulator_version(Machine(kernel_catalogue.fetch_kernel(system.kernel)))
