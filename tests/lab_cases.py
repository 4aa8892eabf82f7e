# SPDX-License-Identifier: Apache-2.0
"""A lab without virtual machines: systems that boot nothing, and cells that write a record of what they are told.

What a cell shall do stands in the name of its load.
"""

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SERIES, fact, file

from rtproof.core.errors import TargetError
from rtproof.core.units import parse_cpus
from rtproof.lab import guest_cell
from rtproof.lab.cell_runner import CellResult, CellResults, run_missing_cells
from rtproof.lab.guest_cell import CellCost, CellSetting, CellStore, GuestCell, GuestLoad, GuestSystem
from rtproof.record.contents import End, EndReason, Moment
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine

ACTIVATIONS = 2_000
LARGEST_NS = {"idle": 6_000, "mmap": 700_000, "dd": 3_800_000}
RT_NS = 6_400
DEADLINE_S = 300


@dataclass(frozen=True)
class FakeMachine(Machine):
    """Has an identity without QEMU."""

    @property
    def identity(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def inputs(self) -> dict[str, Any]:
        return {
            "qemu": "QEMU emulator version 7.2",
            "qemu_arguments": self.boot,
            "kernel_sha256": self.kernel.identity,
            "init_sha256": "a" * 64,
            "helper_sha256": "b" * 64,
            "busybox_sha256": "c" * 64,
            "modules": tuple((Path(each).stem, "f" * 64) for each in self.modules),
            "soaker_sha256": None,
            "guard": "on",
        }


def kernel(release: str = "6.1.0-50-amd64", image: Path = Path("vmlinuz")) -> Kernel:
    return Kernel("x86_64", image, None, release, hashlib.sha256(release.encode()).hexdigest())


def system(name: str, *boot: str) -> GuestSystem:
    return GuestSystem(name, " ".join(boot), FakeMachine(kernel(name), boot=boot))


RT = system("debian-6.1-rt")
PLAIN = system("debian-6.1", "preempt=none")


def load(name: str) -> GuestLoad:
    return GuestLoad(name, () if name == "idle" else (name,))


def matrix(
    folder: Path, *names: str, systems: tuple[GuestSystem, ...] = (RT, PLAIN), shifts: int = 1
) -> list[GuestCell]:
    agent = folder / "agent"
    agent.write_text("an agent")
    loads = tuple(load(name) for name in names or ("idle", "mmap"))
    return [
        GuestCell(system, load, CellSetting(), agent, shift)
        for load in loads
        for system in systems
        for shift in range(shifts)
    ]


def boot(machine: Machine) -> None:
    if "unbootable" in machine.boot:
        raise TargetError("the guest never spoke; the console's log is console.log")


def largest_ns(cell: GuestCell) -> int:
    """Of a cell: small with an rt kernel, else by its load and shift."""
    return RT_NS if "rt" in cell.system.name else LARGEST_NS.get(cell.load.name, 9_000) + cell.shift * 1_000


def fill(cell: GuestCell, folder: Path) -> CellCost:
    """What the cell's load says: fail, measure nothing, go on until interrupted, or measure."""
    if cell.load.name == "fails":
        raise TargetError("the guest's kernel panicked; the console's log is console.log")
    if cell.load.name == "lingers":
        (folder / "began").write_text(str(os.getpid()))
        (folder / "began").rename(folder.parent.parent / "began")
        time.sleep(DEADLINE_S)
    values = np.full(0 if cell.load.name == "nothing" else ACTIVATIONS, 3_900)
    if values.size:
        values[::500] = largest_ns(cell)
    (folder / "console.log").write_text("booted")
    if "preempt=lazy" in cell.system.machine.boot:
        (folder / "preempt").write_text("none (voluntary) full \n")
    policy = "other" if cell.load.name == "invalid" else "fifo"
    write(folder / "run.rtrec", values, policy, turns_of_cell(cell))
    return CellCost(4.0, 2.0)


@dataclass(frozen=True)
class Turns:
    """Processors that take turns: those that are measured, of how many. Each is later by its number, in us."""

    measured: tuple[int, ...]
    of: int
    soakers: bool = True


def turns_of_cell(cell: GuestCell) -> Turns | None:
    """The CPUs that the agent is told to measure; of all those that are not isolated."""
    machine = cell.system.machine
    if machine.cpus == 1:
        return None
    isolated = [parse_cpus(word.rpartition(",")[2]) for word in machine.boot if word.startswith("isolcpus=")]
    allowed = [cpu for cpu in range(machine.cpus) if not any(cpu in each for each in isolated)]
    words = cell.setting.more_arguments
    asked = parse_cpus(words[words.index("--cpus") + 1]) if "--cpus" in words else tuple(allowed)
    return Turns(asked, machine.cpus, machine.soakers)


Latencies = np.ndarray[tuple[int], np.dtype[np.int64]]


def write(path: Path, values: Latencies, policy: str, turns: Turns | None = None) -> None:
    """A record; with another effective policy than fifo it did not measure what was asked."""
    every = [replace(SERIES, id=at, thread=at, cpu=cpu) for at, cpu in enumerate(turns.measured)] if turns else [SERIES]
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        for key, value in (("duration_ns", 2_000 * MS), ("period_ns", MS), ("policy", "fifo"), ("priority", 80)):
            writer.fact(fact(key, value))
        for key, text in facts_of_turns(turns):
            writer.fact(fact(key, text, Moment.START))
        for series in every:
            writer.fact(fact("policy", policy, Moment.START, series.thread))
        if turns:
            writer.file(file("/sys/devices/system/cpu/online", f"0-{turns.of - 1}\n"))
        totals = []
        for series in every:
            writer.series(series)
            feed = SeriesWriter(writer, series)
            feed.add(values + (1_000 * series.cpu if turns else 0))
            totals.append(feed.finish())
        writer.end(End(2_000 * MS, EndReason.AS_ASKED, "", tuple(totals)))


def facts_of_turns(turns: Turns | None) -> list[tuple[str, str]]:
    """What a guest tells of its turns. Each processor has a larger share than the next."""
    if not turns:
        return []
    shares = " ".join(f"{2 * (turns.of - cpu) / turns.of / (turns.of + 1):.3f}" for cpu in range(turns.of))
    soakers = [("soakers", str(turns.of)), ("cpu_shares", shares)] if turns.soakers else []
    return [("virtual_time", "QEMU, 1 ns an instruction"), ("turn_us", "4"), *soakers]


def run(
    cells: list[GuestCell], store: CellStore, jobs: int = 1, told: Callable[[CellResult], None] = lambda result: None
) -> CellResults:
    """Measure the cells that the store lacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest_cell, "boot_guest", boot)
        return run_missing_cells(cells, store, fill, jobs, told)
