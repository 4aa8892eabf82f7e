# SPDX-License-Identifier: Apache-2.0
"""The timer probe and its peers, in turn in one guest: virtual time counts instructions, so differences are exact."""

import json
import re
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rtproof.record import reading
from rtproof.vm.guest import Job, run_job
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine

PERIOD_US, SAMPLES, PRIORITY = 1000, 60_000, 98
PEERS = ("cyclictest", "jitterdebugger")
SCRIPT = f"""set -e
/bench/rtproof-agent run -o /out/ours.rtrec --period {PERIOD_US}us --samples {SAMPLES} --priority {PRIORITY}
cyclictest -m -q -N -p {PRIORITY} -i {PERIOD_US} -l {SAMPLES} -h 1000000 --json=/out/cyclictest.json
jitterdebugger -N -p {PRIORITY} -i {PERIOD_US * 1000} -l {SAMPLES} -o /out/jitterdebugger
"""


@dataclass(frozen=True)
class Figures:
    """Of one program in one guest, virtual nanoseconds.

    The smallest is one sample, whose wake-up met another interrupt; what a program adds to each shows at 1 % and in the
    median.
    """

    n: int
    min_ns: int
    p1_ns: int
    median_ns: int
    max_ns: int


def programs() -> tuple[tuple[str, Path], ...]:
    """The peers and the libraries they need, each under the path that it has here."""
    places: dict[str, Path] = {}
    for name in PEERS:
        program = shutil.which(name)
        if program is None:
            raise RuntimeError(f"{name} is not installed, and this compares with it")
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for path in (program, *re.findall(r"(/\S+) \(0x", listed)):
            places[path] = Path(path).resolve()
    return tuple(sorted(places.items()))


def compare(kernel: Kernel, boot: tuple[str, ...], agent: Path, scratch: Path) -> dict[str, Figures]:
    """What each program says of the same idle guest, one after the other."""
    machine = Machine(kernel, boot=boot, files=programs())
    outcome = run_job(machine, Job(SCRIPT, (("/bench/rtproof-agent", agent),)), scratch)
    if outcome.exit_code != 0:
        raise RuntimeError(f"the guest's job ended with exit code {outcome.exit_code}: {outcome.said}")
    cyclictest = json.loads((scratch / "cyclictest.json").read_text())["thread"]["0"]["histogram"]
    jitterdebugger = json.loads((scratch / "jitterdebugger" / "results.json").read_text())["cpu"]["0"]["histogram"]
    return {
        "rtproof": _of_record(scratch / "ours.rtrec"),
        "cyclictest": _of_bins(cyclictest),
        "jitterdebugger": _of_bins(jitterdebugger),
    }


def _of_record(path: Path) -> Figures:
    record = reading.open_record(path)
    return _figures(sorted(int(value) for block in record.blocks(0) for value in block.values))


def _of_bins(bins: dict[str, int]) -> Figures:
    return _figures(sorted(int(value) for value, count in bins.items() for _ in range(count)))


def _figures(values: list[int]) -> Figures:
    return Figures(len(values), values[0], values[len(values) // 100], statistics.median_low(values), values[-1])
