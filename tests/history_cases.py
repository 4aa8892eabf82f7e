# SPDX-License-Identifier: Apache-2.0
"""Runs of one system in the order of time, as figures, with a change where a test wants one."""

from dataclasses import replace

import numpy as np
from analysis_records import SECOND

from rtproof.compare.run_metrics import RunFigures
from rtproof.record.contents import Seconds
from rtproof.summary.counts import counts_of_values

FACTS = {
    "probe": "timer",
    "field": "latency",
    "unit": "ns",
    "view": "observed",
    "period": "1ms",
    "kernel release": "6.1",
}
DAY = 86_400 * SECOND


def run(number: int, factor: float = 1.0, values: int = 4_000, facts: dict[str, str] | None = None) -> RunFigures:
    """Run of a day; latencies around 20 us, times ``factor`` and a few per cent that runs differ by. Four seconds."""
    generator = np.random.default_rng(number)
    drawn = generator.gamma(4.0, 5_000.0 * factor * np.exp(0.03 * generator.standard_normal()), values)
    latencies = drawn.astype(np.int64) + 1
    parts = np.array_split(latencies, 4)
    obtained = np.array([part.size for part in parts], np.int64)
    largest = np.array([part.max(initial=1) for part in parts], np.int64)
    return RunFigures(
        name=f"run {number:02}",
        facts=FACTS | (facts or {}),
        counts=counts_of_values(latencies),
        largest=int(latencies.max(initial=0)),
        seconds=Seconds(np.arange(4, dtype=np.int64), obtained, np.zeros(4, np.int64), largest),
        span_ns=4 * SECOND,
        run_id=f"{number + 1:032x}",
        started_ns=(20_000 + number) * DAY,
    )


def stepped(count: int = 40, at: int = 25, factor: float = 1.5) -> list[RunFigures]:
    """Runs whose latencies grow by a factor at run ``at``, and whose kernel is another from there."""
    kernel = "kernel release"
    return [run(n, facts={kernel: "6.1"}) if n < at else run(n, factor, facts={kernel: "6.12"}) for n in range(count)]


def invalid(figures: RunFigures, why: str = "the load was dead") -> RunFigures:
    return replace(figures, invalid=(why,))
