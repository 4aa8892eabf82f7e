# SPDX-License-Identifier: Apache-2.0
"""Tests whether the tail stays the same during a run: on the largest latency of each second, and for slow changes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.record.contents import Int64Array
from rtproof.statistics import Floats, beta_tails, gamma_tails
from rtproof.summary.per_second import SECOND_NS

# The first functions test whether the latencies change more slowly than the run can show. The test looks at the whole
# distribution, not at its tail alone.
#
# The largest latencies of the seconds are averaged over blocks of a minute, in four ways. The average rank shows where
# the body lies. The average exponential score of the rank shows how wide the tail is (Savage 1956). The other two are
# the shares above two levels.
#
# A cosine transform splits each series of averages into half waves: the k-th has k half waves in the whole run. Changes
# faster than a few minutes, bursts and storms included, give all of the slow half waves the same mean square. A rhythm
# or a drift of which the run shows at most ten whole periods raises the first SLOW half waves above the next ones.
# The ratio of mean squares has the F distribution (R. A. Fisher), because averages over many seconds are nearly normal.


MINUTE_SLOTS = 12
"""Slots in a block: 1 min of slots of 5 s."""
MOST_MINUTE_BLOCKS = 4_000
"""The most blocks of a run. A longer run has longer blocks, since only the slowest half waves are looked at."""
FEWEST_MINUTE_BLOCKS = 48
SLOW = 20
"""The slow half waves: ten whole periods in the run. With fewer, a forecast misses the rhythm's next turns."""
TESTED = (1, 2, 6, SLOW)
"""How many of the first half waves are tested together. A steady drift is mostly in the first one."""
COMPARED = 60
"""They are compared with the half waves after SLOW, up to this one."""
PARTS = 4
"""The parts of the run whose values are named."""
_WHOLE_MINUTES = 0.5
"""A block needs at least this share of the usual number of seconds."""


@dataclass(frozen=True)
class SlowChange:
    """A slow change of the latencies.

    p: the p-value, over all tests, of a run in which nothing varies more slowly than a third of it. share: the share of
    the seconds above the value that shows the change best.
    lowest_ns, highest_ns: that value in the quarter of the run where it is lowest, and where it is highest.
    """

    p: float
    share: float
    lowest_ns: int
    highest_ns: int


def slow_change(second: Int64Array, largest_ns: Int64Array, slot_s: int) -> SlowChange | None:
    """The slow change of the largest latencies of the seconds; None if the run is too short, or all values are alike.

    second: increasing. largest_ns: the largest latency of each. slot_s: the length of a slot in seconds.
    """
    if not second.size or largest_ns.min() == largest_ns.max():
        return None
    slots = int(second[-1] - second[0]) // slot_s + 1
    block = (second - second[0]) // (slot_s * max(MINUTE_SLOTS, math.ceil(slots / MOST_MINUTE_BLOCKS)))
    place, seconds = np.unique(block, return_inverse=True, return_counts=True)[1:]
    whole = seconds >= _WHOLE_MINUTES * np.median(seconds)
    if np.count_nonzero(whole) < FEWEST_MINUTE_BLOCKS:
        return None
    found = [
        (p, share)
        for share, of_second in _all_scores(largest_ns)
        for p in slow_p((np.bincount(place, of_second) / seconds)[whole])
    ]
    p, share = min(found)
    # The value that the share exceeds, in each quarter of the run.
    parts = np.array_split(largest_ns, PARTS)
    values = [int(np.quantile(part, 1 - share, method="higher")) for part in parts]
    return SlowChange(min(1.0, p * len(found)), share, min(values), max(values))


def slow_p(averages: Floats) -> Iterator[float]:
    """Yield for each of TESTED the p-value of half waves at least this strong, if none is stronger than the next."""
    size = averages.size
    numbers = np.arange(1, min(COMPARED, size - 1) + 1)[:, np.newaxis]
    waves = np.cos(np.pi * numbers * (np.arange(size) + 0.5) / size)
    squares = (waves @ (averages - averages.mean())) ** 2
    rest, freedom = float(squares[SLOW:].mean()), squares.size - SLOW
    for together in TESTED:
        ratio = float(squares[:together].mean()) / rest if rest > 0 else 0.0
        # P(F >= ratio), with these degrees of freedom.
        yield beta_tails(freedom / (freedom + together * ratio), freedom / 2, together / 2)[0]


def _all_scores(largest_ns: Int64Array) -> Iterator[tuple[float, Floats]]:
    """Yield the four scores of each second, each with its share. Equal values share the middle one of their ranks."""
    place, count = np.unique(largest_ns, return_inverse=True, return_counts=True)[1:]
    below = ((np.cumsum(count) - count / 2) / largest_ns.size)[place]
    yield 0.5, below
    yield 0.1, -np.log1p(-below)
    for share in (0.1, 0.02):
        yield share, (below > 1 - share).astype(np.float64)


SLOT_S = 5
SLOTS = 120
"""Slots in a block: 10 min of slots of 5 s."""
SHARES = (0.1, 0.02, 0.005)
"""The shares of the seconds above each level: low levels for runs with many large latencies, high levels for few."""
FEWEST_BLOCKS = 3
_WHOLE = 0.5
"""A block needs at least this share of its slots. With fewer it is left out."""


@dataclass(frozen=True)
class Stationarity:
    """The tests whether a run is even. dispersion_p is None if the run is too short, or all its seconds are alike.

    dispersion_p: the p-value of a constant rate; None: nothing to compare.
    blocks: the number of compared stretches, each of 120 slots. slot_s: the length of a slot. level_ns: the level
    with the smallest p-value, above which slots are counted.
    lowest: the fewest slots of a stretch that exceed that level. highest: the most slots of a stretch that exceed it.
    """

    dispersion_p: float | None = None
    blocks: int = 0
    lowest: int = 0
    highest: int = 0
    level_ns: int | None = None
    slot_s: int = SLOT_S
    slow: SlowChange | None = None

    @property
    def block_ns(self) -> int:
        """The length of a stretch."""
        return SLOTS * self.slot_s * SECOND_NS


BlockCounts = tuple[Int64Array, Int64Array]
"""For each block, how many slots were measured, and how many of these had a latency above a level."""


def stationarity(second: Int64Array, largest_ns: Int64Array) -> Stationarity:
    """The tests on the largest latency of each second (increasing, without those in which nothing ran)."""
    # Long enough for an activation in most slots.
    slot_s = max(SLOT_S, math.ceil(float(np.median(np.diff(second))))) if second.size > 1 else SLOT_S
    slow = slow_change(second, largest_ns, slot_s)
    ordered = np.sort(largest_ns)
    ranks = [max(math.ceil((1 - share) * ordered.size) - 1, 0) for share in SHARES if ordered.size]
    # Some seconds exceed each of these levels.
    levels = sorted({int(ordered[rank]) for rank in ranks if ordered[rank] < ordered[-1]})
    found = [(blocks, level) for level in levels if (blocks := _blocks(second, largest_ns, level, slot_s))]
    if not found:
        return Stationarity(slot_s=slot_s, slow=slow)
    p, (_, hits), level_ns = min(
        ((dispersion_p(*each), each, level) for each, level in found), key=lambda each: each[0]
    )
    ends = int(hits.min()), int(hits.max())
    return Stationarity(min(1.0, p * len(found)), hits.size, *ends, level_ns, slot_s, slow)


def dispersion_p(slots: Int64Array, hits: Int64Array) -> float:
    """The probability of counts that differ at least this much between blocks, if all slots are alike."""
    share = float(hits.sum() / slots.sum())
    expected = slots * share
    if not 0 < share < 1:
        return 1.0
    chi_squared = float((((hits - expected) ** 2) / (expected * (1 - share))).sum())
    return gamma_tails((hits.size - 1) / 2, chi_squared / 2)[1]


def _blocks(second: Int64Array, largest_ns: Int64Array, level_ns: int, slot_s: int) -> BlockCounts | None:
    """The blocks of a run at one level; None if they are too few to compare."""
    slot, place = np.unique((second - second[0]) // slot_s, return_inverse=True)
    hit = np.zeros(slot.size, np.int64)
    np.maximum.at(hit, place, (largest_ns > level_ns).astype(np.int64))
    starts = np.unique(slot // SLOTS, return_index=True)[1]
    measured = np.diff(np.append(starts, slot.size))
    whole = measured >= _WHOLE * SLOTS
    if np.count_nonzero(whole) < FEWEST_BLOCKS:
        return None
    return measured[whole], np.add.reduceat(hit, starts)[whole]
