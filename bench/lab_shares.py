# SPDX-License-Identifier: Apache-2.0
"""How processors that take turns share the instructions: what a FIFO task on each sees while all are busy."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from lab_processors import machine_of, measured_job
from part import Details, Figure, Part

from rtproof.core.errors import TargetError
from rtproof.vm.guest import Job

SOURCE = Path(__file__).with_name("share.c")
LINE = re.compile(r"cpu (\d+) loops (\d+) gaps_3us (\d+) gaps_3_paces (\d+) longest_ns (\d+)")


def measure(item: str) -> dict[str, Any]:
    """The loops of each processor, and the gaps in its time."""
    cpus = int(item)
    machine = machine_of(cpus)
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "share"
        command = ["gcc", "-O2", "-static", "-Wall", "-Wextra", "-o", str(program), str(SOURCE), "-lpthread"]
        subprocess.run(command, check=True)
        job = Job(f"/share {cpus} {machine.pace_us}\n", (("/share", program),))
        outcome, _ = measured_job(machine, job, Path(scratch) / "run")
    tasks = [tuple(map(int, numbers)) for numbers in LINE.findall(outcome.said)]
    if len(tasks) != cpus:
        raise TargetError(f"{SOURCE.name} said {outcome.said!r}")
    loops = sum(task[1] for task in tasks)
    keys = ("gaps_of_3_us_count", "gaps_of_3_paces_count", "longest_gap_ns")
    found = [{"share": own / loops, **dict(zip(keys, gaps, strict=True))} for _, own, *gaps in tasks]
    shares = [100 * task["share"] for task in found]
    longest_us = max(task["longest_gap_ns"] for task in found) / 1e3
    return {"least_percent": min(shares), "most_percent": max(shares), "longest_gap_us": longest_us, "cpus": found}


def rows(item: str, one: Details) -> list[str]:
    return [
        f"| {item} | {cpu} | {of['share']:.3f} | {of['longest_gap_ns'] / 1e3:.1f} us | {of['gaps_of_3_us_count']} "
        f"| {of['gaps_of_3_paces_count']} |"
        for cpu, of in enumerate(one["cpus"])
    ]


PART = Part(
    goal="the shares of instructions that processors get, and the gaps that a FIFO task sees",
    items=lambda: ("2", "4"),
    measure=measure,
    figures=(
        Figure("least_percent", "least share of the loops", "%"),
        Figure("most_percent", "largest share of the loops", "%"),
        Figure("longest_gap_us", "longest gap", "us"),
    ),
    head="| processors | CPU | share of the loops | longest gap | gaps of 3 us | gaps of 3 paces |",
    rows=rows,
)
