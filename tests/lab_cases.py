# SPDX-License-Identifier: Apache-2.0
"""A lab without virtual machines: systems that boot nothing, and cells that write a record of what they are told.

Its functions are found by name in other processes, so what a cell shall do stands in the name of its load.
"""

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from analysis_records import BEGIN, MS, SERIES, fact

from rtproof.core.errors import TargetError
from rtproof.lab.cell_runner import GuestFunctions, KernelMatrix
from rtproof.lab.guest_cell import CellCost, CellSetting, GuestCell, GuestLoad, GuestSystem, StoredCell
from rtproof.record.contents import End, EndReason, Moment
from rtproof.record.writing import RecordWriter, write_series_samples
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine, MachineInputs

ACTIVATIONS = 2_000
LARGEST_NS = {"idle": 6_000, "mmap": 700_000, "dd": 3_800_000}
RT_NS = 6_400
DEADLINE_S = 60


@dataclass(frozen=True)
class FakeMachine(Machine):
    """Has an identity without QEMU."""

    @property
    def identity(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def inputs(self) -> MachineInputs:
        modules = tuple((Path(each).stem, "f" * 64) for each in self.modules)
        return MachineInputs(
            "QEMU emulator version 7.2", self.boot, self.kernel.identity, "a" * 64, "b" * 64, "c" * 64, modules
        )


def kernel(release: str = "6.1.0-50-amd64", image: Path = Path("vmlinuz")) -> Kernel:
    return Kernel("x86_64", image, None, release, hashlib.sha256(release.encode()).hexdigest())


def system(name: str, *boot: str) -> GuestSystem:
    return GuestSystem(name, " ".join(boot), FakeMachine(kernel(name), boot=boot))


RT = system("debian-6.1-rt")
PLAIN = system("debian-6.1", "preempt=none")


def load(name: str) -> GuestLoad:
    return GuestLoad(name, () if name == "idle" else (name,))


def matrix(folder: Path, *names: str, systems: tuple[GuestSystem, ...] = (RT, PLAIN), shifts: int = 1) -> KernelMatrix:
    agent = folder / "agent"
    agent.write_text("an agent")
    loads = tuple(load(name) for name in names or ("idle", "mmap"))
    return KernelMatrix(systems, loads, CellSetting(), shifts, {"x86_64": agent})


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
        (folder.parent.parent / "began").write_text(str(os.getpid()))
        time.sleep(DEADLINE_S)
    values = np.full(0 if cell.load.name == "nothing" else ACTIVATIONS, 3_900)
    if values.size:
        values[::500] = largest_ns(cell)
    (folder / "console.log").write_text("booted")
    if "preempt=lazy" in cell.system.machine.boot:
        (folder / "preempt").write_text("none (voluntary) full \n")
    write(folder / "run.rtrec", values, "other" if cell.load.name == "invalid" else "fifo")
    return CellCost(4.0, 2.0)


def write(path: Path, values: "np.ndarray[tuple[int], np.dtype[np.int64]]", policy: str) -> None:
    """A record; with another effective policy than fifo it did not measure what was asked."""
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        for key, value in (("duration_ns", 2_000 * MS), ("period_ns", MS), ("policy", "fifo"), ("priority", 80)):
            writer.fact(fact(key, value))
        writer.fact(fact("policy", policy, Moment.START, 0))
        writer.series(SERIES)
        totals = write_series_samples(writer, SERIES, values)
        writer.end(End(2_000 * MS, EndReason.AS_ASKED, "", (totals,)))


def keys_not_in_docs(told: object) -> set[str]:
    """Keys, at any depth, that docs/lab.md does not name."""
    page = (Path(__file__).parent.parent / "docs" / "lab.md").read_text()
    if isinstance(told, list):
        return {key for each in told for key in keys_not_in_docs(each)}
    if not isinstance(told, dict):
        return set()
    return {key for key in told if f"`{key}`" not in page} | keys_not_in_docs(list(told.values()))


RUNNER = GuestFunctions(boot, fill)


def kept(folder: Path, cost: CellCost) -> StoredCell:
    return StoredCell(folder, cost, fresh=True)
