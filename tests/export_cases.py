# SPDX-License-Identifier: Apache-2.0
"""A small run that the tests of all export formats share: two threads, gaps, early wake-ups, due times off the grid."""

from dataclasses import replace

from analysis_records import SERIES, block, record

from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Analysis
from rtproof.record import Record, Series, Slice, View, bins

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
    places = bins.index(values)
    squares = sum(value * value for value in values)
    ones = places * 0 + 1
    last = (len(values) - 1) * series.period_ns
    sums = (len(values), 0, values[0], values[-1], sum(values), squares)
    return Slice(series.id, View.OBSERVED, 0, last, *sums, 0, 0, 0, places, ones)
