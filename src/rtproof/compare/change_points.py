# SPDX-License-Identifier: Apache-2.0
"""Where the mean of a sequence of runs changes, and how much runs resemble their neighbours and their weekday."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rtproof.statistics import beta_tails, student_quantile

Floats = NDArray[np.float64]

# How much a run resembles the one before it, and what that does to a test between two stretches of runs.
#
# A machine that is warm stays warm: a run tells less than an independent one, and a mean of ten correlated runs moves
# like that of three. The correlation is taken from differences of runs one and two places apart, whose mean squares
# are
# proportional to 1 - phi and 1 - phi^2 in an autoregressive process of first order (Box and Jenkins). A step is in a
# few
# of the differences only, and a large one in none that counts. Ranks, as normal scores, stand for the values, so that
# no outlier decides; equal values have equal scores.


FEWEST = 10
"""Values without which nothing is estimated."""
CLEAR = 0.25
"""Independent runs seem correlated by less than this in 9 of 10 histories of 80; it is taken for none."""
MOST = 0.95
STEPS = 40
FAR, MAD = 6.0, 1.4826
"""Differences of neighbours beyond so many robust deviations are steps and count for no correlation."""
RAISED = 0.2
"""What is estimated is raised by this times its square, because large correlations are estimated too small."""
EXACT = 300
"""Values up to which all moments are computed; beyond, their limits for long stretches."""


@dataclass(frozen=True)
class StretchContrast:
    """Of the difference of two neighbouring means, for values of variance 1.

    variance: of the difference. squares: expected sum of squares about both means; freedom: of it (Satterthwaite).
    """

    variance: float
    squares: float
    freedom: float


def neighbour_correlation(values: Sequence[float]) -> float:
    """Of neighbouring values, 0 to MOST in steps of 1 / STEPS; 0 where it is not clear, or where they are too few."""
    series = np.asarray(values, np.float64)
    if series.size < FEWEST:
        return 0.0
    _, place, ties = np.unique(series, return_inverse=True, return_counts=True)
    scores = (np.bincount(place, weights=_scores(series.size)[np.argsort(np.argsort(series))]) / ties)[place]
    steps = np.diff(series)
    near_by = np.abs(steps) <= FAR * MAD * np.median(np.abs(steps))
    near = _mean_square(scores[1:] - scores[:-1], near_by)
    far = _mean_square(scores[2:] - scores[:-2], near_by[1:] & near_by[:-1])
    found = far / near - 1 if near else 0.0
    return round(min(found + RAISED * found**2, MOST) * STEPS) / STEPS if found >= CLEAR else 0.0


def _mean_square(differences: Floats, counted: NDArray[np.bool_]) -> float:
    """0 where nothing is counted."""
    return float((differences[counted] ** 2).mean()) if counted.any() else 0.0


@lru_cache(maxsize=64)
def _scores(n: int) -> Floats:
    """Where so many normal values lie, smallest first."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((place + 0.5) / n) for place in range(n)])


@lru_cache(maxsize=65_536)
def stretch_contrast(left: int, right: int, phi: float) -> StretchContrast:
    """Of ``left`` and then ``right`` values of a process with this correlation."""
    n = left + right
    if not phi:
        return StretchContrast(1 / left + 1 / right, n - 2.0, n - 2.0)
    if n > EXACT:
        return _long(left, right, phi)
    alike = phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    weights = np.concatenate([np.full(left, -1 / left), np.full(right, 1 / right)])
    about = np.array(alike)
    about[:left] -= alike[:left].mean(axis=0)
    about[left:] -= alike[left:].mean(axis=0)
    squares = float(np.trace(about))
    return StretchContrast(float(weights @ alike @ weights), squares, squares**2 / float((about * about.T).sum()))


def _long(left: int, right: int, phi: float) -> StretchContrast:
    """The means are nearly independent of each other; squares and freedom by the sums of an endless process."""
    n = left + right
    lost = sum(_variance(size, phi) * size for size in (left, right))
    squares = max(n - lost, 1.0)
    freedom = max(n * (1 - phi * phi) / (1 + phi * phi) - 2, 1.0)
    return StretchContrast(_variance(left, phi) + _variance(right, phi), squares, freedom)


def _variance(size: int, phi: float) -> float:
    """Of the mean of so many values of variance 1."""
    tail = 2 * phi * (1 - phi**size) / (size * (1 - phi) ** 2)
    return max((1 + phi) / (1 - phi) - tail, 0.0) / size


def widened_error(left: int, right: int, phi: float) -> float:
    """How many times as large a difference of two means is needed as between independent runs, about."""
    found = stretch_contrast(left, right, phi)
    return math.sqrt(found.variance / (1 / left + 1 / right) * (left + right - 2) / found.squares)


WINDOW = 50
P_VALUE = 1e-4
WEAK = 10
"""How many times weaker a change may be to be weighed on the whole sequence."""
SHORTEST = 3


@dataclass(frozen=True)
class MeanChange:
    """at: the first value after it. before, after: means of the neighbouring stretches, which reach from ``since`` to
    ``until`` (exclusive). p: of a two-sided t test between them."""

    at: int
    since: int
    until: int
    before: float
    after: float
    p: float


def mean_changes(
    values: Sequence[float],
    p: float = P_VALUE,
    window: int = WINDOW,
    shortest: int = SHORTEST,
    correlation: float = 0.0,
) -> tuple[MeanChange, ...]:
    """The changes in a sequence of finite values, in its order. correlation: of neighbours (``correlation``)."""
    series = np.asarray(values, np.float64)
    places = _weak(series, min(WEAK * p, 1.0), window, shortest)
    while places:
        found = _weighed(series, places, correlation)
        weakest = max(found, key=lambda change: change.p)
        if weakest.p < p:
            return found
        places.remove(weakest.at)
    return ()


def _weak(series: Floats, p: float, window: int, shortest: int) -> list[int]:
    """Places that may be changes, by windows that overlap by half; the next one begins at the last change at least."""
    found: set[int] = set()
    start = 0
    while start < series.size:
        new = [start + at for at in _divided(series[start : start + window], p, shortest)]
        found.update(new)
        start = max([start + window // 2, *new])
    return sorted(found)


def _divided(series: Floats, p: float, shortest: int) -> list[int]:
    """Split again and again at the best place of any stretch, for as long as its sides differ."""
    ends = [0, series.size]
    best = {stretch: _best_split(series, *stretch, shortest) for stretch in [(0, series.size)]}
    while True:
        (start, stop), (energy, at) = max(best.items(), key=lambda item: item[1][0])
        if energy <= 0 or change_p_value(series[start:at], series[at:stop]) > p:
            return ends[1:-1]
        del best[start, stop]
        ends = sorted([*ends, at])
        best |= {side: _best_split(series, *side, shortest) for side in ((start, at), (at, stop))}


def _best_split(series: Floats, start: int, stop: int, shortest: int) -> tuple[float, int]:
    """The largest energy distance of [start, at) and [at, end) for any at and end, and that at; 0 without room."""
    part = series[start:stop]
    n = part.size
    if n < 2 * shortest:
        return 0.0, stop
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = np.abs(part[:, None] - part[None, :]).cumsum(0).cumsum(1)
    at = np.arange(shortest, n - shortest + 1)[:, None]
    end = np.arange(2 * shortest, n + 1)[None, :]
    room = end - at >= shortest
    left, right = at, np.where(room, end - at, shortest)
    inside, whole = np.diagonal(sums)[at], np.diagonal(sums)[end]
    across = sums[at, end] - inside
    within = inside * right / np.maximum(left - 1, 1) + (whole - inside - 2 * across) * left / np.maximum(right - 1, 1)
    energy = np.where(room, (2 * across - within) / (left + right), -math.inf)
    place = int(np.argmax(energy))
    return float(energy.flat[place]), start + shortest + place // energy.shape[1]


def _weighed(series: Floats, places: list[int], phi: float) -> tuple[MeanChange, ...]:
    ends = [0, *places, series.size]
    return tuple(_change(series, phi, *ends[number : number + 3]) for number in range(len(places)))


def _change(series: Floats, phi: float, since: int, at: int, until: int) -> MeanChange:
    left, right = series[since:at], series[at:until]
    return MeanChange(at, since, until, float(left.mean()), float(right.mean()), change_p_value(left, right, phi))


def change_p_value(left: Floats, right: Floats, phi: float = 0.0) -> float:
    """Of Student's t with pooled variance, two-sided; 1 where both together have fewer than three values.

    phi: correlation of neighbouring values. It makes means vary more than their values tell, and the values tell less.
    """
    if left.size + right.size < 3:
        return 1.0
    expected = stretch_contrast(left.size, right.size, phi)
    difference = float(left.mean() - right.mean())
    if difference == 0:
        return 1.0
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    if squares <= 0:
        return 0.0
    noise = expected.freedom * expected.variance * squares / expected.squares
    return beta_tails(noise / (noise + difference**2), expected.freedom / 2, 0.5)[0]


# Do the runs of one day of the week differ from those of others? A pattern that comes back is no change.
#
# Each run is held against the mean of the seven days around it, so that neither steps nor slow drift count. Without a
# pattern the days of a week might have any order, but for the resemblance of neighbouring days, which is taken out
# first
# (``correlation``). The weekdays are drawn anew DRAWN times, with a fixed seed: p is the share of the drawings in
# which
# they differ at least as much. Days are those of UTC.


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


@dataclass(frozen=True)
class WeeklyPattern:
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


def weekly_pattern(values: Sequence[float], started_ns: Sequence[int]) -> WeeklyPattern | None:
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
    return WeeklyPattern(tuple(float(one) for one in level - level.mean()), p)


def without_weekly(values: Sequence[float], started_ns: Sequence[int], found: WeeklyPattern | None) -> list[float]:
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
    phi = neighbour_correlation([float(one) for one in mean])
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


FOUND = 0.9
"""How often a step of that size in the middle is to be found."""


@lru_cache(maxsize=256)
def visible_step(runs: int, phi: float = 0.0) -> float:
    """The step in the middle of so many runs, in standard deviations of one run, that is found 9 times of 10.

    phi: correlation of neighbouring runs. The step has to pass the weak threshold in a window and the strict one on the
    whole. A step near an end has to be larger.
    """
    return max(_step(min(runs, WINDOW), WEAK * P_VALUE, 0.0), _step(runs, P_VALUE, phi))


def _step(runs: int, p: float, phi: float) -> float:
    """Student's t between two halves: the threshold, and as much as it falls short in one of ten."""
    half = runs // 2
    freedom = max(math.floor(2 * stretch_contrast(half, runs - half, phi).freedom) / 2, 1.0)
    each = math.sqrt(4 / runs) * widened_error(half, runs - half, phi)
    return (student_quantile(1 - p / 2, freedom) + student_quantile(FOUND, freedom)) * each
