# SPDX-License-Identifier: Apache-2.0
"""Summarise as many samples as article 1's longest run has, and compare the time with duckdb's."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtproof.record.contents import Begin, End, EndReason, Int64Array, Series
from rtproof.record.writing import RecordWriter, SeriesWriter
from tools import MemoryWatch

SAMPLES = 196_190_335
PIECE = 4_000_000
PERIOD_NS = 1_000_000
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@dataclass(frozen=True)
class Timing:
    """One program over all the samples. ``answer``: what it printed, to compare."""

    seconds: float
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


def ours(record: Path) -> Timing:
    """A new process that does all of reading and analysis."""
    return _timed("ours", str(record))


def duckdb(parquet: Path) -> Timing:
    """A new process in which duckdb computes the same statistics of the same samples."""
    return _timed("duckdb", str(parquet))


def _python(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    if arguments[0] == "export" and process.wait() != 0:
        raise RuntimeError("the export to Parquet failed")
    return process


def _timed(*arguments: str) -> Timing:
    process = _python(*arguments)
    with MemoryWatch(process.pid) as memory:
        output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{arguments[0]} failed")
    answer = json.loads(output)
    return Timing(answer.pop("seconds"), memory.peak_bytes, answer)


def _summarise(path: str) -> dict[str, float]:
    from rtproof.judge.analyse import analyse
    from rtproof.judge.analysis_model import Requirement
    from rtproof.record.reading import open_record
    from rtproof.summary.quantiles import quantiles

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


def _export(record: str, parquet: str) -> None:
    from rtproof.exporters import parquet as exporter
    from rtproof.judge.analyse import analyse
    from rtproof.record.reading import open_record

    exporter.export(analyse(open_record(record)), Path(parquet), {})


if __name__ == "__main__":
    if sys.argv[1] == "export":
        _export(sys.argv[2], sys.argv[3])
    else:
        begin = time.perf_counter()
        result = (_summarise if sys.argv[1] == "ours" else _query)(sys.argv[2])
        print(json.dumps({"seconds": time.perf_counter() - begin} | result))
