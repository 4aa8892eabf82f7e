# SPDX-License-Identifier: Apache-2.0
"""Does the rate of large latencies change during a run? Tests on the largest latency of each second.

Two of them count, in each stretch of 10 min, the slots of 5 s in which a level is exceeded. A slot counts once however
long it is exceeded, so that neighbouring seconds are one event, while an hour under another load still counts as an
hour. Where activations are further apart than 5 s, slots are as long as that, and stretches have as many of them.
Dispersion: chi-squared of the counts about a constant rate, with the variance of a binomial count (R. A. Fisher's index
of dispersion). It sees storms and conditions that come and go. Trend: Kendall's rank correlation of counts and time
(M. Kendall, "Rank Correlation Methods", 1948; with ties, and corrected for continuity). It sees a slow drift.
Each is taken at three levels, of which the smallest p-value counts, times three (Bonferroni). A third
test, of the whole distribution, asks for changes slower than the run can show: ``slow_change``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.forecast.slow_change import SlowChange, slow_change
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.special import gamma_tails
from rtproof.record import Int64Array

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

Floats = NDArray[np.float64]


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
class Blocks:
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


def dispersion_p(blocks: Blocks) -> float:
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


def _trend_of(blocks: Blocks) -> float:
    together = -(-blocks.hits.size // MOST_BLOCKS)
    starts = np.arange(0, blocks.hits.size, together)
    return trend_p(np.add.reduceat(blocks.hits, starts) / np.add.reduceat(blocks.slots, starts))


def _smallest(found: list[Blocks], test: Callable[[Blocks], float]) -> tuple[float, int]:
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


def _blocks(second: Int64Array, largest_ns: Int64Array, level_ns: int, slot_s: int) -> Blocks | None:
    """None where there are too few blocks to compare."""
    slot, place = np.unique((second - second[0]) // slot_s, return_inverse=True)
    hit = np.zeros(slot.size, np.int64)
    np.maximum.at(hit, place, (largest_ns > level_ns).astype(np.int64))
    starts = np.unique(slot // SLOTS, return_index=True)[1]
    measured = np.diff(np.append(starts, slot.size))
    whole = measured >= _WHOLE * SLOTS
    if np.count_nonzero(whole) < FEWEST_BLOCKS:
        return None
    return Blocks(level_ns, measured[whole], np.add.reduceat(hit, starts)[whole])
