# SPDX-License-Identifier: Apache-2.0
"""Do the latencies change more slowly than the run can show? A test of the whole distribution, not of its tail alone.

The largest latencies of the seconds are averaged over blocks of a minute, in four ways: by their rank (where the body
lies), by the exponential score of the rank (how wide the tail is; Savage 1956), and as shares above two levels. A
cosine transform takes each series of averages apart into half waves: the k-th has k half waves in the whole run. What
varies faster than a few minutes gives all of the slow half waves the same mean square, bursts and storms included. A
rhythm or a drift of which the run shows at most three whole periods raises the first SLOW of them above the next ones.
The ratio of mean squares has the F distribution (R. A. Fisher), because averages over many seconds are nearly normal.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.special import beta_tails
from rtproof.record import Int64Array

SLOTS = 12
"""In a block: 1 min of slots of 5 s."""
MOST_BLOCKS = 4_000
"""Of longer runs the blocks are longer, since only the slowest half waves are looked at."""
FEWEST_BLOCKS = 24
SLOW = 6
"""Half waves: three whole periods in the run, which is the least that shows a rhythm as one that returns."""
TESTED = (1, 2, SLOW)
"""The first half waves that are tested together: a steady drift is mostly in the first one."""
COMPARED = 42
"""... with those after SLOW, up to this one."""
PARTS = 4
"""Parts of the run whose values are named."""
_WHOLE = 0.5
"""Share of the usual number of seconds that a block must have."""

Floats = NDArray[np.float64]


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
    whole = seconds >= _WHOLE * np.median(seconds)
    if np.count_nonzero(whole) < FEWEST_BLOCKS:
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
    return max(SLOTS, math.ceil(slots / MOST_BLOCKS))


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
