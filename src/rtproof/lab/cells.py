# SPDX-License-Identifier: Apache-2.0
"""A cell: one system, one load, one measurement in virtual time, and the run folder that it leaves.

In virtual time a cell is a function of what goes in: run again it gives the same bytes. What stands for a second
observation is therefore a cell with another shift, which moves the start of the measurement against everything else
that the guest does.
"""

import functools
import hashlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rtproof import loads, units
from rtproof.errors import RtproofError, TargetError, UserError
from rtproof.record import rundir
from rtproof.vm.guest import Job, Outcome, run_job
from rtproof.vm.machine import Machine
from rtproof.vm.places import lab_cache
from rtproof.vm.snapshot import open_snapshot

AGENT_LOG = "agent.log"
CONSOLE_LOG = "console.log"
PREEMPTION = "preempt"
"""What the guest's kernel says of its preemption model, where it says so."""
GUEST_AGENT = "/lab/rtproof-agent"
SHIFT_NS = 137_137_000
"""How much later than the one before a shift starts the agent; no multiple of a tick or of a usual period."""
WARMUP_SHIFT_NS = 37_037_000
"""How much longer it warms up, which moves the grid against the load too, since both start with the agent."""
SLOWEST = 40
"""Host seconds per virtual second after which a guest is given up (measured: 1 to 5)."""
BOOT_TIMEOUT_S = 300

REFUSED = 2
"""The agent's exit code for what it cannot do."""
REFUSAL = "the agent refused: "
MOST_SLUG = 200


@dataclass(frozen=True)
class System:
    """What is booted, a column of a comparison. kernel: as asked for; variant: its preemption and what else is new."""

    kernel: str
    variant: str
    machine: Machine

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.variant}".strip()


@dataclass(frozen=True)
class Load:
    """What disturbs, a row of a comparison. loads: texts for the agent's --load, none for idle."""

    name: str
    loads: tuple[str, ...]


IDLE = Load("idle", ())


def parse_load(text: str) -> Load:
    """A load as ``rtproof run`` takes it, several at once joined by +, or idle."""
    if text == IDLE.name:
        return IDLE
    names = tuple(part.strip() for part in text.split("+"))
    if not all(names):
        raise UserError(f"{text!r} is not a load: write a name, several joined by + (dd+net), or idle")
    if IDLE.name in names:
        raise UserError(f"{text!r} is not a load: idle stands alone")
    return Load("+".join(names), tuple(load for name in names for load in _of_agent(name)))


def _of_agent(name: str) -> tuple[str, ...]:
    """Loads of the agent that a load is made of: a guest has no other programs."""
    words = loads.resolve([name])
    if "--program" in words[::2]:
        raise UserError(f"the load {name} runs a program of the target's, and a guest has none: take another")
    return words[1::2]


@dataclass(frozen=True)
class Setting:
    """What the agent does in every cell of a comparison.

    more: further arguments of the agent; limits_ns: above which the record tells of each activation; setup: lines for
    the guest's shell, beforehand.
    """

    probe: str = "timer"
    period_ns: int = 1_000_000
    duration_ns: int = 2_000_000_000
    warmup_ns: int = 1_000_000_000
    more: tuple[str, ...] = ()
    limits_ns: tuple[int, ...] = ()
    setup: tuple[str, ...] = ()

    def arguments(self, load: Load, shift: int) -> tuple[str, ...]:
        """The agent's, without where it writes."""
        lengths = {
            "--period": self.period_ns,
            "--duration": self.duration_ns,
            "--warmup": self.warmup_ns + shift * WARMUP_SHIFT_NS,
        }
        words = [word for name, ns in lengths.items() for word in (name, units.format_duration(ns))]
        limits = [word for each in self.limits_ns for word in ("--limit", units.format_duration(each))]
        disturbing = [word for each in load.loads for word in ("--load", each)]
        return ("--probe", self.probe, *words, *self.more, *limits, *disturbing)

    def virtual_ns(self, shift: int) -> int:
        """How long a cell takes in its guest, but for starting and ending."""
        return shift * (SHIFT_NS + WARMUP_SHIFT_NS) + self.warmup_ns + self.duration_ns


@dataclass(frozen=True)
class Cell:
    """agent: program file of this host for the architecture of the system."""

    system: System
    load: Load
    setting: Setting
    agent: Path
    shift: int = 0

    @property
    def name(self) -> str:
        shifted = f", shift {self.shift}" if self.shift else ""
        return f"{self.system.name}, {self.load.name}{shifted}"

    @property
    def slug(self) -> str:
        """A name for a folder."""
        words = re.sub(r"[^A-Za-z0-9.=+-]+", "_", f"{self.system.name}__{self.load.name}")
        return f"{words[:MOST_SLUG]}__{self.shift}"

    def job(self) -> Job:
        return Job(_script(self), ((GUEST_AGENT, self.agent),))

    def key(self) -> str:
        """Changes when anything does that decides the guest's bytes."""
        job = self.job()
        files = [f"{place} {_digest(file)}" for place, file in job.files]
        whole = "\n".join([identity(self.system.machine), job.script, *files])
        return hashlib.sha256(whole.encode()).hexdigest()


def _script(cell: Cell) -> str:
    """For the guest's shell. The preemption model is asked for afterwards, so that nothing is disturbed."""
    arguments = shlex.join(cell.setting.arguments(cell.load, cell.shift))
    wait_us = cell.shift * SHIFT_NS // 1_000
    return "\n".join(
        [
            *cell.setting.setup,
            f"usleep {wait_us}",
            f"{GUEST_AGENT} run -o /out/{rundir.RECORD_NAME} {arguments} 2>/out/{AGENT_LOG}",
            "code=$?",
            f"cat /out/{AGENT_LOG} >&2",
            "mount -t debugfs none /sys/kernel/debug 2>/dev/null",
            f"cat /sys/kernel/debug/sched/preempt >/out/{PREEMPTION} 2>/dev/null || rm -f /out/{PREEMPTION}",
            "exit $code",
            "",
        ]
    )


@functools.cache
def identity(machine: Machine) -> str:
    """Of a machine; packing its first file system takes a while."""
    return machine.identity


@functools.cache
def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Cost:
    """Of a cell: seconds of this host and of the guest, the boot not counted."""

    host_s: float
    virtual_s: float


def boot(machine: Machine) -> None:
    """Make the machine's snapshot, from which its cells start, unless it is there."""
    log = lab_cache() / "boots" / f"{identity(machine)}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    state, _ = open_snapshot(machine, identity(machine), log, BOOT_TIMEOUT_S)
    state.close()


def measure(infos: Mapping[str, rundir.RunInfo], cell: Cell, folder: Path) -> Cost:
    """Run the cell; the folder becomes a run folder. TargetError if the agent did not measure as asked.

    infos: what is written down about the run, by architecture.
    """
    rundir.write_info(folder, infos[cell.system.machine.kernel.arch])
    timeout_s = BOOT_TIMEOUT_S + SLOWEST * cell.setting.virtual_ns(cell.shift) / 1e9
    outcome = run_job(cell.system.machine, cell.job(), folder, timeout_s)
    if outcome.exit_code or not (folder / rundir.RECORD_NAME).exists():
        raise _not_measured(outcome)
    return Cost(outcome.host_seconds, outcome.virtual_seconds)


def _not_measured(outcome: Outcome) -> RtproofError:
    """The agent's last words, which are enough where it refused what was asked."""
    said = outcome.said.strip().splitlines()
    why = said[-1].removeprefix("rtproof-agent: ") if said else f"exit code {outcome.exit_code}"
    if said and outcome.exit_code == REFUSED:
        return UserError(f"{REFUSAL}{why}")
    return TargetError(f"the agent did not measure ({why}); the console's log is {outcome.console}")
