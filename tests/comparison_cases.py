# SPDX-License-Identifier: Apache-2.0
"""Runs for the tests of comparison, drawn from distributions whose truth is known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtproof.compare.run_metrics import RunFigures
from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array, Seconds
from rtproof.summary.counts import Counts

FACTS = {
    "probe": "timer",
    "method": "clock_nanosleep",
    "field": "latency",
    "unit": "ns",
    "view": "observed",
    "virtual time": "no",
    "load": "sched",
    "period": "1ms",
    "policy": "fifo",
    "CPUs": "0-3",
    "threads": "4",
    "governor": "performance",
}
VALUES = 20_000
"""Of a run."""
DAY_NS = 86_400 * 10**9
FIRST_DAY = 20_000


def counted(values: Int64Array) -> Counts:
    """In the bins of a record."""
    places, n = np.unique(histogram_bins.bin_of(values), return_counts=True)
    return Counts(*histogram_bins.bin_edges(places), n.astype(np.int64))


def run_of(values: Int64Array, name: str = "run", **facts: str) -> RunFigures:
    """A run with these values in order, a thousand a second."""
    seconds = max(values.size // 1_000, 1)
    largest = np.array([part.max() for part in np.array_split(values, seconds)], np.int64)
    zeros = np.zeros(seconds, np.int64)
    return RunFigures(
        name=name,
        facts=FACTS | facts,
        counts=counted(values),
        largest=int(values.max()),
        seconds=Seconds(np.arange(seconds), zeros + 1_000, zeros, largest),
        span_ns=seconds * 10**9,
    )


def latencies(
    random: np.random.Generator, n: int, factor: float = 1.0, tail: float = 0.0, times: float = 10.0
) -> Int64Array:
    """Log-normal around 20 us times a factor; a share ``tail`` of them is so many times as late."""
    values = 20_000 * factor * np.exp(random.normal(0, 0.4, n))
    values[random.random(n) < tail] *= times
    return values.astype(np.int64)


def side(
    seed: int, runs: int, factor: float = 1.0, scatter: float = 0.1, tail: float = 0.0, **facts: str
) -> list[RunFigures]:
    """Runs whose own factors scatter log-normally around one, a day apart; sides with other seeds take turns."""
    random = np.random.default_rng(seed)
    factors = factor * np.exp(random.normal(0, scatter, runs))
    made = [run_of(latencies(random, VALUES, each, tail), f"run {seed}.{i}", **facts) for i, each in enumerate(factors)]
    return [replace(run, started_ns=(FIRST_DAY + i) * DAY_NS + seed * 10**9) for i, run in enumerate(made)]


def in_time(runs: Sequence[RunFigures], first: int, step: int, boot_ns: int = 1) -> list[RunFigures]:
    """The runs started so many days apart."""
    return [
        replace(run, started_ns=(FIRST_DAY + first + step * i) * DAY_NS, booted_ns=boot_ns, run_id=f"{first}.{i}")
        for i, run in enumerate(runs)
    ]
