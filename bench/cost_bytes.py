# SPDX-License-Identifier: Apache-2.0
"""Bytes: of a sample in the record, of the agent's file, of its memory."""

import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from cost_latency import of_agent
from part import Bound, Figure, Part

from rtproof.agents.build import build_agent
from rtproof.record.contents import Begin, Series
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from tools import proportional_bytes

SECONDS = 20
HEADER = 20
FACT, FILE = 2, 3


def chunk_bytes(record: Path) -> Counter[int]:
    """Bytes in a record by chunk type, headers and padding included."""
    data, at, sizes = record.read_bytes(), 0, Counter[int]()
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        size = HEADER + (length + 3) // 4 * 4
        sizes[int.from_bytes(data[at + 8 : at + 10], "little")] += size
        at += size
    return sizes


def bytes_per_sample(record: Path) -> float:
    """All that grows with the run (not the facts and files of its start and end), divided by the samples."""
    sizes = chunk_bytes(record)
    n = sum(ref.count for ref in open_record(record).chunk_refs)
    return (sum(sizes.values()) - sizes[FACT] - sizes[FILE]) / n


def in_microseconds(record: Path, scratch: Path) -> float:
    """Bytes per sample of the same latencies, rounded to microseconds as most peers record them."""
    source = open_record(record)
    copy = scratch / "microseconds.rtrec"
    copy.unlink(missing_ok=True)
    with RecordWriter(copy) as writer:
        writer.begin(Begin(1, 0, bytes(16), 0, 0, "bench", "", "", ""))
        for one in source.series:
            values = np.concatenate([block.values for block in source.blocks(one.id)]) // 1000
            series = Series(one.id, one.thread, one.cpu, True, True, one.period_ns, 0, "timer", "", "latency", "us")
            writer.series(series)
            feed = SeriesWriter(writer, series)
            feed.add(values)
            feed.finish()
    return bytes_per_sample(copy)


def resident_bytes(agent: Path, scratch: Path) -> int:
    """Largest resident set of the agent with four threads at 200 us, all samples kept."""
    record = scratch / "resident.rtrec"
    record.unlink(missing_ok=True)
    command = [str(agent), "run", "-o", str(record), "--duration", "3s", "--period", "200us", "--threads", "4"]
    process = subprocess.Popen(command)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _high_water(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError("the agent failed while its memory was measured")
    return peak


def _high_water(pid: int) -> int:
    """VmHWM; before the program is executed it would be the parent's, so small programs only count once they run."""
    if proportional_bytes(pid) == 0:
        return 0
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return 0
    if program != "rtproof-agent":
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def measure(item: str) -> dict[str, Any]:
    """A record of SECONDS, or the agent as boards get it: musl, static, stripped."""
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        if item == "agent":
            agent = build_agent("x86_64", "zig")
            return {"file": agent.stat().st_size, "resident": resident_bytes(agent, scratch)}
        _, record = of_agent(build_agent(), scratch, SECONDS)
        return {"nanoseconds": bytes_per_sample(record), "microseconds": in_microseconds(record, scratch)}


PART = Part(
    goal="a sample takes 2.1 bytes, the agent 230,000, and its memory 8 MiB",
    items=lambda: ("record", "agent"),
    measure=measure,
    figures=(
        Figure("nanoseconds", "bytes per sample, nanoseconds", "", Bound(most=2.1)),
        Figure("microseconds", "bytes per sample, microseconds", "", Bound(most=1.1)),
        Figure("file", "agent for x86_64 with musl, stripped", "B", Bound(most=230_000)),
        Figure("resident", "its largest resident set, 4 threads", "B", Bound(most=8 * 2**20)),
    ),
)
