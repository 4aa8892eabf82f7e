# SPDX-License-Identifier: Apache-2.0
"""Measure how many bytes the evidence of a long run takes, for each CPU.

A run with a slice at every checkpoint needs 40 MB, which shows that the check can fail. What exists once for all CPUs,
above all the readings of counters each second (TICK), is additional.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import cost_summary
from part import BUILD

from acceptance import Row, Simulation, at_most

LIMITS_NS = (1_000_000, 500_000)
"""Of the long run's values 1 in 28,000 is above the second, none above the first."""
PLACE = BUILD / "longrun-summary.rtrec"
MOST_BYTES = 5_000_000
SHORT = (6_000_000, 9_000_000)
"""In the third hour slices are half as long as later on, so that more bytes come with each activation."""


def summary_bytes(short: bool) -> Iterator[Row]:
    if not short:  # a simulated run of 54.5 h at 1 kHz, made once
        PLACE.parent.mkdir(exist_ok=True)
        cost_summary.generate(PLACE, cost_summary.SAMPLES, samples=False, limits_ns=LIMITS_NS)
        yield at_most(f"bytes of {cost_summary.SAMPLES:,} activations", PLACE.stat().st_size, MOST_BYTES)
        return
    with tempfile.TemporaryDirectory() as name:
        sizes = []
        for n in SHORT:
            path = Path(name) / str(n)
            cost_summary.generate(path, n, samples=False, limits_ns=LIMITS_NS)
            sizes.append(path.stat().st_size)
    grown = (sizes[1] - sizes[0]) / (SHORT[1] - SHORT[0]) * cost_summary.SAMPLES
    yield at_most(
        f"bytes of {cost_summary.SAMPLES:,} activations, if all came as in the third hour", grown, 1.4 * MOST_BYTES
    )


SIMULATIONS = (Simulation("14_bytes", "summary of a long run, of one CPU", summary_bytes),)
