# SPDX-License-Identifier: Apache-2.0
"""Summarise as many samples as article 1's longest run has: with our scanner, with duckdb and with polars."""

import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
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


COMPILED, DUCKDB, POLARS = "compiled", "duckdb", "polars"
PROGRAMS = {COMPILED: ".rtrec", DUCKDB: ".parquet", POLARS: ".parquet"}
"""What reads all samples, and from which file: our scanner in C, and two engines for tables."""


@dataclass(frozen=True)
class Timing:
    """One program over all the samples.

    cpu_s: of all its processes and threads. answer: numbers to compare with the other programs.
    """

    seconds: float
    cpu_s: float
    peak_bytes: int
    answer: dict[str, float]


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


def to_parquet(record: Path, parquet: Path) -> None:
    """The same samples for duckdb, written by our own exporter."""
    if not parquet.exists():
        _python("export", str(record), str(parquet))


def timed(program: str, file: Path) -> Timing:
    """A new process in which one of ``PROGRAMS`` reads all samples and computes the same statistics."""
    process = _python(program, str(file))
    with MemoryWatch(process.pid) as memory:
        output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{program} failed")
    told = json.loads(output)
    return Timing(told["seconds"], told["cpu_s"], memory.peak_bytes, told["answer"])


def refuse_different_answers(turn: dict[str, Timing]) -> None:
    """RuntimeError if the programs disagree by more than rounding."""
    ours = turn[COMPILED]
    for program, other in turn.items():
        for key, value in other.answer.items():
            if abs(ours.answer[key] - value) > 1e-6 * abs(value):
                raise RuntimeError(f"{key}: {ours.answer[key]} here, {value} from {program}")


def _python(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    if arguments[0] == "export" and process.wait() != 0:
        raise RuntimeError("the export to Parquet failed")
    return process


def _summarise(path: str) -> dict[str, float]:
    from rtproof.judge.analyse import analyse
    from rtproof.judge.requirement import Requirement
    from rtproof.record import compiled_scanner
    from rtproof.record.reading import open_record
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


def _polars(path: str) -> dict[str, float]:
    """The same with polars, in one streaming pass where it can. Equiprobable: the smallest value with that share."""
    import polars as engine

    values = engine.scan_parquet(path).select("latency_ns")
    column = engine.col("latency_ns")
    numbers = {"n": engine.len(), "min": column.min(), "max": column.max(), "mean": column.mean()}
    numbers |= {"deviation": column.std()}
    numbers |= {f"q{p}": column.quantile(p, "equiprobable") for p in QUANTILES}
    row = values.select(**numbers).collect(engine="streaming").row(0, named=True)
    bins = values.group_by(column // 1000).agg(engine.len()).collect(engine="streaming")
    return {key: float(value) for key, value in row.items()} | {"bin200": float(dict(bins.iter_rows())[200])}


def _export(record: str, parquet: str) -> None:
    from rtproof.exporters import parquet as exporter
    from rtproof.judge.analyse import analyse
    from rtproof.record.reading import open_record

    exporter.export(analyse(open_record(record)), Path(parquet), {})


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(_: str) -> dict[str, Any]:
    """The programs in turn, three times, on files that are kept for the next time."""
    record = BUILD / "bench-long.rtrec"
    generate(record, SAMPLES)
    to_parquet(record, record.with_suffix(".parquet"))
    turns = []
    for _turn in range(TURNS):
        turns.append({name: timed(name, record.with_suffix(file)) for name, file in PROGRAMS.items()})
        for name, one in turns[-1].items():
            print(
                f"    {name} {one.seconds:.2f} s, {one.cpu_s:.2f} CPU s, {one.peak_bytes / 2**20:.0f} MiB", flush=True
            )
        refuse_different_answers(turns[-1])
    ours = [turn[COMPILED] for turn in turns]
    return {
        "turns": TURNS,
        "seconds": statistics.median(one.seconds for one in ours),
        "cpu_s": statistics.median(one.cpu_s for one in ours),
        "peak_bytes": max(one.peak_bytes for one in ours),
        **{f"{name}_cpu_s": statistics.median(turn[name].cpu_s for turn in turns) for name in PROGRAMS},
        **{
            f"{name}_ratio": statistics.median(turn[COMPILED].seconds / turn[name].seconds for turn in turns)
            for name in (DUCKDB, POLARS)
        },
    }


PART = Part(
    goal=f"{SAMPLES:,} samples are summarised in 4 s and 1 GiB, faster than duckdb and polars do less",
    measure=measure,
    figures=(
        Figure("seconds", "summary", "s", Bound(most=4), "turns"),
        Figure("cpu_s", "its CPU time", "s", Bound(most=4), "turns"),
        Figure(f"{DUCKDB}_cpu_s", "CPU time of duckdb", "s", of="turns"),
        Figure(f"{POLARS}_cpu_s", "CPU time of polars", "s", of="turns"),
        Figure("peak_bytes", "its memory, all processes", "B", Bound(most=2**30)),
        Figure(f"{DUCKDB}_ratio", "its time, ratio to duckdb", "", Bound(most=1), "turns"),
        Figure(f"{POLARS}_ratio", "its time, ratio to polars", "", Bound(most=1), "turns"),
    ),
)


if __name__ == "__main__":
    if sys.argv[1] == "export":
        _export(sys.argv[2], sys.argv[3])
    else:
        begin, cpu_s = time.perf_counter(), _cpu_s()
        answer = {COMPILED: _summarise, DUCKDB: _query, POLARS: _polars}[sys.argv[1]](sys.argv[2])
        seconds = time.perf_counter() - begin
        told = {"seconds": seconds, "cpu_s": _cpu_s() - cpu_s, "answer": answer}
        print(json.dumps(told))
