# SPDX-License-Identifier: Apache-2.0
"""How many independent values a run is worth for one of its quantiles, because late activations come together."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtproof.record.activations import Activations
from rtproof.record.contents import ChunkRef, Int64Array, Record, Series, View
from rtproof.summary.counts import Counts
from rtproof.summary.per_second import join_blocks, missed_between, refuse_impossible_stall

UNITS = 4096
FEWEST_UNITS = 512
LOOK = 1 << 19
"""The levels are taken from about this many samples, spread over the run. Reading them takes some milliseconds."""
SHARES = (0.5, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99995, 0.99999)
THREAD_SHARES = (0.5, 0.9, 0.99)
"""Shares for levels of each thread, so that threads which differ have levels of their own."""
MOST_LEVELS = 32
FEWEST_ABOVE = 10
"""A level needs at least this many larger values among the samples that were looked at."""


@dataclass(frozen=True)
class LevelPlan:
    """The units of time and the levels of a count: unit k begins at origin_ns + k * unit_ns.

    The last unit has no end. levels: increasing, in the unit of the series.
    """

    origin_ns: int
    unit_ns: int
    units: int
    levels: Int64Array


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """Counts for each unit of a plan.

    ran, missed: activations that ran and that were missed, one number for each unit.
    ran_above, missed_above: those of them that are above each level, as arrays of levels x units. missed_above is None
        if nothing was missed.
    """

    plan: LevelPlan
    ran: Int64Array
    missed: Int64Array
    ran_above: Int64Array
    missed_above: Int64Array | None


def level_plan(record: Record, field: tuple[Series, ...], refs: dict[int, list[ChunkRef]]) -> LevelPlan | None:
    """The units and levels for the series of one field; None without samples. refs: the chunks of each series."""
    wanted = {series.id: series for series in field if refs.get(series.id)}
    if not wanted:
        return None
    looked: dict[int, list[Int64Array]] = {series: [] for series in wanted}
    first, last = [], []
    # The first and the last chunk of each series, which give its span, and evenly spaced chunks between them.
    step = max(1, sum(ref.count for series in wanted for ref in refs[series]) // LOOK)
    chosen = [refs[series][::step] + (refs[series][-1:] if (len(refs[series]) - 1) % step else []) for series in wanted]
    for block in record.read_blocks(tuple(ref for some in chosen for ref in some)):
        series = wanted[block.series]
        refuse_impossible_stall(series, block)
        some, _ = join_blocks(series, [block])
        looked[series.id].append(some.value)
        first.append(block.first_due_ns)
        last.append(int(some.due_ns[-1]) + (int(some.missed[-1]) * series.period_ns if series.on_grid else 0))
    # In a damaged record due times may go back, so that the last one is the earliest.
    origin_ns = min(*first, *last)
    span_ns = max(*first, *last) - origin_ns + 1
    units = max(UNITS // -(-len(wanted) // 16), FEWEST_UNITS)
    unit_ns = max(-(-span_ns // units), *(series.period_ns for series in wanted.values()), 1)
    values = {series: np.concatenate(some) for series, some in looked.items()}
    return LevelPlan(origin_ns, unit_ns, -(-span_ns // unit_ns), _levels(list(values.values())))


def _levels(threads: list[Int64Array]) -> Int64Array:
    """Quantiles of all threads together, and quantiles of each thread unless these make too many levels."""
    together = _quantiles(np.concatenate(threads), SHARES)
    own = [level for values in threads for level in _quantiles(values, THREAD_SHARES)] if len(threads) > 1 else []
    found = {*together, *own}
    return np.array(sorted(found if len(found) <= MOST_LEVELS else set(together)), np.int64)


def _quantiles(values: Int64Array, shares: tuple[float, ...]) -> list[int]:
    ranks = [int(share * values.size) for share in shares if (1 - share) * values.size >= FEWEST_ABOVE]
    parted = np.partition(values, ranks) if ranks else values
    return [int(parted[rank]) for rank in ranks]


class BlockCounter:
    """Counts the activations of one series, piece after piece."""

    def __init__(self, series: Series, plan: LevelPlan) -> None:
        self._series, self._plan = series, plan
        self._ran, self._missed = np.zeros((2, plan.units), np.int64)
        self._ran_above = np.zeros((plan.levels.size, plan.units), np.int64)
        self._missed_above: Int64Array | None = None

    def add(self, some: Activations) -> None:
        """Count some activations."""
        plan, gap = self._plan, some.missed > 0
        unit = np.clip((some.due_ns - plan.origin_ns) // plan.unit_ns, 0, plan.units - 1)
        self._ran += np.bincount(unit, minlength=plan.units)
        value = some.value
        for row, level in zip(self._ran_above, plan.levels.tolist(), strict=True):
            above = value > level
            unit, value = unit[above], value[above]
            row[:] += np.bincount(unit, minlength=plan.units)
        self._add_missed(some.due_ns[gap], some.value[gap], some.missed[gap])

    def add_counted(self, ran: Int64Array, above: Int64Array, gaps: tuple[Int64Array, Int64Array, Int64Array]) -> None:
        """Add what is counted: ran and above as in the result; due time, latency and missed activations of all gaps."""
        self._ran += ran
        self._ran_above += above
        self._add_missed(*gaps)

    def _add_missed(self, due_ns: Int64Array, late: Int64Array, missed: Int64Array) -> None:
        if not missed.size:
            return
        edges = self._plan.origin_ns + np.arange(1, self._plan.units) * self._plan.unit_ns
        period_ns = max(self._series.period_ns, 1)
        self._missed += missed_between(due_ns, missed, period_ns, edges)
        if self._missed_above is None:
            self._missed_above = np.zeros_like(self._ran_above)
        for row, level in zip(self._missed_above, self._plan.levels.tolist(), strict=True):
            above = np.clip((late - level - 1) // period_ns, 0, missed)
            row[:] += missed_between(due_ns, above, period_ns, edges)

    def result(self) -> BlockCounts:
        """The counts of all blocks so far."""
        return BlockCounts(self._plan, self._ran, self._missed, self._ran_above, self._missed_above)


def merge_block_counts(parts: Iterable[BlockCounts | None]) -> BlockCounts | None:
    """The sum of parts that have the same plan; None without parts, if one is None, or if the plans differ."""
    some = list(parts)
    known = [part for part in some if part is not None]
    if not known or len(known) < len(some) or any(part.plan is not known[0].plan for part in known):
        return None
    missed = [part.missed_above for part in known if part.missed_above is not None]
    return BlockCounts(
        known[0].plan,
        np.sum([part.ran for part in known], axis=0),
        np.sum([part.missed for part in known], axis=0),
        np.sum([part.ran_above for part in known], axis=0),
        np.sum(missed, axis=0) if missed else None,
    )


# The next functions compute the factor by which dependence reduces the number of values.
#
# Latencies above a level come in bursts and in bad minutes. Of n values, the number above the level then varies more
# from run to run than if the values were independent. The run itself shows by how much: cut it into blocks, and divide
# the variance of the blocks' counts by the variance of independent values. This is done for blocks of growing length.
# The largest of these factors divides n.
#
# The factor is trusted only if the run is BLOCKS times as long as the bunches and has CLUSTERS of them above the level.
# The run cannot show what lasts longer than the run, or what did not happen in it.


FEWEST_BLOCKS = 16
"""There must be at least this many of the longest blocks. The variance of fewer blocks says little."""
SIGNIFICANT = 3.0
"""From this many standard deviations beyond 1, a factor is dependence. 1 % of independent runs have such a factor."""
BLOCKS = 200
CLUSTERS = 12
SURE = 200
"""From this many values above a level on, they show their own bunches. With fewer, the level below counts too."""
MOST_SCATTER = 0.32
"""The largest relative standard deviation of a usable factor. Beyond it, a few blocks decide the factor."""
NEAR = 0.1
"""Two levels count as the same if their numbers of larger values differ by no more than this share."""
OVERLAP = 1.5
"""Overlapping blocks say as much as this many times more blocks that stand side by side."""


class DependenceLength(NamedTuple):
    """The factor for blocks of one length, its relative standard deviation, and whether it is more than chance.

    units: the length of the blocks.
    """

    units: int
    factor: float
    scatter: float
    significant: bool


def dependence_factor(blocks: BlockCounts, counts: Counts, value: int, view: View) -> float | None:
    """n divided by the number of independent values that the run is worth for the quantile ``value``.

    It is 1 if nothing speaks against n, and None if the run does not show it. counts: those of the view. Between two
    levels, the larger of the two factors is taken.
    """
    above, factors = _of_levels(blocks, view)
    if not above:
        return None
    wanted = counts.exceedances(value)[1]
    for count, found in zip(above, factors, strict=True):
        if abs(count - wanted) <= NEAR * wanted:
            return found
    below = max((at for at, count in enumerate(above) if count >= wanted), default=0)
    some = factors[below : below + 2]
    return None if None in some else max(each for each in some if each is not None)


@lru_cache(maxsize=256)
def _of_levels(blocks: BlockCounts, view: View) -> tuple[list[int], list[float | None]]:
    """The number of values above each level, and the factor of each level."""
    ran, above = blocks.ran, blocks.ran_above
    if view is View.CHARGED:
        ran = ran + blocks.missed
        above = above if blocks.missed_above is None else above + blocks.missed_above
    factors: list[float | None] = []
    known: float | None = 1.0
    for row in above:
        count = int(row.sum())
        found = inflation(row, ran)
        if count >= SURE:
            known = found
        elif found is not None:
            found = None if known is None else max(found, known)
            found = None if found is not None and found > 1 and count < CLUSTERS * found else found
        factors.append(found)
    return [int(row.sum()) for row in above], factors


def inflation(above: Int64Array, ran: Int64Array) -> float | None:
    """The factor of one level; None if the run does not show it. above, ran: for each unit, values above it and all."""
    count, n = int(above.sum()), int(ran.sum())
    if above.size < FEWEST_BLOCKS or not n:
        return None
    if count in (0, n):
        return 1.0
    lengths = _lengths(above - ran * (count / n), n * (count / n) * (1 - count / n), count)
    beyond = [each for each in lengths if each.significant]
    if not beyond:
        return 1.0
    most = max(lengths, key=lambda each: each.factor / (1 + each.scatter / 2))
    found = max(most.factor * (1 + most.scatter), 1.0)
    half = (max(each.factor for each in beyond) - 1) / 2
    lasting = next(each.units for each in beyond if each.factor - 1 >= half)
    unknown = most.scatter > MOST_SCATTER or above.size < BLOCKS * lasting or count < CLUSTERS * found
    return None if unknown else found


def _lengths(residuals: NDArray[np.float64], variance: float, count: int) -> list[DependenceLength]:
    """The factors for blocks of 1, 2, 4, ... units. variance: that of independent values over the whole run."""
    units = residuals.size
    sums = np.concatenate(([0.0], np.cumsum(residuals)))
    found, length = [], 1
    while units // length >= FEWEST_BLOCKS:
        squares = (sums[length:] - sums[:-length]) ** 2
        mean = float(squares.mean())
        blocks = units if length == 1 else OVERLAP * units / length
        freedom = 1 / (1 / blocks + 1 / (2 * count))
        kurtosis = float((squares**2).mean()) / mean**2 if mean else 3.0
        scatter = max(math.sqrt(2 / freedom), math.sqrt(max(kurtosis - 1, 0.0) / blocks))
        inflated = mean / (variance * length / units) / (1 - length / units)
        # Chi squared over its degrees of freedom hardly exceeds this (Wilson and Hilferty 1931).
        part = 2 / (9 * freedom)
        by_chance = float((1 - part + SIGNIFICANT * math.sqrt(part)) ** 3)
        found.append(DependenceLength(length, inflated, scatter, inflated > by_chance))
        length *= 2
    return found
