# SPDX-License-Identifier: Apache-2.0
"""Answers to edges, timed twice in a guest: by the agent that answers, and by the chip that gives the edges.

The chip is that of ``rtproof.ko``. Its timer gives an edge every 3.1 ms and notes when. It notes again when the
answer reaches its output line. Thus its figure has the way from the edge into the interrupt handler and ends at the
line, as that of a second board. The agent's figure begins in the interrupt handler and ends when its call returns.
Both are of the same edges and of the same clock, which is virtual time: an instruction is a nanosecond.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from part import Details, Figure, Part

from rtproof.agents.build import build_agent
from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.record.contents import Int64Array
from rtproof.record.reading import open_record
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

KERNELS = ("debian-6.1-rt", "debian-6.1")
LOADS = ("idle", "mmap")
EDGES = 100
"""Fewer than the chip keeps."""
PERIOD_US = 3_100
SCRIPT = f"""\
insmod /rtproof.ko gpio=1 edges_us={PERIOD_US} || exit
for load in {" ".join(LOADS)}; do
    with=
    [ $load = idle ] || with="--load $load"
    /agent run --samples {EDGES} --warmup 100ms --period {PERIOD_US}us --priority 90 -o /out/$load $with \\
        --probe gpio:chip=rtproof-loop,in=7,out=6 2> /out/$load.said || exit
    cat /sys/module/rtproof/parameters/answers > /out/$load.answers
done
"""


@dataclass(frozen=True)
class Answers:
    """Times of the same edges, in ns. ``task``, ``output``: the agent's, from its interrupt handler on.

    ``outside``: the chip's, from the edge until the answer's level.
    """

    task: Int64Array
    output: Int64Array
    outside: Int64Array

    @property
    def longer_ns(self) -> float:
        """How much longer the median answer took as seen from outside."""
        return float(np.median(self.outside) - np.median(self.output))


def read_answers(folder: Path, name: str) -> Answers:
    """The last edges of the chip are those of the record. UserError if the two do not belong together."""
    record = open_record(folder / name)
    task, output = (np.concatenate([block.values for block in record.blocks(series.id)]) for series in record.series)
    given, answered = np.loadtxt(folder / f"{name}.answers", dtype=np.int64, ndmin=2)[-len(output) :].T
    if len(given) != len(output):
        raise UserError(f"the chip saw {len(given)} answers, and the agent gave {len(output)}")
    return Answers(task, output, answered - given)


def measured(kernel: str, folder: Path) -> dict[str, Answers]:
    """The answers under each load, from one boot of a kernel of the catalogue. Leaves the records in the folder."""
    machine = Machine(kernel_catalogue.fetch_kernel(kernel))
    agent = build_agent(kernel_catalogue.catalogue_entry(kernel).arch)
    files = (("/agent", agent), ("/rtproof.ko", kernel_catalogue.module_for_kernel(kernel, "rtproof")))
    outcome = run_job(machine, Job(SCRIPT, files), folder)
    if outcome.exit_code:
        raise UserError(f"the guest with {kernel} failed: {outcome.said.strip()[-200:]}")
    return {load: read_answers(folder, load) for load in LOADS}


def measure(kernel: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = measured(kernel, Path(folder) / "out")
    return {"n": EDGES, **{f"longer_{load}_ns": one.longer_ns for load, one in found.items()},
            "loads": {load: [each.tolist() for each in (one.output, one.outside)]
                      for load, one in found.items()}}  # fmt: skip


def rows(kernel: str, one: Details) -> list[str]:
    """A row for each load, in nanoseconds."""
    lines = []
    for load, both in one["loads"].items():
        cells = " | ".join(f"{min(each):,} | {np.median(each):,.0f} | {max(each):,}" for each in both)
        lines.append(f"| {kernel} | {load} | {len(both[0])} | {cells} |")
    return lines


PART = Part(
    goal="how much longer the median answer takes as seen from outside than the agent says, in ns of virtual time",
    items=lambda: KERNELS,
    measure=measure,
    figures=[Figure(f"longer_{load}_ns", f"{load}: chip longer by, median", "ns", of="n") for load in LOADS],
    head="| kernel | load | n | agent, min | median | max | chip, min | median | max |",
    rows=rows,
)
