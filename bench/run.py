# SPDX-License-Identifier: Apache-2.0
"""``make bench``: what measuring costs and whether the numbers agree with the peers'; writes build/bench.json.

Every number is measured now. A ratio is the median over rounds in which each program ran in turn on the same machine.
"""

import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

import interleaved_rounds
import loads
import longrun
import peers
import sizes
import view_cost
from goals import Goal, show

from rtproof.agents.build import build_agent
from rtproof.core.errors import UserError

BUILD = Path(__file__).parent.parent / "build"
ROUNDS, SECONDS = 7, 5
GOALS = (
    Goal("median_ratio_to_cyclictest", "median latency, ratio to cyclictest", "0.95 to 1.05", (0.95, 1.05)),
    Goal("p99_ratio_to_cyclictest", "99th percentile, ratio to cyclictest"),
    Goal("cpu_ratio_to_cyclictest", "CPU time per activation, ratio to cyclictest", "at most 1.05", (0, 1.05)),
    Goal("live_view_cpu_percent", "CPU of the live view on a terminal, % of one CPU", "at most 1", (0, 1)),
    Goal("live_view_runs", "runs in which that was measured"),
    Goal("bytes_per_sample_ns", "bytes per sample, nanoseconds", "at most 2.1", (0, 2.1)),
    Goal("bytes_per_sample_us", "bytes per sample, microseconds", "at most 1.1", (0, 1.1)),
    Goal("jitterdebugger_bytes_per_sample", "the same of jitterdebugger"),
    Goal("bytes_over_entropy", "bytes per sample over the entropy of these samples", "at most 1.2", (0, 1.2)),
    Goal("pcodec_bytes_over_entropy", "the same of pcodec, values alone"),
    Goal("summary_seconds", "summary of 196,190,335 samples, s", "at most 4", (0, 4)),
    Goal("summary_cpu_s", "its CPU time, s", "at most 4", (0, 4)),
    Goal("numpy_cpu_s", "the same with numpy alone, s"),
    Goal("duckdb_cpu_s", "CPU time of duckdb for less, s"),
    Goal("polars_cpu_s", "CPU time of polars for less, s"),
    Goal("summary_peak_bytes", "its memory, all processes", "at most 1 GiB", (0, 2**30)),
    Goal("summary_ratio_to_duckdb", "its time, ratio to duckdb", "below 1", (0, 1)),
    Goal("summary_ratio_to_polars", "its time, ratio to polars", "below 1", (0, 1)),
    Goal("comms_mb_per_s", "load comms between two namespaces, MB/s each way", "at least 100", (100, math.inf)),
    Goal("agent_bytes", "agent for x86_64 with musl, stripped", "at most 230,000", (0, 230_000)),
    Goal("agent_rss_bytes", "its largest resident set, 4 threads", "at most 8 MiB", (0, 8 * 2**20)),
)


def latency_and_cost(agent: Path, scratch: Path) -> dict[str, float]:
    """The interleaved rounds; prints each."""
    print(f"{ROUNDS} rounds of {SECONDS} s, period {peers.PERIOD_US} us, one thread a CPU, priority {peers.PRIORITY}")
    print("round | median [ns] of agent, cyclictest, jitterdebugger | 99 % [ns] | CPU [s per 1e6] of agent, cyclictest")
    rounds = []
    for number in range(ROUNDS):
        one = interleaved_rounds.one_round(agent, scratch, SECONDS)
        rounds.append(one)
        runs = [one.agent, one.cyclictest, one.jitterdebugger]
        medians, p99s = ([getattr(run, field) if run else "-" for run in runs] for field in ("median_ns", "p99_ns"))
        cpu = f"{one.agent_cpu_s_per_million:6.2f} {one.cyclictest_cpu_s_per_million:6.2f}"
        print(
            f"{number + 1:5} | {' '.join(f'{x:>8}' for x in medians)} | {' '.join(f'{x:>8}' for x in p99s)} | {cpu}",
            flush=True,
        )
    found = {
        f"{name}_ratio_to_cyclictest": interleaved_rounds.median(rounds, f"{name}_ratio")
        for name in ("median", "p99", "cpu")
    }
    if rounds[0].jitterdebugger_bytes is not None:
        found["jitterdebugger_bytes_per_sample"] = interleaved_rounds.median(rounds, "jitterdebugger_bytes")
    return found


def record_sizes(agent: Path, scratch: Path) -> dict[str, float]:
    """Of one run of a minute's worth of samples."""
    _, record = interleaved_rounds.measure(agent, scratch, 4 * SECONDS)
    return {
        "bytes_per_sample_ns": sizes.bytes_per_sample(record),
        "bytes_per_sample_us": sizes.in_microseconds(record, scratch),
        **sizes.ratios_to_entropy(record),
    }


def long_run() -> dict[str, float]:
    """The programs in turn, three times, on files that are kept for the next time."""
    record = BUILD / "bench-long.rtrec"
    longrun.generate(record, longrun.SAMPLES)
    longrun.to_parquet(record, record.with_suffix(".parquet"))
    turns = []
    for _ in range(3):
        turn = {name: longrun.timed(name, record.with_suffix(file)) for name, file in longrun.PROGRAMS.items()}
        told = [
            f"{name} {one.seconds:.2f} s, {one.cpu_s:.2f} CPU s, {one.peak_bytes / 2**20:.0f} MiB"
            for name, one in turn.items()
        ]
        print(f"summary of {longrun.SAMPLES:,} samples: {'; '.join(told)}", flush=True)
        longrun.refuse_different_answers(turn)
        turns.append(turn)
    print("the compiled scanner and numpy gave the same summary, number by number")
    ours = [turn[longrun.COMPILED] for turn in turns]
    return {
        "summary_seconds": statistics.median(one.seconds for one in ours),
        "summary_cpu_s": statistics.median(one.cpu_s for one in ours),
        "summary_peak_bytes": max(one.peak_bytes for one in ours),
        **{
            f"{name}_cpu_s": statistics.median(turn[name].cpu_s for turn in turns)
            for name in (longrun.NUMPY, longrun.DUCKDB, longrun.POLARS)
        },
        **{
            f"summary_ratio_to_{name}": statistics.median(
                turn[longrun.COMPILED].seconds / turn[name].seconds for turn in turns
            )
            for name in (longrun.DUCKDB, longrun.POLARS)
        },
    }


def agent_sizes(scratch: Path) -> dict[str, float]:
    """Of the build that boards get: musl, static, stripped."""
    try:
        agent = build_agent("x86_64", "zig")
    except UserError as error:
        print(f"the size of the agent is not measured: {error}")
        return {}
    return {"agent_bytes": agent.stat().st_size, "agent_rss_bytes": sizes.resident_bytes(agent, scratch)}


def main() -> int:
    """Exit code 1 when a goal is missed."""
    BUILD.mkdir(exist_ok=True)
    if "cyclictest" not in peers.installed():
        print("cyclictest is not installed, and this compares with it", file=sys.stderr)
        return 2
    agent = build_agent()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        results = latency_and_cost(agent, scratch) | record_sizes(agent, scratch)
        results |= view_cost.cpu_share(agent, scratch)
        results |= agent_sizes(scratch) | loads.comms(agent, scratch) | long_run()
    (BUILD / "bench.json").write_text(json.dumps(results, indent=2) + "\n")
    fine = show(GOALS, results)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
