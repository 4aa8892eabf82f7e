# SPDX-License-Identifier: Apache-2.0
"""Whether guests in virtual time give the same bytes while QEMU's threads are delayed, with the guard and without it.

Each cell is run so often in each of the ways: "guard" (delayed, guarded), "none" (delayed, without the guard), "quiet"
(guarded, not delayed) and "plugin" (delayed, guarded, while the plugin of lab explain is loaded). Each way boots its
guests anew once, in the same way.
"""

import hashlib
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from part import Bound, Details, Figure, Part

from rtproof.experiment import guest_runner
from rtproof.lab import systems
from rtproof.lab.cell_explanation import build_plugin
from rtproof.lab.guest_cell import CellSetting, GuestCell, longest_host_s, parse_guest_load
from rtproof.lab.kernel_comparison import read_cell
from rtproof.record.run_folder import RECORD_NAME
from rtproof.vm.guest import run_job
from rtproof.vm.machine import Machine, emulator_of

REPEATS, DURATION_NS = 20, 2_000_000_000
DELAYS = Path(__file__).with_name("sharp_delays.c")
FLAGS = ("-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-shared")
WAYS = GUARD, NONE, QUIET, PLUGIN = ("guard", "none", "quiet", "plugin")
ROWS = (("debian-6.1-rt", ""), ("debian-6.1", "none"), ("debian-6.1", "full"))
LOADS = ("idle", "mmap", "net", "dd")
IDLE = (("debian-6.1", "none", 3), ("debian-6.1-rt", "", 1), ("debian-6.12", "none", 2))


@dataclass(frozen=True)
class Wanted:
    """A cell to run: kernel, preemption model, load and shift."""

    kernel: str
    preempt: str
    load: str
    shift: int

    @property
    def name(self) -> str:
        """The item."""
        system = f"{self.kernel} preempt={self.preempt}" if self.preempt else self.kernel
        return f"{system}, {self.load}" + (f", shift {self.shift}" if self.shift else "")


CELLS = (
    *(Wanted(kernel, preempt, "idle", shift) for kernel, preempt, shift in IDLE),
    *(Wanted(kernel, preempt, load, 0) for load in LOADS for kernel, preempt in ROWS),
)


def build_delays(folder: Path, most_us: int = 50) -> Path:
    """The library that delays QEMU's threads, each time by at most so many microseconds."""
    library = folder / "sharp_delays.so"
    subprocess.run(["cc", *FLAGS, f"-DMOST_NS={most_us * 1000}", str(DELAYS), "-o", str(library)], check=True)
    return library


def wrapped_qemu(program: str, folder: Path, mark: str) -> Path:
    """A program that starts a QEMU in the way that ``take_way`` says. Guests with another ``mark`` boot anew."""
    folder.mkdir()
    started = folder / Path(program).name
    started.write_text(f'#!/bin/sh\n# {mark}\n. "$0.way"\nexport LD_PRELOAD\nexec {program} "$@"\n')
    started.chmod(0o755)
    take_way(started, None, guarded=True)
    return started


def take_way(qemu: Path, delays: Path | None, *, guarded: bool) -> None:
    """Let a wrapped QEMU run with the delays or without them, and drop the guard if that is asked for.

    The guard comes first, so that its own calls are delayed too.
    """
    words = [word for word in ("$LD_PRELOAD" if guarded else "", str(delays or "")) if word]
    Path(f"{qemu}.way").write_text(f'LD_PRELOAD="{":".join(words)}"\n')


def guest_cells(wanted: Sequence[Wanted], duration_ns: int) -> Iterator[tuple[Wanted, GuestCell]]:
    """The cells with their guests. Kernels are fetched if need be."""
    setting = CellSetting(duration_ns=duration_ns)
    for each in wanted:
        kernels = guest_runner.named_kernels([each.kernel], (), setting.probe)
        (system,) = systems.systems(kernels, [each.preempt])
        agents = guest_runner.agents_by_architecture([system])
        agent = agents[system.machine.kernel.arch]
        yield each, GuestCell(system, parse_guest_load(each.load), setting, agent, each.shift)


def with_machine(cell: GuestCell, machine: Machine) -> GuestCell:
    """The cell on another machine."""
    return replace(cell, system=replace(cell.system, machine=machine))


def run_once(cell: GuestCell, folder: Path, plugin: Sequence[str] = ()) -> dict[str, Any]:
    """Run a cell: the digest of its record, its largest latency, and what it cost."""
    began = time.monotonic()
    outcome = run_job(cell.system.machine, cell.job(), folder, 2 * longest_host_s(cell), plugin)
    if outcome.exit_code:
        raise SystemExit(f"{cell.name}: the agent did not measure: {outcome.said}")
    digest = hashlib.sha256((folder / RECORD_NAME).read_bytes()).hexdigest()
    return {
        "sha256": digest,
        "max_ns": read_cell(folder).max_ns,
        "guarded": outcome.guarded,
        "host_s": time.monotonic() - began,
    }


def repeated(cell: GuestCell, way: str, repeats: int, qemu: Path) -> dict[str, Any]:
    """Run a cell several times under this QEMU, after a boot that is not counted."""
    cell = with_machine(cell, replace(cell.system.machine, qemu=str(qemu)))
    loaded = ("-plugin", f"{build_plugin()},mark=1,pass=0,before=1,blocks=1,out=/dev/null") if way == PLUGIN else ()
    runs = []
    for _ in range(repeats):
        folder = Path(tempfile.mkdtemp())
        try:
            runs.append(run_once(cell, folder / "out", loaded))
        finally:
            shutil.rmtree(folder)
    return {"way": way, "runs": runs}


def measure(item: str) -> dict[str, Any]:
    """The runs of a cell in each way. guarded_records: how many different ones the guarded runs gave."""
    (wanted,) = (cell for cell in CELLS if cell.name == item)
    ((_, cell),) = guest_cells([wanted], DURATION_NS)
    ways: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        delays = build_delays(Path(place))
        for way in WAYS:
            qemu = wrapped_qemu(emulator_of(cell.system.machine).path, Path(place, way), f"{place} {way}")
            take_way(qemu, None if way == QUIET else delays, guarded=way != NONE)
            ways[way] = repeated(cell, way, REPEATS, qemu)
            print(f"    {way}: {alike(ways[way])} of {REPEATS} alike", flush=True)
    records = {run["sha256"] for way, found in ways.items() if way != NONE for run in found["runs"]}
    return {"repeats": REPEATS, "guarded_records": len(records), "unguarded_alike": alike(ways[NONE]), "ways": ways}


def alike(found: dict[str, Any]) -> int:
    """How many runs had the most frequent record."""
    return Counter(run["sha256"] for run in found["runs"]).most_common(1)[0][1]


def row(item: str, one: Details) -> list[str]:
    """The cell's row of the table of docs/lab-determinism.md."""
    cells = " | ".join(f"{alike(found)} of {len(found['runs'])} alike" for found in one["ways"].values())
    largest_ns = one["ways"][GUARD]["runs"][0]["max_ns"]
    return [f"| {item} | {cells} | {largest_ns / 1e3:.3f} us |"]


PART = Part(
    goal="all guarded runs of a cell have the same bytes, however QEMU's threads are delayed",
    items=lambda: [cell.name for cell in CELLS],
    measure=measure,
    figures=(
        Figure("guarded_records", "different records of guarded runs", bound=Bound(1, 1), of="repeats"),
        Figure("unguarded_alike", "unguarded runs that are alike", of="repeats"),
    ),
    head=f"| cell | {' | '.join(WAYS)} | largest latency |",
    rows=row,
    long="it runs 15 cells in four ways, 20 times each",
)
