# SPDX-License-Identifier: Apache-2.0
"""Do the runs of one day of the week differ from those of others? A pattern that comes back is no change.

Each run is held against the mean of the seven days around it, so that neither steps nor slow drift count. Without a
pattern the days of a week might have any order, but for the resemblance of neighbouring days, which is taken out first
(``correlation``). The weekdays are drawn anew DRAWN times, with a fixed seed: p is the share of the drawings in which
they differ at least as much. Days are those of UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.history.correlation import correlation

DAY_NS = 86_400_000_000_000
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_WEEKDAY = 3
"""1970-01-01 was a Thursday."""
AROUND = 3
"""Days before and after a run that it is held against."""
FEWEST_DAYS = 28
"""Different days with runs: four weeks."""
FEWEST_OF_A_DAY = 3
SURE = 0.001
DRAWN = 1_999

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Weekly:
    """A pattern of the week. by_day: the mean logarithm of each day of the week against the mean, Monday first."""

    by_day: tuple[float, ...]
    p: float

    @property
    def largest(self) -> int:
        return int(np.argmax(self.by_day))

    @property
    def smallest(self) -> int:
        return int(np.argmin(self.by_day))


def weekday(started_ns: int) -> int:
    """0 for Monday, in UTC."""
    return int((started_ns // DAY_NS + FIRST_WEEKDAY) % 7)


def weekly(values: Sequence[float], started_ns: Sequence[int]) -> Weekly | None:
    """The pattern, or None where none is sure, or where the runs are too few to show one."""
    days, mean = _by_day(values, started_ns)
    if days.size < FEWEST_DAYS:
        return None
    # Days of their own level alone: no day with too few of its kind may decide.
    kinds, counts = np.unique((days + FIRST_WEEKDAY) % 7, return_counts=True)
    if kinds.size < 7 or counts.min() < FEWEST_OF_A_DAY:
        return None
    rest = _against_the_week(days, mean)
    fresh = _fresh(days, rest, mean)
    p = _p(fresh, (days + FIRST_WEEKDAY) % 7)
    if p > SURE:
        return None
    level = np.array([np.median(rest[(days + FIRST_WEEKDAY) % 7 == kind]) for kind in range(7)])
    return Weekly(tuple(float(one) for one in level - level.mean()), p)


def without(values: Sequence[float], started_ns: Sequence[int], found: Weekly | None) -> list[float]:
    """The values with the pattern taken out."""
    if found is None:
        return list(values)
    return [value - found.by_day[weekday(start)] for value, start in zip(values, started_ns, strict=True)]


def _by_day(values: Sequence[float], started_ns: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
    """Each day with a run, counted since 1970, and the mean of its runs."""
    days, place = np.unique(np.asarray(started_ns, np.int64) // DAY_NS, return_inverse=True)
    sums = np.bincount(place, weights=np.asarray(values, np.float64))
    mean: Floats = sums / np.bincount(place)
    return days, mean


def _against_the_week(days: NDArray[np.int64], mean: Floats) -> Floats:
    """Each day less the mean of the days around it, all seven of the week among them where they are there."""
    sums = np.concatenate(([0.0], np.cumsum(mean)))
    first = np.searchsorted(days, days - AROUND)
    end = np.searchsorted(days, days + AROUND, side="right")
    rest: Floats = mean - (sums[end] - sums[first]) / (end - first)
    return rest


def _fresh(days: NDArray[np.int64], rest: Floats, mean: Floats) -> Floats:
    """What of each day is not as the day before."""
    phi = correlation([float(one) for one in mean])
    before = np.concatenate(([0.0], np.where(np.diff(days) == 1, rest[:-1], 0.0)))
    fresh: Floats = rest - phi * before
    return fresh


def _p(fresh: Floats, kinds: NDArray[np.int64]) -> float:
    """Of ranks, so that one day that is far off does not decide."""
    ranks = np.argsort(np.argsort(fresh)).astype(np.float64)
    ranks -= ranks.mean()
    members = (kinds[:, None] == np.arange(7)).astype(np.float64)
    sizes = members.sum(axis=0)
    generator = np.random.default_rng(7)
    drawn = generator.permuted(np.tile(ranks, (DRAWN, 1)), axis=1)
    spread = ((drawn @ members) ** 2 / sizes).sum(axis=1)
    seen = float(((ranks @ members) ** 2 / sizes).sum())
    return (1 + int((spread >= seen * (1 - 1e-12)).sum())) / (DRAWN + 1)
