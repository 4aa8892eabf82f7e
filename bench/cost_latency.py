# SPDX-License-Identifier: Apache-2.0
"""The agent and its peers in turn, again and again, so that all see the same machine: latencies, CPU time, bytes."""

import json
import shutil
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from part import Bound, Figure, Part

from rtproof.agents.build import build_agent
from rtproof.core.errors import UserError
from rtproof.record.reading import open_record
from rtproof.summary.quantiles import quantiles
from rtproof.summary.series import pooled, summarise
from tools import Cost, run

ROUNDS, SECONDS = 7, 5
PERIOD_US, PRIORITY = 200, 80


@dataclass(frozen=True)
class Latencies:
    """Of all threads together."""

    median_ns: float
    p99_ns: float
    n: int


def of_agent(agent: Path, scratch: Path, seconds: float) -> tuple[Cost, Path]:
    """The agent with all samples, one thread a CPU, from the first moment on: its cost and its record."""
    record = scratch / "bench.rtrec"
    record.unlink(missing_ok=True)
    command = [str(agent), "run", "-o", str(record), "--duration", f"{seconds:g}s", "--period", f"{PERIOD_US}us"]
    return run([*command, "--priority", str(PRIORITY), "--warmup", "0s"]), record


def of_record(record: Path) -> Latencies:
    everything = pooled(summarise(open_record(record)))
    median, p99 = (float(each.value or 0) for each in quantiles(everything, shares=(0.5, 0.99)))
    return Latencies(median, p99, everything.observed.count)


def of_cyclictest(scratch: Path, *, histogram: bool) -> tuple[Cost, Latencies | None]:
    """One thread a CPU; nanoseconds and a histogram only when asked, for they cost time."""
    command = ["cyclictest", "-m", "-S", "-p", str(PRIORITY), "-i", str(PERIOD_US), "-d", "0", "-D", str(SECONDS), "-q"]
    if not histogram:
        return run(command, scratch), None
    result = scratch / "cyclictest.json"
    cost = run([*command, "-N", "-h", "1000000", f"--json={result}"], scratch)
    threads = json.loads(result.read_text())["thread"].values()
    return cost, _of_histograms((one["histogram"], one["cycles"]) for one in threads)


def of_jitterdebugger(scratch: Path) -> tuple[Latencies, int]:
    """With all samples kept; the last number is the size of its sample file."""
    folder = scratch / "jitterdebugger"
    shutil.rmtree(folder, ignore_errors=True)
    words = ("-N", "-D", f"{SECONDS}s", "-i", str(PERIOD_US), "-p", str(PRIORITY), "-o", str(folder), "-s")
    run(["jitterdebugger", *words], scratch)
    threads = json.loads((folder / "results.json").read_text())["cpu"].values()
    return _of_histograms((one["histogram"], one["count"]) for one in threads), (folder / "samples.raw").stat().st_size


def _of_histograms(threads: Iterable[tuple[dict[str, int], int]]) -> Latencies:
    """Nearest-rank percentiles; what is missing from a histogram counts as above it."""
    bins, n = [], 0
    for histogram, count in threads:
        bins += [(int(value), times) for value, times in histogram.items()]
        n += count
    seen, ranks, found = 0, [-(-n // 2), -(-99 * n // 100)], []
    for value, times in sorted(bins):
        seen += times
        while ranks and seen >= ranks[0]:
            found.append(value)
            ranks.pop(0)
    if ranks:
        raise UserError("a peer's histogram holds less than 99 % of its samples")
    return Latencies(found[0], found[1], n)


def one_round(agent: Path, scratch: Path) -> dict[str, float]:
    """One turn of each program: latencies with histograms on both sides, CPU time from cyclictest without one."""
    _, theirs = of_cyclictest(scratch, histogram=True)
    ours = of_record(of_agent(agent, scratch, SECONDS)[1])
    bare, _ = of_cyclictest(scratch, histogram=False)
    cost, record = of_agent(agent, scratch, SECONDS)
    assert theirs is not None
    # cyclictest without a histogram says nothing when quiet; both ran the same number of periods.
    found = {
        "median_ratio": ours.median_ns / theirs.median_ns,
        "p99_ratio": ours.p99_ns / theirs.p99_ns,
        "cpu_ratio": cost.cpu_s / bare.cpu_s,
        "cpu_s_per_million": cost.cpu_s / of_record(record).n * 1e6,
    }
    if shutil.which("jitterdebugger"):
        other, size = of_jitterdebugger(scratch)
        found["jitterdebugger_bytes"] = size / other.n
    return found


def measure(_: str) -> dict[str, Any]:
    """Medians over the rounds; prints each. UserError without cyclictest."""
    if not shutil.which("cyclictest"):
        raise UserError("cyclictest is not installed (package rt-tests of Debian)")
    rounds, agent = [], build_agent()
    with tempfile.TemporaryDirectory() as scratch:
        for _number in range(ROUNDS):
            rounds.append(one_round(agent, Path(scratch)))
            print("    " + ", ".join(f"{key} {value:.3f}" for key, value in rounds[-1].items()), flush=True)
    medians = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    return {"rounds": ROUNDS, **medians}


PART = Part(
    goal="the agent is as late as cyclictest and takes no more CPU time, in turn on the same CPUs",
    measure=measure,
    figures=(
        Figure("median_ratio", "median latency, ratio to cyclictest", "", Bound(0.95, 1.05), "rounds"),
        Figure("p99_ratio", "99th percentile, ratio to cyclictest", of="rounds"),
        Figure("cpu_ratio", "CPU time per activation, ratio to cyclictest", "", Bound(most=1.05), "rounds"),
        Figure("jitterdebugger_bytes", "bytes per sample of jitterdebugger", of="rounds"),
    ),
)
