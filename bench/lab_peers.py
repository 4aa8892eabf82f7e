# SPDX-License-Identifier: Apache-2.0
"""The timer probe and its peers, in turn in one guest: virtual time counts instructions, so differences are exact."""

import json
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from part import Bound, Details, Figure, Part

from rtproof.agents.build import build_agent
from rtproof.core.errors import TargetError, UserError
from rtproof.lab import kernel_catalogue
from rtproof.record import reading
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

SYSTEMS = {"debian-6.1-rt": (), "debian-6.1": ("preempt=none",)}
PERIOD_US, SAMPLES, PRIORITY = 1000, 60_000, 98
PEERS = ("cyclictest", "jitterdebugger")
RANKS = ("min", "p1", "median")
"""The smallest is one sample, whose wake-up met another interrupt. What a program adds to each shows in the others."""
SCRIPT = f"""set -e
/bench/rtproof-agent run -o /out/ours.rtrec --period {PERIOD_US}us --samples {SAMPLES} --priority {PRIORITY}
cyclictest -m -q -N -p {PRIORITY} -i {PERIOD_US} -l {SAMPLES} -h 1000000 --json=/out/cyclictest.json
jitterdebugger -N -p {PRIORITY} -i {PERIOD_US * 1000} -l {SAMPLES} -o /out/jitterdebugger
"""


def programs() -> tuple[tuple[str, Path], ...]:
    """The peers and the libraries they need, each under the path that it has here. UserError if one is missing."""
    places: dict[str, Path] = {}
    for name in PEERS:
        program = shutil.which(name)
        if program is None:
            raise UserError(f"{name} is not installed, and this compares with it")
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for path in (program, *re.findall(r"(/\S+) \(0x", listed)):
            places[path] = Path(path).resolve()
    return tuple(sorted(places.items()))


def measure(system: str) -> dict[str, Any]:
    """What each program says of the same idle guest, in virtual ns, and our ratios to the peers."""
    machine = Machine(kernel_catalogue.fetch_kernel(system), boot=SYSTEMS[system], files=programs())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        outcome = run_job(machine, Job(SCRIPT, (("/bench/rtproof-agent", build_agent("x86_64")),)), folder)
        if outcome.exit_code != 0:
            raise TargetError(f"the guest's job ended with exit code {outcome.exit_code}: {outcome.said}")
        record = reading.open_record(folder / "ours.rtrec")
        ours = _figures(value for block in record.blocks(0) for value in block.values.tolist())
        bins = {
            "cyclictest": json.loads((folder / "cyclictest.json").read_text())["thread"],
            "jitterdebugger": json.loads((folder / "jitterdebugger" / "results.json").read_text())["cpu"],
        }
    found = {name: _figures(_values(threads["0"]["histogram"])) for name, threads in bins.items()}
    ratios = {f"{rank}_to_{name}": ours[rank] / peer[rank] for name, peer in found.items() for rank in RANKS}
    return {**ratios, "programs": {"rtproof": ours, **found}}


def _values(bins: dict[str, int]) -> Iterable[int]:
    return (int(value) for value, count in bins.items() for _ in range(count))


def _figures(some: Iterable[int]) -> dict[str, int]:
    values = sorted(some)
    ranks = {"min": values[0], "p1": values[len(values) // 100], "median": statistics.median_low(values)}
    return {"n": len(values), **ranks, "max": values[-1]}


def rows(system: str, one: Details) -> list[str]:
    return [f"| {system} | {name} | {' | '.join(map(str, of.values()))} |" for name, of in one["programs"].items()]


PART = Part(
    goal="in the same guest the timer probe is no later than its peers",
    items=lambda: list(SYSTEMS),
    measure=measure,
    figures=[
        Figure(f"{rank}_to_{peer}", f"{rank} latency, ratio to {peer}", "", Bound(most=1))
        for peer in PEERS
        for rank in RANKS
    ],
    head="| system | program | n | min | 1 % | median | max |",
    rows=rows,
)
