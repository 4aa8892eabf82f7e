# SPDX-License-Identifier: Apache-2.0
"""Summarise as many samples as article 1's longest run has: with our scanner and with duckdb."""

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from part import BUILD, Bound, Figure, Part

from rtproof.record.contents import Begin, End, EndReason, Int64Array, Series
from rtproof.record.writing import RecordWriter, SeriesWriter
from tools import MemoryWatch

SAMPLES = 196_190_335
TURNS = 3
PIECE = 4_000_000
PERIOD_NS = 1_000_000
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


COMPILED, DUCKDB = "compiled", "duckdb"
PROGRAMS = {COMPILED: ".rtrec", DUCKDB: ".parquet"}
"""What reads all samples, and from which file: our scanner in C, and an engine for tables."""


def latencies(generator: np.random.Generator, n: int) -> Int64Array:
    """Shaped like the article's G45 run: least 70 us, mean 219 us, now and then up to about 1.1 ms."""
    values = 70_000 + generator.gamma(9.0, 16_500.0, n)
    return np.minimum(values, 1_106_000).astype(np.int64)


def generate(path: Path, n: int, *, seed: int = 196, samples: bool = True, limits_ns: tuple[int, ...] = ()) -> None:
    """The record, with everything an agent writes, unless it is there already. samples=False: its summary only."""
    if path.exists():
        return
    generator = np.random.default_rng(seed)
    series = Series(0, 0, 0, True, samples, PERIOD_NS, 0, "timer", "posix_timer", "latency", "ns")
    draft = path.with_suffix(".part")
    with RecordWriter(draft) as writer:
        writer.begin(Begin(1, 2, bytes(16), 0, 0, "bench", "armv5tejl", "3.0.12-rt30", "#1 PREEMPT RT"))
        writer.series(series)
        feed = SeriesWriter(writer, series, limits_ns=limits_ns)
        for start in range(0, n, PIECE):
            feed.add(latencies(generator, min(PIECE, n - start)))
        writer.end(End(n * PERIOD_NS, EndReason.AS_ASKED, "", (feed.finish(),)))
    draft.rename(path)


def timed(program: str, file: Path) -> dict[str, Any]:
    """A new process in which one of ``PROGRAMS`` reads all samples and computes the same statistics: what it says.

    seconds; cpu_s: of all its processes and threads; peak_bytes; answer: numbers to compare with the other program.
    """
    process = subprocess.Popen([sys.executable, __file__, program, str(file)], stdout=subprocess.PIPE, text=True)
    with MemoryWatch(process.pid) as memory:
        output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{program} failed")
    return {**json.loads(output), "peak_bytes": memory.peak_bytes}


def _summarise(path: str) -> dict[str, float]:
    from rtproof.judge.analyse import analyse
    from rtproof.record import compiled_scanner
    from rtproof.record.reading import open_record
    from rtproof.record.requirement import Requirement
    from rtproof.summary.quantiles import quantiles

    if compiled_scanner.scanner() is None:
        raise RuntimeError("nothing here can compile the scanner")
    analysis = analyse(open_record(path), Requirement(limit_ns=1_000_000))
    pooled = analysis.pooled
    fixed = pooled.observed_counts.fixed_bins(0, 1000, 10_000)
    answer = {f"q{p}": float(q.value or 0) for p, q in zip(QUANTILES, quantiles(pooled, shares=QUANTILES), strict=True)}
    answer |= {"n": pooled.observed.count, "min": pooled.observed.min, "max": pooled.observed.max}
    answer |= {"mean": pooled.observed.mean or 0, "deviation": pooled.observed.deviation or 0}
    return answer | {"bin200": float(fixed.counts[200])}


def _query(path: str) -> dict[str, float]:
    """All quantiles in one call, so that duckdb sorts or selects once."""
    import duckdb as engine

    names = ["n", "min", "max", "mean", "deviation"]
    numbers = "count(*), min(latency_ns), max(latency_ns), avg(latency_ns), stddev(latency_ns)"
    connection = engine.connect()
    connection.read_parquet(path).create_view("samples")
    sql = f"select {numbers}, quantile_disc(latency_ns, {list(QUANTILES)}) from samples"  # noqa: S608 - constants
    row = connection.execute(sql).fetchall()[0]
    bins = connection.execute("select latency_ns // 1000, count(*) from samples group by 1").fetchall()
    quantiles = {f"q{p}": float(value) for p, value in zip(QUANTILES, row[-1], strict=True)}
    return dict(zip(names, map(float, row[:-1]), strict=True)) | quantiles | {"bin200": float(dict(bins)[200])}


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(_: str) -> dict[str, Any]:
    """The programs in turn, on files that are kept for the next time. RuntimeError if they disagree beyond rounding."""
    record = BUILD / "bench-long.rtrec"
    parquet = record.with_suffix(PROGRAMS[DUCKDB])
    generate(record, SAMPLES)
    if not parquet.exists():
        words = ("rtproof", "export", record, "--format", "parquet", "-o", parquet)
        subprocess.run([sys.executable, "-m", *words], check=True)
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for _turn in range(TURNS):
        for program, some in ((COMPILED, ours), (DUCKDB, theirs)):
            some.append(timed(program, record.with_suffix(PROGRAMS[program])))
            told = (f"{key} {some[-1][key]:,.2f}" for key in ("seconds", "cpu_s", "peak_bytes"))
            print(f"    {program}: {', '.join(told)}", flush=True)
        answer = theirs[-1]["answer"]
        different = [key for key, value in answer.items() if abs(ours[-1]["answer"][key] - value) > 1e-6 * abs(value)]
        if different:
            raise RuntimeError(f"the programs differ in {', '.join(different)}")
    return {
        "turns": TURNS,
        "seconds": statistics.median(one["seconds"] for one in ours),
        "cpu_s": statistics.median(one["cpu_s"] for one in ours),
        "peak_bytes": max(one["peak_bytes"] for one in ours),
        "duckdb_s": statistics.median(one["seconds"] for one in theirs),
        "duckdb_cpu_s": statistics.median(one["cpu_s"] for one in theirs),
        "duckdb_peak_bytes": max(one["peak_bytes"] for one in theirs),
        "ratio": statistics.median(a["seconds"] / b["seconds"] for a, b in zip(ours, theirs, strict=True)),
    }


PART = Part(
    goal=f"{SAMPLES:,} samples are summarised in 4 s and 1 GiB, faster than duckdb does less",
    measure=measure,
    figures=(
        Figure("seconds", "summary", "s", Bound(most=4), "turns"),
        Figure("cpu_s", "its CPU time", "s", Bound(most=4), "turns"),
        Figure("peak_bytes", "its memory, all processes", "B", Bound(most=2**30)),
        Figure("duckdb_s", "duckdb", "s", of="turns"),
        Figure("duckdb_cpu_s", "CPU time of duckdb", "s", of="turns"),
        Figure("duckdb_peak_bytes", "memory of duckdb", "B"),
        Figure("ratio", "our time, ratio to duckdb", "", Bound(most=1), "turns"),
    ),
)


if __name__ == "__main__":
    begin, cpu_s = time.perf_counter(), _cpu_s()
    answer = (_summarise if sys.argv[1] == COMPILED else _query)(sys.argv[2])
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "cpu_s": _cpu_s() - cpu_s, "answer": answer}))
