# SPDX-License-Identifier: Apache-2.0
"""One cell of the lab: a system under a load, measured in a guest in virtual time; and the store of finished cells.

A cell is stored by what went into it: whole or not at all. A damaged one is made again.
"""

import functools
import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rtproof import loads
from rtproof.core import units
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.lab.stored_folders import bound_cache, enrol_user, mark_used
from rtproof.record import run_folder
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.guest import Job, JobOutcome, open_snapshot, run_job
from rtproof.vm.machine import Machine

AGENT_LOG = "agent.log"
CONSOLE_LOG = "console.log"
PREEMPTION_FILE = "preempt"
"""What the guest's kernel says of its preemption model, where it says so."""
GUEST_AGENT = "/lab/rtproof-agent"
SHIFT_NS = 137_137_000
"""Each shift starts the agent this much later than the one before. No multiple of a tick or of a usual period."""
WARMUP_SHIFT_NS = 37_037_000
"""How much longer it warms up, which moves the grid against the load too, since both start with the agent."""
SLOWEST_GUEST_RATIO = 40
"""Host seconds per virtual second after which a guest is given up (measured: 1 to 5)."""
BOOT_TIMEOUT_S = 300

REFUSED_CODE = 2
"""The agent's exit code for what it cannot do."""
REFUSAL_PREFIX = "the agent refused: "
MOST_SLUG_CHARACTERS = 200


@dataclass(frozen=True)
class GuestSystem:
    """A system to boot, a column of a comparison. kernel: as named; variant: its preemption and what else is new."""

    kernel: str
    variant: str
    machine: Machine

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.variant}".strip()


@dataclass(frozen=True)
class GuestLoad:
    """A load: a row of a comparison. loads: texts for the agent's --load, none for idle."""

    name: str
    loads: tuple[str, ...]


IDLE_LOAD = GuestLoad("idle", ())


def parse_guest_load(text: str) -> GuestLoad:
    """A load as ``rtproof run`` takes it, several at once joined by +, or idle."""
    if text == IDLE_LOAD.name:
        return IDLE_LOAD
    names = tuple(part.strip() for part in text.split("+"))
    if not all(names):
        raise UserError(f"{text!r} is not a load: write a name, several joined by + (dd+net), or idle")
    if IDLE_LOAD.name in names:
        raise UserError(f"{text!r} is not a load: idle stands alone")
    return GuestLoad("+".join(names), tuple(load for name in names for load in _agent_load_names(name)))


def _agent_load_names(name: str) -> tuple[str, ...]:
    """Loads of the agent that a load is made of: a guest has no other programs."""
    words = loads.resolve([name])
    if "--program" in words[::2]:
        raise UserError(f"the load {name} runs a program of the target's, and a guest has none: take another")
    return words[1::2]


@dataclass(frozen=True)
class CellSetting:
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

    def arguments(self, load: GuestLoad, shift: int) -> tuple[str, ...]:
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
class GuestCell:
    """agent: program file of this host for the architecture of the system."""

    system: GuestSystem
    load: GuestLoad
    setting: CellSetting
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
        return f"{words[:MOST_SLUG_CHARACTERS]}__{self.shift}"

    def job(self) -> Job:
        return Job(_guest_script(self), ((GUEST_AGENT, self.agent),))

    def key(self) -> str:
        """Key of the store: it changes when anything changes that decides the guest's bytes."""
        job = self.job()
        files = [f"{place} {_file_digest(file)}" for place, file in job.files]
        whole = "\n".join([machine_identity(self.system.machine), job.script, *files])
        return hashlib.sha256(whole.encode()).hexdigest()


def _guest_script(cell: GuestCell) -> str:
    """For the guest's shell. The preemption model is asked for afterwards, so that nothing is disturbed."""
    arguments = shlex.join(cell.setting.arguments(cell.load, cell.shift))
    wait_us = cell.shift * SHIFT_NS // 1_000
    return "\n".join(
        [
            *cell.setting.setup,
            f"usleep {wait_us}",
            f"{GUEST_AGENT} run -o /out/{run_folder.RECORD_NAME} {arguments} 2>/out/{AGENT_LOG}",
            "code=$?",
            f"cat /out/{AGENT_LOG} >&2",
            "mount -t debugfs none /sys/kernel/debug 2>/dev/null",
            f"cat /sys/kernel/debug/sched/preempt >/out/{PREEMPTION_FILE} 2>/dev/null || rm -f /out/{PREEMPTION_FILE}",
            "exit $code",
            "",
        ]
    )


@functools.cache
def machine_identity(machine: Machine) -> str:
    """Identity of a machine, kept because packing its first file system takes a while."""
    return machine.identity


@functools.cache
def _file_digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class CellCost:
    """What a cell took: seconds of this host and of the guest, without the boot."""

    host_s: float
    virtual_s: float


def boot_guest(machine: Machine) -> None:
    """Make the machine's snapshot, from which its cells start, unless it is there."""
    log = lab_cache() / "boots" / f"{machine_identity(machine)}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    state, _ = open_snapshot(machine, machine_identity(machine), log, BOOT_TIMEOUT_S)
    state.close()


def measure_guest_cell(infos: Mapping[str, run_folder.RunInfo], cell: GuestCell, folder: Path) -> CellCost:
    """Run the cell; the folder becomes a run folder. TargetError if the agent did not measure as asked.

    infos: what is written down about the run, by architecture.
    """
    run_folder.write_run_info(folder, infos[cell.system.machine.kernel.arch])
    timeout_s = BOOT_TIMEOUT_S + SLOWEST_GUEST_RATIO * cell.setting.virtual_ns(cell.shift) / 1e9
    outcome = run_job(cell.system.machine, cell.job(), folder, timeout_s)
    if outcome.exit_code or not (folder / run_folder.RECORD_NAME).exists():
        raise _not_measured(outcome)
    return CellCost(outcome.host_seconds, outcome.virtual_seconds)


def _not_measured(outcome: JobOutcome) -> RtproofError:
    """The agent's last words, which are enough where it refused what was asked."""
    said = outcome.said.strip().splitlines()
    why = said[-1].removeprefix("rtproof-agent: ") if said else f"exit code {outcome.exit_code}"
    if said and outcome.exit_code == REFUSED_CODE:
        return UserError(f"{REFUSAL_PREFIX}{why}")
    return TargetError(f"the agent did not measure ({why}); the console's log is {outcome.console}")


CELL_MANIFEST = "cell.json"


class _CellManifest(msgspec.Struct, frozen=True):
    """files: SHA-256 of each file beside it."""

    host_s: float
    virtual_s: float
    files: dict[str, str]


@dataclass(frozen=True)
class StoredCell:
    """A finished cell. folder: of the cache, not to be written to; fresh: made now and not found."""

    folder: Path
    cost: CellCost
    fresh: bool


@dataclass(frozen=True)
class CellStore:
    """A folder with one folder for each cell, named by its key."""

    root: Path

    def find(self, key: str) -> StoredCell | None:
        """The cell of that key, if it is there and none of its bytes has changed."""
        folder = self.root / key
        if not mark_used(folder):
            return None
        try:
            manifest = msgspec.json.decode((folder / CELL_MANIFEST).read_bytes(), type=_CellManifest)
            whole = manifest.files == _file_digests(folder)
        except (OSError, msgspec.DecodeError):
            return None
        return StoredCell(folder, CellCost(manifest.host_s, manifest.virtual_s), fresh=False) if whole else None

    def make(self, key: str, fill: Callable[[Path], CellCost]) -> StoredCell:
        """The cell of that key, made if need be. What a failure leaves stays beside, for its logs, until the next."""
        found = self.find(key)
        return found or self._make(key, fill)

    def _make(self, key: str, fill: Callable[[Path], CellCost]) -> StoredCell:
        part = self.root / f"{key}.{os.getpid()}"
        try:
            self._sweep(key)
            part.mkdir(parents=True)
            cost = fill(part)
            manifest = _CellManifest(cost.host_s, cost.virtual_s, _file_digests(part))
            (part / CELL_MANIFEST).write_bytes(msgspec.json.encode(manifest))
            self._put(part, key)
        except KeyboardInterrupt:
            shutil.rmtree(part, ignore_errors=True)
            raise
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise UserError(f"cannot keep the cell in {self.root}: {error.strerror}") from error
        return StoredCell(self.root / key, cost, fresh=True)

    def _put(self, part: Path, key: str) -> None:
        """Two labs may make the same cell at once; the results are equal, and that of the first is kept."""
        place = self.root / key
        if place.exists() and self.find(key):
            shutil.rmtree(part)
            return
        if place.exists():
            shutil.rmtree(place)
        part.rename(place)

    def _sweep(self, key: str) -> None:
        """Remove what earlier attempts at a cell left, unless they are still at it."""
        for part in self.root.glob(f"{key}.*"):
            if not _is_running(part.suffix[1:]):
                shutil.rmtree(part, ignore_errors=True)


def cell_store_folder() -> Path:
    """The folder of the lab's finished cells."""
    return lab_cache() / "cells"


@contextmanager
def opened_cell_store() -> Iterator[CellStore]:
    """The lab's finished cells, held to their size afterwards; what this process uses stays there until it ends."""
    root = cell_store_folder()
    enrol_user(root)
    try:
        yield CellStore(root)
    finally:
        bound_cache(root)


def _is_running(pid: str) -> bool:
    return pid.isdigit() and Path("/proc", pid).exists()


def _file_digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.name != CELL_MANIFEST)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
