# SPDX-License-Identifier: Apache-2.0
"""Measure how long reports of long runs take: from the start of the process to the file on the disk."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import longrun
import longruns

from acceptance import Benchmark, Result, Value

BUILD = Path(__file__).parent.parent.parent / "build" / "long-runs"
REPORT_S = 2.0
COMPARE_S = 5.0
SIDE = 10
TIMES = 3
"""The best of so many tells what the program takes; the others, what else the machine did."""


def report(_short: bool) -> Result:
    """``rtproof report`` of a record without samples, but with readings of counters once a second."""
    (record,) = longruns.several(BUILD, 1)
    seconds = _best(lambda page: ["report", str(record), "--output", str(page)])
    sizes = {"record_mb": record.stat().st_size / 1e6, "of_it_ticks_mb": longruns.ticks_mb(record)}
    goal = f"<= {REPORT_S:g} s for {longrun.SAMPLES:,} activations, from the start of the process to the page"
    told = {**seconds.told, **{name: round(size, 2) for name, size in sizes.items()}}
    return Result(told, goal, seconds.whole <= REPORT_S)


def compare(_short: bool) -> Result:
    """``rtproof compare`` of ten such records with ten."""
    records = longruns.several(BUILD, 2 * SIDE)
    a, b = ([str(record) for record in records[side::2]] for side in (0, 1))
    seconds = _best(lambda page: ["compare", *a, "--against", *b, "--output", str(page)])
    goal = f"<= {COMPARE_S:g} s for {SIDE} and {SIDE} such runs"
    return Result({**seconds.told, "runs": len(records)}, goal, seconds.whole <= COMPARE_S)


@dataclass(frozen=True)
class Took:
    """Seconds of a process and all that it started. busy: of CPUs; others: how many programs wanted one meanwhile."""

    whole: float
    busy: float
    others: float

    @property
    def told(self) -> dict[str, Value]:
        found = {"seconds": self.whole, "cpu_seconds": self.busy, "load_average": self.others}
        return {**{name: round(size, 2) for name, size in found.items()}, "cpus": len(os.sched_getaffinity(0))}


def _best(command: Callable[[Path], list[str]]) -> Took:
    """The quickest of several processes, each of which ends with 0 and leaves a page."""
    with tempfile.TemporaryDirectory() as folder:
        return min((_took(command, Path(folder) / f"{at}.html") for at in range(TIMES)), key=lambda took: took.whole)


def _took(command: Callable[[Path], list[str]], page: Path) -> Took:
    begin, before = time.perf_counter(), _children_s()
    subprocess.run([sys.executable, "-m", "rtproof", *command(page)], check=True, capture_output=True)
    whole = time.perf_counter() - begin
    assert page.stat().st_size > 0, "no page was written"
    return Took(whole, _children_s() - before, os.getloadavg()[0])


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


BENCHMARKS = (
    Benchmark("m3_report_of_a_long_run", "whole report from the summary of a long run", report, in_tests=False),
    Benchmark("m3_compare_long_runs", "comparison of ten long runs with ten", compare, in_tests=False),
)
