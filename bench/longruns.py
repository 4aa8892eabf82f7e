# SPDX-License-Identifier: Apache-2.0
"""Records of runs as long as article 1's longest, with everything that an agent keeps except the samples.

A few are made activation by activation, which takes a minute each. The others are copies of these with another number
and name, because reading them costs the same. Like a real record they have readings of counters once a second. These
need three times the bytes of the evidence; ``ticks_mb`` tells how many.
"""

import multiprocessing
import os
from pathlib import Path

import numpy as np
from longrun import PERIOD_NS, PIECE, SAMPLES, latencies

from rtproof.record import chunks
from rtproof.record.activations import SECOND_NS
from rtproof.record.chunks import ChunkType, FileWindow, Frame, frame_bytes, walk_chunks
from rtproof.record.contents import WHOLE_RUN, Begin, Counter, End, EndReason, Fact, Moment, Series
from rtproof.record.writing import RecordWriter, SeriesWriter

OWN = 4
"""Records that are made themselves."""
LIMIT_NS = 1_000_000
COUNTERS = ("interrupts", "context_switches", "page_faults", "steal", "temperature.0")
"""As many as an agent reads once a second on a machine with one sensor."""
SPREAD = 0.05
"""Standard deviation of the logarithm of the factor by which a run is later than others."""

EMPTY = np.zeros(0, np.int64)


def several(folder: Path, n: int) -> list[Path]:
    """n records, made where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    own = [folder / f"run-{seed}.rtrec" for seed in range(min(OWN, n))]
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        pool.starmap(generate, [(path, seed) for seed, path in enumerate(own) if not path.exists()], chunksize=1)
    copies = [folder / f"again-{at}.rtrec" for at in range(len(own), n)]
    for at, path in enumerate(copies):
        if not path.exists():
            renumber(own[at % len(own)], path, at + OWN)
    return [*own, *copies]


def generate(path: Path, seed: int, n: int = SAMPLES) -> None:
    """The record of a run of n activations."""
    generator = np.random.default_rng(seed)
    factor = float(np.exp(generator.normal(0, SPREAD)))
    series = Series(0, 0, 0, True, False, PERIOD_NS, 0, "timer", "posix_timer", "latency", "ns")
    draft = path.with_suffix(".part")
    with RecordWriter(draft) as writer:
        numbers = (chunks.MAJOR, chunks.MINOR, _number(seed), 0, 0)
        writer.begin(Begin(*numbers, "bench", "armv5tejl", "3.0.12-rt30", "#1 PREEMPT RT"))
        for key, value in (("policy", "fifo"), ("duration_ns", n * PERIOD_NS), ("limits_ns", LIMIT_NS)):
            writer.fact(Fact(0, WHOLE_RUN, Moment.ASKED, key, str(value)))
        writer.series(series)
        for number, name in enumerate(COUNTERS):
            writer.counter(Counter(number, True, name, "count", EMPTY, EMPTY))
        feed = SeriesWriter(writer, series, limits_ns=(LIMIT_NS,))
        for start in range(0, n, PIECE):
            _tick(writer, start * PERIOD_NS, min(start + PIECE, n) * PERIOD_NS)
            feed.add((latencies(generator, min(PIECE, n - start)) * factor).astype(np.int64))
        writer.end(End(n * PERIOD_NS, EndReason.AS_ASKED, "", (feed.finish(),)))
    draft.rename(path)


def _tick(writer: RecordWriter, begin_ns: int, end_ns: int) -> None:
    """A reading of all counters for each second."""
    for time_ns in range(begin_ns, end_ns, SECOND_NS):
        second = time_ns // SECOND_NS
        writer.tick(time_ns, [(number, 1_000 * second + number) for number in range(len(COUNTERS))])


def ticks_mb(path: Path) -> float:
    """What the readings of counters take of a record."""
    with path.open("rb") as file:
        frames = walk_chunks(FileWindow(file.fileno(), path.stat().st_size))
        sizes = [
            len(frame_bytes(frame.type, frame.sequence, bytes(frame.payload)))
            for frame in frames
            if isinstance(frame, Frame) and frame.type == ChunkType.TICK
        ]
    return sum(sizes) / 1e6


def renumber(source: Path, path: Path, number: int) -> None:
    """The same record as another run."""
    draft = path.with_suffix(".part")
    with source.open("rb") as file, draft.open("wb") as new:
        for part in walk_chunks(FileWindow(file.fileno(), source.stat().st_size)):
            assert isinstance(part, Frame), "a record made here is whole"
            payload = bytes(part.payload)
            if part.type == ChunkType.BEGIN:
                head = list(chunks.BEGIN_FIELDS.unpack_from(payload))
                head[2] = _number(number)
                payload = chunks.BEGIN_FIELDS.pack(*head) + payload[chunks.BEGIN_FIELDS.size :]
            new.write(frame_bytes(part.type, part.sequence, payload))
    draft.rename(path)


def _number(run: int) -> bytes:
    return (run + 1).to_bytes(16, "big")
