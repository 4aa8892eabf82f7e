# SPDX-License-Identifier: Apache-2.0
"""Measure what it costs to keep the evidence: time per activation, bytes per CPU, time to read them.

A run with a slice at every checkpoint needs 40 MB, which shows that the check of the bytes can fail. The bytes are
those of one CPU. The parts that exist once for all CPUs, above all the readings of counters each second (TICK), are
additional; m3 tells how much.
"""

import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import longrun

from acceptance import Benchmark, Result
from rtproof.agents import build
from rtproof.agents.architectures import host_architecture
from rtproof.record.reading import open_record

LIMITS_NS = (1_000_000, 500_000)
"""Of the long run's values 1 in 28,000 is above the second, none above the first."""
UNITS = (
    "measure/capture", "measure/above_levels", "measure/ring", "measure/slice_summary", "record/bytes", "record/record",
    "system/sys", "system/text",
)  # fmt: skip
PLACE = Path(__file__).parent.parent.parent / "build" / "longrun-summary.rtrec"
MOST_BYTES, MOST_INGEST_NS, MOST_OPEN_S = 5_000_000, 50, 0.3
SHORT = (6_000_000, 9_000_000)
"""In the third hour slices are half as long as later on, so that more bytes come with each activation."""


def long_record() -> Path:
    """The summary of a simulated run of 54.5 h at 1 kHz, made once."""
    PLACE.parent.mkdir(exist_ok=True)
    longrun.generate(PLACE, longrun.SAMPLES, samples=False, limits_ns=LIMITS_NS)
    return PLACE


@cache
def ingest_program(folder: Path) -> Path:
    compiler = build.choose_compiler(host_architecture())
    sources = [str(Path(__file__).parent.parent / "ingest.c"), *(f"{name}.c" for name in UNITS)]
    program = folder / "ingest"
    subprocess.run(
        [*compiler.command, "@cflags", *sources, "@ldflags", "-o", str(program)], cwd=build.source_dir(), check=True
    )
    return program


def ingest_ns(activations: int) -> float:
    """CPU time of the agent's writer for an activation, the best of three."""
    with tempfile.TemporaryDirectory() as name:
        program = ingest_program(Path(name))
        runs = [
            subprocess.run([program, f"{name}/{turn}", str(activations)], capture_output=True, text=True, check=True)
            for turn in range(3)
        ]
    ingest_program.cache_clear()
    return min(float(run.stdout) for run in runs)


def ingest(short: bool) -> Result:
    found = ingest_ns(5_000_000 if short else 50_000_000)
    return Result(round(found, 1), f"at most {MOST_INGEST_NS} ns for each activation", found <= MOST_INGEST_NS)


def summary_bytes(short: bool) -> Result:
    if not short:
        found = long_record().stat().st_size
        return Result(found, f"at most {MOST_BYTES:,} bytes for 196,190,335 activations", found <= MOST_BYTES)
    with tempfile.TemporaryDirectory() as name:
        sizes = []
        for n in SHORT:
            path = Path(name) / str(n)
            longrun.generate(path, n, samples=False, limits_ns=LIMITS_NS)
            sizes.append(path.stat().st_size)
    grown = (sizes[1] - sizes[0]) / (SHORT[1] - SHORT[0]) * longrun.SAMPLES
    goal = f"at most {1.4 * MOST_BYTES:,.0f} bytes for 196,190,335 activations, if all came as in the third hour"
    return Result(round(grown), goal, grown <= 1.4 * MOST_BYTES)


def opening(short: bool) -> Result:
    """The best of five in a process that has read one before."""
    path = long_record()
    open_record(path)
    times = []
    for _ in range(3 if short else 5):
        begin = time.perf_counter()
        open_record(path)
        times.append(time.perf_counter() - begin)
    best = min(times)
    return Result(round(best, 3), f"at most {MOST_OPEN_S} s to read the summary of 54.5 h", best <= MOST_OPEN_S)


BENCHMARKS = (
    Benchmark("14_bytes", "summary of a long run, of one CPU", summary_bytes),
    Benchmark("14_ingest", "what the agent does with an activation", ingest, in_tests=False),
    Benchmark("14_open", "reading the summary of a long run", opening, in_tests=False),
)
