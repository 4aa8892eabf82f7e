# SPDX-License-Identifier: Apache-2.0
"""The peers, run with the same CPUs, priority, period and duration as the agent, and their results as numbers."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools import Cost, run

PERIOD_US = 200
PRIORITY = 80


@dataclass(frozen=True)
class Latencies:
    """Of all threads together. ``beyond``: values that the program's own histogram could not hold."""

    median_ns: int
    p99_ns: int
    n: int
    beyond: int


def installed() -> list[str]:
    """Which of the peers are here."""
    return [name for name in ("cyclictest", "jitterdebugger") if shutil.which(name)]


def cyclictest(seconds: int, scratch: Path, *, histogram: bool) -> tuple[Cost, Latencies | None]:
    """cyclictest with one thread a CPU; nanoseconds and a histogram only when asked, for they cost time."""
    command = ["cyclictest", "-m", "-S", "-p", str(PRIORITY), "-i", str(PERIOD_US), "-d", "0", "-D", str(seconds), "-q"]
    if not histogram:
        return run(command), None
    result = scratch / "cyclictest.json"
    cost = run([*command, "-N", "-h", "1000000", f"--json={result}"], scratch)
    threads = json.loads(result.read_text())["thread"].values()
    return cost, _latencies(
        ((int(value), n) for thread in threads for value, n in thread["histogram"].items()),
        sum(thread["cycles"] for thread in threads),
    )


def jitterdebugger(seconds: int, scratch: Path) -> tuple[Cost, Latencies, int]:
    """jitterdebugger with all samples kept; the last number is the size of its sample file."""
    folder = scratch / "jitterdebugger"
    shutil.rmtree(folder, ignore_errors=True)
    command = [
        "jitterdebugger",
        "-N",
        "-D",
        f"{seconds}s",
        "-i",
        str(PERIOD_US),
        "-p",
        str(PRIORITY),
        "-o",
        str(folder),
    ]
    cost = run([*command, "-s"], scratch)
    threads = json.loads((folder / "results.json").read_text())["cpu"].values()
    latencies = _latencies(
        ((int(value), n) for thread in threads for value, n in thread["histogram"].items()),
        sum(thread["count"] for thread in threads),
    )
    return cost, latencies, (folder / "samples.raw").stat().st_size


def _latencies(bins: Iterable[tuple[int, int]], n: int) -> Latencies:
    """Nearest-rank percentiles; what is missing from the histogram counts as above it."""
    ordered = sorted(bins)
    seen, ranks, found = 0, [-(-n // 2), -(-99 * n // 100)], []
    for value, count in ordered:
        seen += count
        while ranks and seen >= ranks[0]:
            found.append(value)
            ranks.pop(0)
    if ranks:
        raise RuntimeError("a peer's histogram holds less than 99 % of its samples")
    return Latencies(found[0], found[1], n, n - seen)
