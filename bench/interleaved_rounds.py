# SPDX-License-Identifier: Apache-2.0
"""The agent and its peers in turn, again and again, so that all see the same machine: latencies, CPU time, bytes."""

import statistics
from dataclasses import dataclass
from pathlib import Path

import peers

from rtproof.record.reading import open_record
from rtproof.summary.quantiles import quantiles
from rtproof.summary.series import pooled, summarise
from tools import Cost, run


@dataclass(frozen=True)
class Round:
    """One turn of each program. Ratios are the agent's number over cyclictest's."""

    median_ratio: float
    p99_ratio: float
    cpu_ratio: float
    agent: peers.Latencies
    cyclictest: peers.Latencies
    jitterdebugger: peers.Latencies | None
    agent_cpu_s_per_million: float
    cyclictest_cpu_s_per_million: float
    jitterdebugger_bytes: float | None


def measure(agent: Path, scratch: Path, seconds: int) -> tuple[Cost, Path]:
    """The agent with full capture of samples, one thread a CPU, from the first moment on."""
    record = scratch / "bench.rtrec"
    record.unlink(missing_ok=True)
    command = [str(agent), "run", "-o", str(record), "--duration", f"{seconds}s", "--period", f"{peers.PERIOD_US}us"]
    return run([*command, "--priority", str(peers.PRIORITY), "--warmup", "0s"]), record


def latencies(record: Path) -> peers.Latencies:
    """Of all threads of a record together."""
    everything = pooled(summarise(open_record(record)))
    median, p99 = quantiles(everything, shares=(0.5, 0.99))
    assert median.value is not None
    assert p99.value is not None
    return peers.Latencies(median.value, p99.value, everything.observed.count, 0)


def one_round(agent: Path, scratch: Path, seconds: int) -> Round:
    """Latencies from runs with histograms on both sides; CPU time from cyclictest without one."""
    _, theirs = peers.cyclictest(seconds, scratch, histogram=True)
    _, record = measure(agent, scratch, seconds)
    ours = latencies(record)
    bare, _ = peers.cyclictest(seconds, scratch, histogram=False)
    cost, record = measure(agent, scratch, seconds)
    n = latencies(record).n
    other, other_bytes = None, None
    if "jitterdebugger" in peers.installed():
        _, other, size = peers.jitterdebugger(seconds, scratch)
        other_bytes = size / other.n
    assert theirs is not None
    # cyclictest without a histogram says nothing when quiet; both ran the same number of periods.
    return Round(
        ours.median_ns / theirs.median_ns,
        ours.p99_ns / theirs.p99_ns,
        cost.cpu_s / bare.cpu_s,
        ours,
        theirs,
        other,
        cost.cpu_s / n * 1e6,
        bare.cpu_s / theirs.n * 1e6,
        other_bytes,
    )


def median(rounds: list[Round], field: str) -> float:
    """Median over the rounds of one ratio or cost."""
    return float(statistics.median(getattr(one, field) for one in rounds))
