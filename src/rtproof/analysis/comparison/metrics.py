# SPDX-License-Identifier: Apache-2.0
"""Which figures of the runs are compared: each metric has one logarithm of every run of both sides, or none at all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rtproof.analysis.comparison.figures import QUANTILES, Reading, RunFigures
from rtproof.analysis.comparison.model import Impossible
from rtproof.analysis.counts import Counts, merge
from rtproof.analysis.phrases import percent, value
from rtproof.errors import UserError

LEVELS = (0.999, 0.9999)
"""Shares of all values of both sides together that the reference levels are to lie above."""
MOST_LEVELS = 2
"""More metrics than six could never be significant with five runs a side: the smallest p there is is 2 of 252."""
EXPECTED = 5.0
"""Values that the shorter runs should have above a level for its share to say anything."""
THREE = 3.0
"""Of n values none is above a level: then at 95 % at most this share of n lies there (Hanley and Lippman-Hand 1983)."""
SHARE = "share"
_Read = Callable[[RunFigures], Reading]
Pair = tuple[tuple[Reading, ...], tuple[Reading, ...]]


@dataclass(frozen=True)
class Metric:
    """readings: of the runs of both sides, each with a logarithm. unit: of its exponential. notes: sentences."""

    key: str
    label: str
    unit: str
    readings: Pair = ((), ())
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[list[float], list[float]]:
        a, b = ([reading.ln for reading in side if reading.ln is not None] for side in self.readings)
        return a, b

    @property
    def width(self) -> tuple[float, float]:
        """How much the bins of the histograms leave open of the difference of the means, downwards and upwards."""
        (a_down, a_up), (b_down, b_up) = (_slack(side) for side in self.readings)
        return a_down + b_up, a_up + b_down


def metrics(
    a: Sequence[RunFigures], b: Sequence[RunFigures], levels: Sequence[int]
) -> tuple[tuple[Metric, ...], tuple[Impossible, ...]]:
    """Those that all runs have, and why not of the others."""
    unit = a[0].unit
    every = [
        *(_metric(Metric(f"p{100 * p:g}", f"p{100 * p:g}", unit), (a, b), _quantile(p)) for p in QUANTILES),
        *(_above(level, a, b) for level in levels),
        _metric(Metric("second_maxima", "maximum of a second", unit), (a, b), lambda run: run.second_maxima),
    ]
    found = tuple(one for one in every if isinstance(one, Metric))
    return found, tuple(one for one in every if isinstance(one, Impossible))


def reference_levels(
    a: Sequence[RunFigures], b: Sequence[RunFigures], asked: Sequence[int] = ()
) -> tuple[tuple[int, ...], tuple[Impossible, ...]]:
    """Those asked for, else the values of LEVELS among all values of both sides together.

    Both sides, so that without a difference every way to split the runs is still equally likely. UserError for more
    than MOST_LEVELS.
    """
    if len(set(asked)) > MOST_LEVELS:
        raise UserError(f"a comparison has {MOST_LEVELS} levels at most: with more, five runs a side show nothing")
    if asked:
        return tuple(sorted(set(asked))), ()
    together = RunFigures("", {}, pooled((*a, *b)), overflow=sum(run.overflow for run in (*a, *b)))
    fewest = min(run.n for run in (*a, *b))
    levels, impossible = [], []
    for share in LEVELS:
        reading, label = _level(together, share), f"share above the value of {percent(share)}"
        if isinstance(reading, str):
            impossible.append(Impossible(f"above_p{100 * share:g}", label, reading))
        elif fewest * (1 - share) < EXPECTED:
            why = f"the shortest run has {fewest:,} values, of which {fewest * (1 - share):.2g} would lie above it"
            impossible.append(Impossible(f"above_p{100 * share:g}", label, why))
        elif reading not in levels:
            levels.append(reading)
    return tuple(levels), tuple(impossible)


def pooled(runs: Sequence[RunFigures]) -> Counts:
    """The counts of all runs together."""
    return merge(run.counts for run in runs)


def _level(together: RunFigures, share: float) -> int | str:
    """The upper end of the bin that has the value, which no run's bin crosses."""
    rank = math.ceil(together.n * Fraction(repr(share)))
    if not 1 <= rank <= together.counts.total:
        return "it lies beyond the scale of the histograms"
    return together.counts.value_at_rank(rank)[1]


def _quantile(p: float) -> _Read:
    return lambda run: run.quantile(p)


def _above(level: int, a: Sequence[RunFigures], b: Sequence[RunFigures]) -> Metric | Impossible:
    key, label = f"above_{level}", f"share above {value(level)}"
    empty = [sum(run.above(level)[1] == 0 for run in side) for side in (a, b)]
    notes = (f"{empty[0]} of {len(a)} and {empty[1]} of {len(b)} runs have no value above it",) if any(empty) else ()
    if empty == [len(a), len(b)]:
        return Impossible(key, label, f"no run of either side has a value above {value(level)}")
    found = _metric(Metric(key, label, SHARE, notes=notes), (a, b), lambda run: run.share_above(level))
    if not isinstance(found, Metric):
        return found
    sides = [
        _open(side, runs) if n == len(runs) else side
        for side, runs, n in zip(found.readings, (a, b), empty, strict=True)
    ]
    return replace(found, readings=(sides[0], sides[1]))


def _open(readings: tuple[Reading, ...], runs: Sequence[RunFigures]) -> tuple[Reading, ...]:
    """Of a side without any value above the level: its share may be 0, and at most what the rule of three leaves."""
    most = math.log(THREE / sum(run.n for run in runs))
    return tuple(replace(one, ln_low=-math.inf, ln_high=max(most, one.ln_high or most)) for one in readings)


def _metric(metric: Metric, sides: Sequence[Sequence[RunFigures]], read: _Read) -> Metric | Impossible:
    """The metric with its readings."""
    a, b = (tuple(read(run) for run in side) for side in sides)
    for run, reading in zip((*sides[0], *sides[1]), (*a, *b), strict=True):
        if reading.ln is None:
            return Impossible(metric.key, metric.label, f"{run.name}: {reading.why}")
    return replace(metric, readings=(a, b))


def _slack(side: Sequence[Reading]) -> tuple[float, float]:
    """Mean distance of the readings from the lower and the upper ends of what their bins leave."""
    down = [one.ln - one.ln_low for one in side if one.ln is not None and one.ln_low is not None]
    up = [one.ln_high - one.ln for one in side if one.ln is not None and one.ln_high is not None]
    return sum(down) / len(side), sum(up) / len(side)
