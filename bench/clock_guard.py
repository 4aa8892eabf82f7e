# SPDX-License-Identifier: Apache-2.0
"""Whether guests in virtual time give the same bytes while QEMU's threads are delayed, with the guard and without it.

    python bench/clock_guard.py [--cell 'debian-6.1 preempt=none, idle, shift 3' ...] [--repeats 20] [--way guard ...]

Each cell is run so often in each of the ways: "guard" (delayed, guarded), "none" (delayed, without the guard), "quiet"
(guarded, not delayed) and "plugin" (delayed, guarded, while the plugin of lab explain is loaded). Each way boots its
guests anew once, in the same way.
Writes build/bench-clock-guard.json. Exit code 1 if a guarded record differs from another one of the same cell.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rtproof.experiment import guest_runner
from rtproof.lab import systems
from rtproof.lab.cell_explanation import build_plugin
from rtproof.lab.guest_cell import CellSetting, GuestCell, longest_host_s, parse_guest_load
from rtproof.lab.kernel_comparison import read_cell
from rtproof.record.run_folder import RECORD_NAME
from rtproof.vm.guest import run_job
from rtproof.vm.machine import Machine, emulator_path

BUILD = Path(__file__).parent.parent / "build"
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
        """As ``--cell`` takes it."""
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


def shown(name: str, found: dict[str, Any]) -> str:
    """A line: how many runs had the most frequent record, and its largest latency."""
    runs = found["runs"]
    (digest, count), *others = Counter(run["sha256"] for run in runs).most_common()
    largest = next(run["max_ns"] for run in runs if run["sha256"] == digest)
    guarded = sum(run["guarded"] for run in runs)
    mean_s = sum(run["host_s"] for run in runs[1:] or runs) / len(runs[1:] or runs)
    return (
        f"{name}, {found['way']}: {count} of {len(runs)} alike ({digest[:8]}, max {largest / 1e3:.3f} us), "
        f"{len(others)} others, guarded {guarded}, {mean_s:.2f} s a run"
    )


def main() -> int:
    """Run the cells, print a line for each way, and keep what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cell", action="append", choices=[cell.name for cell in CELLS])
    parser.add_argument("--kernel", help="another kernel for the cells of --cell, such as debian-6.1-arm64")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--duration-ms", type=int, default=2_000)
    parser.add_argument("--qemu", default="", help="system, fetched, or a path")
    asked = parser.parse_args()
    wanted = [cell for cell in CELLS if not asked.cell or cell.name in asked.cell]
    if asked.kernel:
        wanted = [replace(cell, kernel=asked.kernel, preempt="") for cell in wanted]
    differing, found = 0, []
    with tempfile.TemporaryDirectory() as place:
        delays = build_delays(Path(place))
        for number, (each, cell) in enumerate(guest_cells(wanted, asked.duration_ms * 1_000_000)):
            machine = replace(cell.system.machine, qemu=asked.qemu)
            guarded: set[str] = set()
            for way in asked.way or WAYS:
                folder = Path(place, f"{number}-{way}")
                qemu = wrapped_qemu(emulator_path(machine), folder, f"{place} {number} {way}")
                take_way(qemu, None if way == QUIET else delays, guarded=way != NONE)
                row = repeated(with_machine(cell, machine), way, asked.repeats, qemu)
                found.append({"cell": each.name, **row})
                guarded |= {run["sha256"] for run in row["runs"]} if way != NONE else set()
                print(shown(each.name, row), flush=True)
            differing += len(guarded) > 1
            BUILD.mkdir(exist_ok=True)
            (BUILD / "bench-clock-guard.json").write_text(json.dumps(found, indent=1))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
