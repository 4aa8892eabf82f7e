# SPDX-License-Identifier: Apache-2.0
"""Does the tail stay the same during a run? Tests on the largest latency of each second, and for slow changes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import Int64Array
from rtproof.statistics import beta_tails, gamma_tails
from rtproof.summary.per_second import SECOND_NS

Floats = NDArray[np.float64]

# Do the latencies change more slowly than the run can show? A test of the whole distribution, not of its tail alone.
#
# The largest latencies of the seconds are averaged over blocks of a minute, in four ways: by their rank (where the
# body
# lies), by the exponential score of the rank (how wide the tail is; Savage 1956), and as shares above two levels. A
# cosine transform takes each series of averages apart into half waves: the k-th has k half waves in the whole run.
# What
# varies faster than a few minutes gives all of the slow half waves the same mean square, bursts and storms included.
# A
# rhythm or a drift of which the run shows at most three whole periods raises the first SLOW of them above the next
# ones.
# The ratio of mean squares has the F distribution (R. A. Fisher), because averages over many seconds are nearly
# normal.


MINUTE_SLOTS = 12
"""In a block: 1 min of slots of 5 s."""
MOST_MINUTE_BLOCKS = 4_000
"""Of longer runs the blocks are longer, since only the slowest half waves are looked at."""
FEWEST_MINUTE_BLOCKS = 24
SLOW = 6
"""Half waves: three whole periods in the run, which is the least that shows a rhythm as one that returns."""
TESTED = (1, 2, SLOW)
"""The first half waves that are tested together: a steady drift is mostly in the first one."""
COMPARED = 42
"""... with those after SLOW, up to this one."""
PARTS = 4
"""Parts of the run whose values are named."""
_WHOLE_MINUTES = 0.5
"""Share of the usual number of seconds that a block must have."""


@dataclass(frozen=True)
class SlowChange:
    """p: chance of slow half waves at least this strong in an even run, over all of the tests.

    share: of the seconds that lie above the value which tells most. lowest_ns, highest_ns: that value in the quarter of
    the run where it is lowest, and where it is highest.
    """

    p: float
    share: float
    lowest_ns: int
    highest_ns: int


@dataclass(frozen=True)
class _Scores:
    share: float
    of_second: Floats


def slow_change(second: Int64Array, largest_ns: Int64Array, slot_s: int) -> SlowChange | None:
    """Of the largest latency of each second; seconds increasing. None for runs too short, or with all values alike."""
    if not second.size or largest_ns.min() == largest_ns.max():
        return None
    block = (second - second[0]) // (slot_s * _slots(second, slot_s))
    place, seconds = np.unique(block, return_inverse=True, return_counts=True)[1:]
    whole = seconds >= _WHOLE_MINUTES * np.median(seconds)
    if np.count_nonzero(whole) < FEWEST_MINUTE_BLOCKS:
        return None
    found = [
        (p, scores.share)
        for scores in _all_scores(largest_ns)
        for p in slow_p((np.bincount(place, scores.of_second) / seconds)[whole])
    ]
    p, share = min(found)
    return SlowChange(min(1.0, p * len(found)), share, *_ends(largest_ns, share))


def slow_p(averages: Floats) -> Iterator[float]:
    """For each of TESTED: chance that its half waves are at least this strong, if none is stronger than the next."""
    size = averages.size
    numbers = np.arange(1, min(COMPARED, size - 1) + 1)[:, np.newaxis]
    waves = np.cos(np.pi * numbers * (np.arange(size) + 0.5) / size)
    squares = (waves @ (averages - averages.mean())) ** 2
    rest, freedom = float(squares[SLOW:].mean()), squares.size - SLOW
    for together in TESTED:
        strength = float(squares[:together].mean())
        yield _f_above(strength / rest, together, freedom) if rest > 0 else 1.0


def _f_above(ratio: float, above: int, below: int) -> float:
    """P(F >= ratio) with these degrees of freedom."""
    return beta_tails(below / (below + above * ratio), below / 2, above / 2)[0]


def _slots(second: Int64Array, slot_s: int) -> int:
    slots = int(second[-1] - second[0]) // slot_s + 1
    return max(MINUTE_SLOTS, math.ceil(slots / MOST_MINUTE_BLOCKS))


def _all_scores(largest_ns: Int64Array) -> Iterator[_Scores]:
    """Values that are the same have the same rank, the middle one of theirs."""
    place, count = np.unique(largest_ns, return_inverse=True, return_counts=True)[1:]
    below = ((np.cumsum(count) - count / 2) / largest_ns.size)[place]
    yield _Scores(0.5, below)
    yield _Scores(0.1, -np.log1p(-below))
    for share in (0.1, 0.02):
        yield _Scores(share, (below > 1 - share).astype(np.float64))


def _ends(largest_ns: Int64Array, share: float) -> tuple[int, int]:
    values = [int(np.quantile(part, 1 - share, method="higher")) for part in np.array_split(largest_ns, PARTS)]
    return min(values), max(values)


SLOT_S = 5
SLOTS = 120
"""In a block: 10 min of slots of 5 s."""
SHARES = (0.1, 0.02, 0.005)
"""Shares of the seconds above each level: low ones for runs with many large latencies, high ones for few."""
FEWEST_BLOCKS = 3
MOST_BLOCKS = 2_000
"""For the trend neighbouring blocks are added up until there are no more than this."""
_WHOLE = 0.5
"""Share of its slots that a block must have; less counts as no block."""


@dataclass(frozen=True)
class Stationarity:
    """p-values of an even run; None where the run is too short, or all of its seconds are alike.

    blocks: stretches that were compared, each of SLOTS slots of slot_s. lowest, highest: events in one of them, at the
    level whose p-value is the smallest, and that level.
    """

    dispersion_p: float | None = None
    trend_p: float | None = None
    blocks: int = 0
    lowest: int = 0
    highest: int = 0
    level_ns: int | None = None
    slot_s: int = SLOT_S
    slow: SlowChange | None = None

    @property
    def block_ns(self) -> int:
        return SLOTS * self.slot_s * SECOND_NS


@dataclass(frozen=True)
class BlockMaxima:
    """Per block how many slots were measured and in how many of them the level was exceeded."""

    level_ns: int
    slots: Int64Array
    hits: Int64Array


def stationarity(second: Int64Array, largest_ns: Int64Array) -> Stationarity:
    """Of the largest latency of each second; seconds increasing, those in which nothing ran left out."""
    slot_s = _slot_s(second)
    slow = slow_change(second, largest_ns, slot_s)
    found = [blocks for level in _levels(largest_ns) if (blocks := _blocks(second, largest_ns, level, slot_s))]
    if not found:
        return Stationarity(slot_s=slot_s, slow=slow)
    even, trend = (_smallest(found, test) for test in (dispersion_p, _trend_of))
    decides = found[even[1] if even[0] <= trend[0] else trend[1]]
    ends = int(decides.hits.min()), int(decides.hits.max())
    return Stationarity(even[0], trend[0], decides.hits.size, *ends, decides.level_ns, slot_s, slow)


def dispersion_p(blocks: BlockMaxima) -> float:
    """Chance of counts that differ at least this much between blocks, if all slots are alike."""
    share = float(blocks.hits.sum() / blocks.slots.sum())
    expected = blocks.slots * share
    if not 0 < share < 1:
        return 1.0
    chi_squared = float((((blocks.hits - expected) ** 2) / (expected * (1 - share))).sum())
    return gamma_tails((blocks.hits.size - 1) / 2, chi_squared / 2)[1]


def trend_p(values: Floats) -> float:
    """Two-sided chance of a rank correlation with time at least this far from none, by the normal approximation."""
    n = values.size
    score = sum(int(np.sign(values[at + 1 :] - values[at]).sum()) for at in range(n - 1))
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 1.0
    return math.erfc(max(abs(score) - 1, 0) / math.sqrt(2 * variance))


def _trend_of(blocks: BlockMaxima) -> float:
    together = -(-blocks.hits.size // MOST_BLOCKS)
    starts = np.arange(0, blocks.hits.size, together)
    return trend_p(np.add.reduceat(blocks.hits, starts) / np.add.reduceat(blocks.slots, starts))


def _smallest(found: list[BlockMaxima], test: Callable[[BlockMaxima], float]) -> tuple[float, int]:
    """The smallest p-value, times their number, and whose it is."""
    values = [test(blocks) for blocks in found]
    at = min(range(len(values)), key=values.__getitem__)
    return min(1.0, values[at] * len(values)), at


def _levels(largest_ns: Int64Array) -> list[int]:
    """Values of the run, each above the one before, that some seconds exceed."""
    if not largest_ns.size:
        return []
    ordered = np.sort(largest_ns)
    found = {int(ordered[max(math.ceil((1 - share) * ordered.size) - 1, 0)]) for share in SHARES}
    return sorted(level for level in found if level < ordered[-1])


def _slot_s(second: Int64Array) -> int:
    """Long enough for an activation in most of them."""
    return max(SLOT_S, math.ceil(float(np.median(np.diff(second))))) if second.size > 1 else SLOT_S


def _blocks(second: Int64Array, largest_ns: Int64Array, level_ns: int, slot_s: int) -> BlockMaxima | None:
    """None where there are too few blocks to compare."""
    slot, place = np.unique((second - second[0]) // slot_s, return_inverse=True)
    hit = np.zeros(slot.size, np.int64)
    np.maximum.at(hit, place, (largest_ns > level_ns).astype(np.int64))
    starts = np.unique(slot // SLOTS, return_index=True)[1]
    measured = np.diff(np.append(starts, slot.size))
    whole = measured >= _WHOLE * SLOTS
    if np.count_nonzero(whole) < FEWEST_BLOCKS:
        return None
    return BlockMaxima(level_ns, measured[whole], np.add.reduceat(hit, starts)[whole])
