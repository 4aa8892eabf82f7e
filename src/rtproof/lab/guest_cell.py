# SPDX-License-Identifier: Apache-2.0
"""One cell of the lab, a system under a load, measured in a guest in virtual time, and the store of finished cells."""

import functools
import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rtproof import loads
from rtproof.core import units
from rtproof.core.errors import TargetError, UserError
from rtproof.record import run_folder
from rtproof.vm.cache_folders import (
    StoredFolder,
    bound_cache,
    discard,
    file_sha256,
    find_stored,
    lab_cache,
    mark_used,
    obtain_folder,
    use_cache,
)
from rtproof.vm.guest import Job, open_snapshot, run_job
from rtproof.vm.machine import Machine

AGENT_LOG = "agent.log"
CONSOLE_LOG = "console.log"
PREEMPTION_FILE = "preempt"
"""File with the preemption model that the guest's kernel names. It is missing if the kernel names none."""
GUEST_AGENT = "/lab/rtproof-agent"
SHIFT_NS = 137_137_000
"""Each shift starts the agent this much later than the shift before. No multiple of a tick or of a usual period."""
WARMUP_SHIFT_NS = 37_037_000
"""Each shift warms up this much longer. The load starts with the agent, so due times move against it."""
SLOWEST_GUEST_RATIO = 40
"""A guest that needs more host seconds per virtual second than this is ended (measured: 1 to 5)."""
SLOWEST_TURNS_RATIO = 400
"""The same for several processors (measured on a busy host: 7 to 40, the most with 8 processors and a pace of 1 us)."""
BOOT_TIMEOUT_S = 300

REFUSED_CODE = 2
SETUP_FAILED_CODE = 3
"""The agent's exit code if it refuses what was asked."""
REFUSAL_PREFIX = "the agent refused: "
MOST_SLUG_CHARACTERS = 200


@dataclass(frozen=True)
class GuestSystem:
    """A system to boot: a column of a comparison. variant: the preemption model and what else differs."""

    kernel: str
    variant: str
    machine: Machine

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.variant}".strip()


@dataclass(frozen=True)
class GuestLoad:
    """A load: a row of a comparison. ``loads``: values of the agent's --load; none for idle."""

    name: str
    loads: tuple[str, ...]


IDLE_LOAD = GuestLoad("idle", ())


def parse_guest_load(text: str) -> GuestLoad:
    """Parse a load: one as for ``rtproof run``, several joined by +, or idle. UserError if it is none of these."""
    if text == IDLE_LOAD.name:
        return IDLE_LOAD
    names = tuple(part.strip() for part in text.split("+"))
    if not all(names):
        raise UserError(f"{text!r} is not a load: write a name, several joined by + (dd+net), or idle")
    if IDLE_LOAD.name in map(loads.load_name, names):
        raise UserError(f"{text!r} is not a load: idle cannot be joined with other loads or bound to CPUs")
    asked: list[str] = []
    for name in names:
        words = loads.resolve([name])
        if "--program" in words[::2]:
            raise UserError(f"the load {name} runs a program of the target, and a guest has none: use another load")
        asked += words[1::2]
    return GuestLoad("+".join(names), tuple(asked))


@dataclass(frozen=True)
class CellSetting:
    """What the agent does in every cell of a comparison.

    limits_ns: the record keeps each activation above one of these. setup: lines for the guest's shell, run before the
    agent. setup_must_work: a line that fails ends the cell.
    """

    probe: str = "timer"
    period_ns: int = 1_000_000
    duration_ns: int = 2_000_000_000
    warmup_ns: int = 1_000_000_000
    more_arguments: tuple[str, ...] = ()
    limits_ns: tuple[int, ...] = ()
    setup: tuple[str, ...] = ()
    setup_must_work: bool = False

    def setup_lines(self) -> tuple[str, ...]:
        """What the guest's shell is told before it starts the agent.

        A line that must work ends the job with a sentence. Another shell reads it first without running it, because a
        syntax error ends the shell that meets it.
        """
        if not self.setup_must_work:
            return self.setup
        lines = []
        for line in self.setup:
            sentence, quoted = shlex.quote(f"the setup failed: {' '.join(line.split())}"), shlex.quote(line)
            failed = f"{{ echo {sentence} >&2; exit {SETUP_FAILED_CODE}; }}"
            lines.append(f"sh -n -c {quoted} && eval {quoted} || {failed}")
        return tuple(lines)

    def arguments(self, load: GuestLoad, shift: int) -> tuple[str, ...]:
        """The agent's arguments, except those that say where to write."""
        lengths = {
            "--period": self.period_ns,
            "--duration": self.duration_ns,
            "--warmup": self.warmup_ns + shift * WARMUP_SHIFT_NS,
        }
        words = [word for name, ns in lengths.items() for word in (name, units.format_duration(ns))]
        limits = [word for each in self.limits_ns for word in ("--limit", units.format_duration(each))]
        disturbing = [word for each in load.loads for word in ("--load", each)]
        return ("--probe", self.probe, *words, *self.more_arguments, *limits, *disturbing)


@dataclass(frozen=True)
class GuestCell:
    """A cell to measure. ``agent``: program file on this host, for the architecture of the system."""

    system: GuestSystem
    load: GuestLoad
    setting: CellSetting
    agent: Path
    shift: int = 0

    @property
    def name(self) -> str:
        shifted = f", shift {self.shift}" if self.shift else ""
        return f"{self._system_words}, {self.load.name}{shifted}"

    @property
    def _system_words(self) -> str:
        cpus = self.system.machine.cpus
        return f"{self.system.name}, {cpus} processors" if cpus > 1 else self.system.name

    @property
    def slug(self) -> str:
        words = re.sub(r"[^A-Za-z0-9.=+@-]+", "_", f"{self._system_words}__{self.load.name}")
        return f"{words[:MOST_SLUG_CHARACTERS]}__{self.shift}"

    def job(self) -> Job:
        return Job(_guest_script(self.setting, self.load, self.shift), ((GUEST_AGENT, self.agent),))

    def key(self) -> str:
        """Key of the store. It changes when anything changes on which the guest's bytes depend."""
        job = self.job()
        files = [f"{place} {_file_digest(file)}" for place, file in job.files]
        whole = "\n".join([machine_identity(self.system.machine), job.script, *files])
        return hashlib.sha256(whole.encode()).hexdigest()


def job_digest(setting: CellSetting, load: GuestLoad, shift: int) -> str:
    return hashlib.sha256(_guest_script(setting, load, shift).encode()).hexdigest()


def _guest_script(setting: CellSetting, load: GuestLoad, shift: int) -> str:
    """The job for the guest's shell. It reads the preemption model after measuring, to disturb nothing."""
    lines = (
        *setting.setup_lines(),
        f"usleep {shift * SHIFT_NS // 1_000}",
        f"{GUEST_AGENT} run -o /out/{run_folder.RECORD_NAME} {shlex.join(setting.arguments(load, shift))} "
        f"2>/out/{AGENT_LOG}",
        "code=$?",
        f"cat /out/{AGENT_LOG} >&2",
        "mount -t debugfs none /sys/kernel/debug 2>/dev/null",
        f"cat /sys/kernel/debug/sched/preempt >/out/{PREEMPTION_FILE} 2>/dev/null || rm -f /out/{PREEMPTION_FILE}",
        "exit $code",
    )
    return "".join(f"{line}\n" for line in lines)


@functools.cache
def machine_identity(machine: Machine) -> str:
    """The identity of a machine. It is cached, because packing the first file system takes a while."""
    return machine.identity


@functools.cache
def _file_digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class CellCost:
    """How long a cell took: seconds of this host, and seconds of the guest without the boot.

    differing: how many of its runs gave other bytes than the two that agree, or than the first if no two do. unguarded:
    how many cells were run without the guard of virtual time.
    """

    host_s: float
    virtual_s: float
    runs: int = 1
    differing: int = 0
    unguarded: int = 0

    @property
    def none_agree(self) -> bool:
        """Of one cell: whether each of its runs gave other bytes."""
        return self.runs > 1 and self.differing == self.runs - 1

    @property
    def note(self) -> str:
        """Of one cell: whether the guard of virtual time was on, and how many runs differed."""
        guard = f"The guard of virtual time was {'off' if self.unguarded else 'on'}."
        if self.none_agree:
            return f"{guard} No two of {self.runs} runs gave the same bytes."
        if self.runs > 1:
            return f"{guard} Two of {self.runs} runs gave these bytes, and {self.differing} gave others."
        return guard


def boot_guest(machine: Machine) -> None:
    """Make the machine's snapshot, from which its cells start, unless it exists."""
    log = lab_cache() / "boots" / f"{machine.boot_identity}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    open_snapshot(machine, machine.boot_identity, log, BOOT_TIMEOUT_S)[0].close()


MOST_RUNS = 6
"""A cell that has not given the same bytes twice in so many runs is INVALID."""


def measure_guest_cell(infos: Mapping[str, run_folder.RunInfo], cell: GuestCell, folder: Path) -> CellCost:
    """Measure the cell. The folder becomes a run folder.

    TargetError if the agent did not measure, UserError if it refused. infos: the description of the run, by
    architecture. With several processors, and without the guard of virtual time, the cell is run until two runs have
    the same record, because a turn ends at any timer of QEMU that follows the host's clock (``NO_HOST_TIMERS``). If
    none of MOST_RUNS agree, the record of the first is kept.
    """
    costs: list[CellCost] = []
    digests: list[str] = []
    agree = False
    while not agree and len(costs) < MOST_RUNS:
        place = folder / f"run-{len(costs)}"
        place.mkdir()
        costs.append(_run_cell(cell, place))
        digests.append(file_sha256(place / run_folder.RECORD_NAME))
        needs_two = cell.system.machine.takes_turns or costs[0].unguarded
        agree = not needs_two or digests.count(digests[-1]) > 1
    for path in (folder / f"run-{len(costs) - 1 if agree else 0}").iterdir():
        path.rename(folder / path.name)
    for number in range(len(costs)):
        shutil.rmtree(folder / f"run-{number}")
    cost = CellCost(
        host_s=sum(each.host_s for each in costs),
        virtual_s=sum(each.virtual_s for each in costs),
        runs=len(costs),
        differing=len(costs) - len([each for each in digests if each == digests[-1]]),
        unguarded=max(each.unguarded for each in costs),
    )
    info = infos[cell.system.machine.kernel.arch]
    run_folder.write_run_info(folder, msgspec.structs.replace(info, note=f"{info.note} {cost.note}".strip()))
    return cost


def longest_host_s(cell: GuestCell) -> float:
    """How many seconds of this host a run of a cell may take, and again as many for its boot."""
    ratio = SLOWEST_TURNS_RATIO if cell.system.machine.takes_turns else SLOWEST_GUEST_RATIO
    setting = cell.setting
    virtual_ns = cell.shift * (SHIFT_NS + WARMUP_SHIFT_NS) + setting.warmup_ns + setting.duration_ns
    return BOOT_TIMEOUT_S + ratio * virtual_ns / 1e9


def _run_cell(cell: GuestCell, folder: Path) -> CellCost:
    """Run a cell once. If the agent refused, a UserError without the console's log: its last line says enough."""
    outcome = run_job(cell.system.machine, cell.job(), folder, longest_host_s(cell))
    if not outcome.exit_code and (folder / run_folder.RECORD_NAME).exists():
        return CellCost(outcome.host_seconds, outcome.virtual_seconds, unguarded=int(not outcome.guarded))
    said = outcome.said.strip().splitlines()
    why = said[-1].removeprefix("rtproof-agent: ") if said else f"exit code {outcome.exit_code}"
    if said and outcome.exit_code == REFUSED_CODE:
        raise UserError(f"{REFUSAL_PREFIX}{why}")
    raise TargetError(f"the agent did not measure ({why}); the console's log is {outcome.console}")


class CellStore:
    """A folder with one folder for each cell, named by its key, as ``obtain_folder`` keeps them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, key: str) -> Path:
        return self.root / key

    def find(self, key: str) -> CellCost | None:
        """The cost of the cell with this key. None if it is not stored, has changed, or no two of its runs agreed."""
        stored = find_stored(self.folder(key)) if mark_used(self.folder(key)) else None
        cost = _cost_of(stored) if stored else None
        return None if cost is None or cost.none_agree else cost

    def make(self, key: str, fill: Callable[[Path], CellCost]) -> CellCost:
        """The cost of the cell with this key, measured by ``fill`` unless the store has it.

        If ``fill`` fails, its files stay for their logs, in another folder, until the next attempt.
        """

        def measured(part: Path) -> dict[str, str]:
            return {COST: msgspec.json.encode(fill(part)).decode()}

        place = self.folder(key)
        unusable = find_stored(place) is not None and self.find(key) is None
        cost = _cost_of(obtain_folder(place, measured, unusable, keep_failed=True))
        assert cost
        return cost

    def remove(self, key: str) -> None:
        discard(self.folder(key))


COST = "cost"
"""The fact of a stored cell that tells its CellCost, as JSON."""


def _cost_of(stored: StoredFolder) -> CellCost | None:
    """The cost of a stored cell; None if the list of its files was changed by hand."""
    try:
        return msgspec.json.decode(stored.facts.get(COST, ""), type=CellCost)
    except (msgspec.DecodeError, TypeError):
        return None


def cell_store_folder() -> Path:
    return lab_cache() / "cells"


MOST_CELL_BYTES = 1 << 30
"""Disk space for all finished cells together. It holds many thousand cells of a few seconds each."""
BOUNDED_PARTS = {"vmlinux": 1 << 30, "modules": 256 << 20, "boots": 64 << 20}
"""Disk space for parts of the cache that are made anew when they are missing: unpacked kernels, modules, boot logs.

Kernels have no bound: the archive may have dropped them.
"""


def cell_store() -> CellStore:
    """The store of finished cells, cut to its size before the first use. Cells stay until this process ends."""
    root = cell_store_folder()

    def cut() -> None:
        bound_cache(root, MOST_CELL_BYTES)
        for part, most_bytes in BOUNDED_PARTS.items():
            bound_cache(lab_cache() / part, most_bytes)

    use_cache(root, cut)
    return CellStore(root)
