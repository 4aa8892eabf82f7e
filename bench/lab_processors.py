# SPDX-License-Identifier: Apache-2.0
"""What a guest with 1, 2 or 4 processors costs this host, and how its processors share the instructions.

Costs are of this host, now: the rounds are interleaved, so that other work on the host meets all kinds alike.
"""

import hashlib
import os
import platform
import re
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.agents.build import cache_dir
from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellSetting, GuestCell, GuestSystem, boot_guest, parse_guest_load
from rtproof.lab.systems import MEMORY_MIB
from rtproof.record import run_folder
from rtproof.vm.guest import Job, JobOutcome, run_job
from rtproof.vm.initramfs import build_guest_agent
from rtproof.vm.machine import Machine, emulator_version

KERNEL = "debian-6.1-rt"
CPUS = (1, 2, 4)
LOADS = ("idle", "mmap")
ROUNDS = 3
SETTING = CellSetting(duration_ns=500_000_000, warmup_ns=300_000_000)
SHARE_SOURCE = Path(__file__).with_name("share.c")
SHARE_PLACE = "/bench/share"
SHARE_LINE = re.compile(r"cpu (\d+) loops (\d+) gaps_3us (\d+) gaps_3_paces (\d+) longest_ns (\d+)")


@dataclass(frozen=True)
class RunCost:
    """One guest: host seconds of QEMU from its start to its end, virtual seconds of its job, digest of its record."""

    wall_s: float
    user_s: float
    system_s: float
    virtual_s: float
    record_sha256: str

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


def machine_of(cpus: int) -> Machine:
    """The guest that is measured: all options as ``rtproof lab compare`` has them by default."""
    return Machine(kernel_catalogue.fetch_kernel(KERNEL), memory_mib=MEMORY_MIB, cpus=cpus)


def measured_job(machine: Machine, job: Job, folder: Path) -> tuple[JobOutcome, float, float]:
    """Run a job; with it user and system seconds of the children of this process that ended meanwhile: QEMU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = run_job(machine, job, folder, timeout_s=900)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome.exit_code:
        raise RuntimeError(f"the guest's job ended with exit code {outcome.exit_code}: {outcome.said[-500:]}")
    return outcome, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def one_cost(cpus: int, load: str) -> RunCost:
    """Measure one cell. Its snapshot has to exist."""
    machine = machine_of(cpus)
    agent = build_guest_agent(machine.kernel.arch)
    job = GuestCell(GuestSystem(KERNEL, "", machine), parse_guest_load(load), SETTING, agent).job()
    with tempfile.TemporaryDirectory() as scratch:
        outcome, user_s, system_s = measured_job(machine, job, Path(scratch) / "run")
        record = (Path(scratch) / "run" / run_folder.RECORD_NAME).read_bytes()
    digest = hashlib.sha256(record).hexdigest()
    return RunCost(outcome.host_seconds, user_s, system_s, outcome.virtual_seconds, digest)


def costs(rounds: int = ROUNDS, cpus_counts: Sequence[int] = CPUS) -> dict[str, Any]:
    """Host seconds per virtual second of each number of processors and load, from interleaved rounds."""
    for cpus in cpus_counts:
        boot_guest(machine_of(cpus))
    runs: dict[tuple[int, str], list[RunCost]] = {}
    load_before = os.getloadavg()[0]
    for number in range(rounds):
        kinds = [(cpus, load) for cpus in cpus_counts for load in LOADS]
        # Every second round goes backwards, so that a slow change of the host affects all kinds equally.
        for cpus, load in kinds if number % 2 == 0 else reversed(kinds):
            one = one_cost(cpus, load)
            runs.setdefault((cpus, load), []).append(one)
            print(
                f"round {number + 1}: {cpus} CPUs, {load:5} {one.wall_s:6.1f} s wall, {one.user_s:5.1f} user, "
                f"{one.system_s:5.1f} sys, for {one.virtual_s:.2f} virtual s",
                flush=True,
            )
    return {
        "settings": {
            "kernel": KERNEL,
            "duration_ns": SETTING.duration_ns,
            "warmup_ns": SETTING.warmup_ns,
            "pace_us": machine_of(2).pace_us,
            "soakers": machine_of(2).soakers,
        },
        "host": host_description(cpus_counts),
        "host_load_average_before": load_before,
        "host_load_average_after": os.getloadavg()[0],
        "guests": [told(cpus, load, found) for (cpus, load), found in runs.items()],
    }


def told(cpus: int, load: str, runs: Sequence[RunCost]) -> dict[str, Any]:
    """The figures of one kind of guest: median, smallest and largest of its runs, per virtual second."""
    return {
        "cpus_count": cpus,
        "load": load,
        "n": len(runs),
        "virtual_s": statistics.median(run.virtual_s for run in runs),
        "same_bytes": len({run.record_sha256 for run in runs}) == 1,
        **spread("host_wall_s_per_virtual_s", [run.wall_s / run.virtual_s for run in runs]),
        **spread("host_cpu_s_per_virtual_s", [run.cpu_s / run.virtual_s for run in runs]),
        **spread("host_system_s_per_virtual_s", [run.system_s / run.virtual_s for run in runs]),
    }


def spread(key: str, values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest value, each under its key."""
    return {key: statistics.median(values), f"{key}_least": min(values), f"{key}_most": max(values)}


def goals_of(found: dict[str, Any]) -> dict[str, float]:
    """The medians by short keys, as the table of goals needs them."""
    return {
        f"{key}_{guest['cpus_count']}_cpus_{guest['load']}": guest[key]
        for guest in found["guests"]
        for key in ("host_wall_s_per_virtual_s", "host_cpu_s_per_virtual_s")
    }


def host_description(cpus_counts: Sequence[int] = CPUS) -> dict[str, Any]:
    """The machine without its name: processor, number of CPUs, kernel, and the QEMU of each kind of guest."""
    return {
        "processor": next(_processor_names(), platform.machine()),
        "cpus_count": len(os.sched_getaffinity(0)),
        "kernel": platform.release().partition("-")[0],
        "qemu": {f"{cpus}_cpus": emulator_version(machine_of(cpus)) for cpus in cpus_counts},
    }


def _processor_names() -> Iterator[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            yield line.partition(":")[2].strip()


def build_share() -> Path:
    """The static program that looks for gaps, built here."""
    program = cache_dir().parent / "bench" / "share"
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-O2", "-static", "-Wall", "-Wextra", "-o", str(program), str(SHARE_SOURCE), "-lpthread"]
    subprocess.run(command, check=True)
    return program


def shares(cpus_counts: Sequence[int] = (2, 4)) -> list[dict[str, Any]]:
    """What a FIFO task on each processor sees while all are busy: its loops and the gaps in its time."""
    program = build_share()
    found = []
    for cpus in cpus_counts:
        machine = machine_of(cpus)
        job = Job(f"{SHARE_PLACE} {cpus} {machine.pace_us}\n", ((SHARE_PLACE, program),))
        with tempfile.TemporaryDirectory() as scratch:
            outcome, _, _ = measured_job(machine, job, Path(scratch) / "run")
        tasks = [tuple(map(int, numbers)) for numbers in SHARE_LINE.findall(outcome.said)]
        if len(tasks) != cpus:
            raise RuntimeError(f"{SHARE_SOURCE.name} said {outcome.said!r}")
        loops = sum(task[1] for task in tasks)
        for cpu, own, over_3us, over_3_paces, longest_ns in tasks:
            print(
                f"{cpus} CPUs, CPU {cpu}: {own / loops:.3f} of the loops, longest gap {longest_ns / 1e3:.1f} us, "
                f"{over_3us} gaps of 3 us or more, {over_3_paces} of 3 paces or more"
            )
            found.append(
                {
                    "cpus_count": cpus,
                    "cpu": cpu,
                    "share_of_loops": own / loops,
                    "longest_gap_ns": longest_ns,
                    "gaps_of_3_us_count": over_3us,
                    "gaps_of_3_paces_count": over_3_paces,
                    "pace_us": machine.pace_us,
                }
            )
    return found
