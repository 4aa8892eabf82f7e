# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of the threads' notes on their own conditions: today's agent and the last one without notes, in
turn."""

import shutil
import statistics
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from rtproof.record.contents import Moment
from rtproof.record.reading import open_record
from rtproof.summary.quantiles import quantiles
from rtproof.summary.series import summarise
from tools import run

BEFORE = "66ed3c6"
"""The last commit whose agent notes nothing."""
ROUNDS, SECONDS = 31, 2
"""Single pairs scatter from 0.8 to 1.2 on a virtual machine, about ratios that are a few hundredths from 1."""
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Thread:
    """Of one run with one thread at 1 kHz: median latency, CPU time of the thread for each activation."""

    median_ns: float
    cpu_ns: float


def old_agent(scratch: Path) -> Path | None:
    """The agent of that commit; None where the history or a compiler is not there."""
    place, packed = scratch / "before", scratch / "before.tar"
    place.mkdir()
    command = ["git", "-C", str(ROOT), "archive", "-o", str(packed), BEFORE, "agent", "kmod"]
    if not shutil.which("make") or subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    run(["make", "-s", "-C", str(place / "agent"), "O=../built"])
    return place / "built" / "rtproof-agent"


def thread(agent: Path, scratch: Path) -> Thread:
    record = scratch / "checks.rtrec"
    record.unlink(missing_ok=True)
    asked = ("--policy", "fifo", "--priority", "80", "--threads", "1", "--period", "1ms", "--duration", f"{SECONDS}s")
    run([str(agent), "run", "-o", str(record), *asked])
    whole = open_record(record)
    (median,) = quantiles(summarise(whole)[0], shares=(0.5,))
    assert whole.end is not None
    assert median.value is not None
    cpu_ns = int(whole.fact("cpu_time_ns", Moment.END, 0) or 0)
    return Thread(float(median.value), cpu_ns / whole.end.totals[0].obtained)


def cost(agent: Path, scratch: Path) -> dict[str, float]:
    """Ratios of today's agent to the old one: medians over pairs of runs, whose order changes from pair to pair."""
    before = old_agent(scratch)
    if before is None:
        print(f"the cost of the checks is not measured: there is no commit {BEFORE} here, or no make")
        return {}
    pairs = []
    for number in range(ROUNDS):
        order = (before, agent) if number % 2 == 0 else (agent, before)
        found = {program: thread(program, scratch) for program in order}
        pairs.append((found[before], found[agent]))
    olds, news = zip(*pairs, strict=True)
    for name in ("median_ns", "cpu_ns"):
        old, new = (statistics.median(getattr(one, name) for one in some) for some in (olds, news))
        print(f"checks: {name} {old:,.0f} without, {new:,.0f} with (medians of {ROUNDS} runs each)")
    return {
        "median_ratio_to_no_checks": statistics.median(new.median_ns / old.median_ns for old, new in pairs),
        "cpu_ratio_to_no_checks": statistics.median(new.cpu_ns / old.cpu_ns for old, new in pairs),
    }
