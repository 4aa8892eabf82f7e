# SPDX-License-Identifier: Apache-2.0
"""What a guest with 1, 2 or 4 processors costs this host, in interleaved rounds.

So other work on the host meets all kinds of guests alike.
"""

import resource
import statistics
import tempfile
from pathlib import Path
from typing import Any

from part import Details, Figure, Part

from rtproof.core.errors import TargetError
from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellSetting, GuestCell, GuestSystem, boot_guest, parse_guest_load
from rtproof.lab.systems import MEMORY_MIB
from rtproof.record import run_folder
from rtproof.vm.guest import Job, JobOutcome, run_job
from rtproof.vm.initramfs import build_guest_agent
from rtproof.vm.machine import Machine

KERNEL = "debian-6.1-rt"
KINDS = [(cpus, load) for cpus in (1, 2, 4) for load in ("idle", "mmap")]
ROUNDS = 3
SETTING = CellSetting(duration_ns=500_000_000, warmup_ns=300_000_000)


def machine_of(cpus: int) -> Machine:
    """The guest that is measured: all options as ``rtproof lab compare`` has them by default."""
    return Machine(kernel_catalogue.fetch_kernel(KERNEL), memory_mib=MEMORY_MIB, cpus=cpus)


def measured_job(machine: Machine, job: Job, folder: Path) -> tuple[JobOutcome, float]:
    """Run a job; with it the CPU seconds of the children of this process that ended meanwhile: QEMU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = run_job(machine, job, folder, timeout_s=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome.exit_code:
        raise TargetError(f"the guest's job ended with exit code {outcome.exit_code}: {outcome.said[-500:]}")
    return outcome, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def one_cost(cpus: int, load: str) -> tuple[float, float, bytes]:
    """Wall and CPU seconds of the host for each virtual second of a cell, and its record. Its snapshot has to exist."""
    machine = machine_of(cpus)
    agent = build_guest_agent(machine.kernel.arch)
    job = GuestCell(GuestSystem(KERNEL, "", machine), parse_guest_load(load), SETTING, agent).job()
    with tempfile.TemporaryDirectory() as scratch:
        outcome, cpu_s = measured_job(machine, job, Path(scratch) / "run")
        record = (Path(scratch) / "run" / run_folder.RECORD_NAME).read_bytes()
    return outcome.host_seconds / outcome.virtual_seconds, cpu_s / outcome.virtual_seconds, record


def measure(_: str) -> dict[str, Any]:
    """Medians over the rounds, and whether all records of a kind of guest are the same."""
    for cpus, _load in KINDS:
        boot_guest(machine_of(cpus))
    costs: dict[tuple[int, str], list[tuple[float, float, bytes]]] = {kind: [] for kind in KINDS}
    for number in range(ROUNDS):
        # Every second round goes backwards, so that a slow change of the host affects all kinds equally.
        for cpus, load in KINDS if number % 2 == 0 else reversed(KINDS):
            wall_s, cpu_s, record = one_cost(cpus, load)
            costs[cpus, load].append((wall_s, cpu_s, record))
            print(f"    {cpus} CPUs, {load:5} {wall_s:6.1f} s wall, {cpu_s:5.1f} s CPU a virtual second", flush=True)
    found: dict[str, Any] = {"rounds": ROUNDS}
    for (cpus, load), some in costs.items():
        walls_s, cpus_s, records = zip(*some, strict=True)
        found |= {f"wall_{cpus}_{load}": statistics.median(walls_s), f"cpu_{cpus}_{load}": statistics.median(cpus_s)}
        found[f"same_bytes_{cpus}_{load}"] = len(set(records)) == 1
    return found


def rows(_: str, one: Details) -> list[str]:
    """A row for each load; docs/lab.md has the range."""
    loads = dict.fromkeys(load for _, load in KINDS)
    return [
        f"| {load} | " + " | ".join(f"{one[f'cpu_{cpus}_{load}']:.1f}" for cpus in (1, 2, 4)) + " |" for load in loads
    ]


PART = Part(
    goal="host seconds for each virtual second of guests with several processors",
    measure=measure,
    figures=[
        Figure(f"{kind}_{cpus}_{load}", f"{cpus} CPUs, {load}, {words} per virtual second", "s", of="rounds")
        for cpus, load in KINDS
        for kind, words in (("wall", "wall"), ("cpu", "CPU"))
    ],
    head="| CPU seconds per virtual second | 1 processor | 2 processors | 4 processors |",
    rows=rows,
)
