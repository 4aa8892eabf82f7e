# SPDX-License-Identifier: Apache-2.0
"""A small run that the tests of all export formats share: two threads, gaps, early wake-ups, due times off the grid."""

from dataclasses import replace

import numpy as np
from analysis_records import SERIES, array, block, record
from msgspec import structs

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record import histogram_bins
from rtproof.record.contents import Level, Record, Series, Slice, View

FIRST = replace(SERIES, id=0, thread=0, cpu=0)
SECOND = replace(SERIES, id=1, thread=1, cpu=3, on_grid=False, first_due_ns=500)


def small_record() -> Record:
    """Thread 0: 6 ran, 4 missed; thread 1: 3 ran, which cannot miss any, because it sleeps from wake-up to wake-up."""
    blocks = [
        block([1_000, 3_002_500, -300, 1_900_000], {1: 3, 3: 1}, series=FIRST),
        block([7, 70_000], first_index=8, series=FIRST),
        block([100, 200, 300], series=SECOND),
    ]
    return record(blocks, (FIRST, SECOND))


def small_analysis() -> Analysis:
    return analyse(small_record())


def summary_analysis(values: tuple[int, ...] = (1_000, 5_001, 75_000)) -> Analysis:
    """A run that kept only the summary of these values."""
    return analyse(
        record([], (replace(FIRST, has_samples=False),), slices=(slice_of_values(FIRST, sorted(values)),), end=None)
    )


def slice_of_values(series: Series, values: list[int]) -> Slice:
    """The summary of all values of a series, which are sorted."""
    places = histogram_bins.bin_of(values)
    squares = sum(value * value for value in values)
    stored = histogram_bins.histogram_bytes(places, places * 0 + 1)
    last = (len(values) - 1) * series.period_ns
    sums = (len(values), 0, values[0], values[-1], sum(values), squares)
    return Slice(series.id, View.OBSERVED, 0, last, *sums, 0, 0, 0, stored)


def level_above(number: int, limit_ns: int, rows: list[tuple[int, int, int]], ran: int, missed: int = 0) -> Level:
    index, due_ns, above = (array(*column) for column in zip(*rows, strict=True))
    counts = (np.arange(1), array(ran), array(missed))
    return Level(number, limit_ns, False, 0, 0.0, 0, *counts, index, due_ns, above, len(rows) < ran)


LEVELS = {
    FIRST.id: (
        level_above(0, 1_000_000, [(1, 1_000_000, 3_002_500), (6, 6_000_000, 1_900_000)], ran=5, missed=2),
        level_above(1, 50_000, [(9, 9_000_000, 70_000)], ran=1),
        structs.replace(level_above(2, 60_000, [(9, 9_000_000, 70_000)], ran=1), learned=True),
    ),
    SECOND.id: (level_above(0, 1_000_000, [(4, 500, 1_000_001)], ran=1),),
}


def limited_record() -> Record:
    """The small run with lists of what was above its two limits, one of them not whole, and a learned level."""
    return replace(small_record(), levels=LEVELS)
