# SPDX-License-Identifier: Apache-2.0
"""Find where the mean of a sequence of runs changes.

The functions also estimate how much neighbouring runs resemble each other, and find a pattern of the week.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rtproof.statistics import beta_tails, student_quantile

Floats = NDArray[np.float64]

# The next functions estimate how much a run resembles the run before it, and correct the test of two stretches for it.
#
# A machine that is warm stays warm. A run therefore tells less than an independent run would tell: the mean of ten
# correlated runs may vary as much as the mean of three independent runs.
# The estimate uses the differences of runs one and two places apart. In an autoregressive process of first order
# (Box and Jenkins), their mean squares are proportional to 1 - phi and 1 - phi^2.
# A step affects only a few of these differences. The estimate leaves out differences that are very large.
# It replaces each value by the normal score of its rank, so that no outlier decides. Equal values get equal scores.


FEWEST = 10
"""The least number of values from which a correlation is estimated."""
CLEAR = 0.25
"""A smaller estimate counts as no correlation: in 9 of 10 histories of 80 independent runs the estimate is smaller."""
MOST = 0.95
STEPS = 40
FAR, MAD = 6.0, 1.4826
"""A difference of neighbours of more than FAR robust deviations is a step. It does not count for the correlation."""
RAISED = 0.2
"""The estimate is raised by RAISED times its square, because the method underestimates large correlations."""
EXACT = 300
"""Up to this number of values all moments are computed exactly; beyond it, by the formulas for long stretches."""


@dataclass(frozen=True)
class StretchContrast:
    """The moments of the difference between the means of two neighbouring stretches, for values of variance 1.

    variance: of the difference. squares: the expected sum of squares about the two means. freedom: the degrees of
    freedom of that sum (Satterthwaite).
    """

    variance: float
    squares: float
    freedom: float


def neighbour_correlation(values: Sequence[float]) -> float:
    """Return the correlation of neighbouring values, from 0 to MOST in steps of 1 / STEPS.

    The result is 0 for fewer than FEWEST values, and where the correlation is not clear.
    """
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
    """Return the mean square of the counted differences; 0 if none is counted."""
    return float((differences[counted] ** 2).mean()) if counted.any() else 0.0


@lru_cache(maxsize=64)
def _scores(n: int) -> Floats:
    """Return the normal scores of n ranks, smallest first."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((place + 0.5) / n) for place in range(n)])


@lru_cache(maxsize=65_536)
def stretch_contrast(left: int, right: int, phi: float) -> StretchContrast:
    """Return the moments for ``left`` values followed by ``right`` values, whose neighbours correlate by ``phi``."""
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
    """Return the moments for long stretches.

    The two means are taken as nearly independent. The squares and their freedom are those of an endless process.
    """
    n = left + right
    lost = sum(_variance(size, phi) * size for size in (left, right))
    squares = max(n - lost, 1.0)
    freedom = max(n * (1 - phi * phi) / (1 + phi * phi) - 2, 1.0)
    return StretchContrast(_variance(left, phi) + _variance(right, phi), squares, freedom)


def _variance(size: int, phi: float) -> float:
    """Return the variance of the mean of ``size`` values of variance 1."""
    tail = 2 * phi * (1 - phi**size) / (size * (1 - phi) ** 2)
    return max((1 + phi) / (1 - phi) - tail, 0.0) / size


def widened_error(left: int, right: int, phi: float) -> float:
    """Return about how many times larger the error of a difference of two means is than if runs were independent.

    left, right: the number of runs on each side. phi: the correlation of neighbouring runs.
    """
    found = stretch_contrast(left, right, phi)
    return math.sqrt(found.variance / (1 / left + 1 / right) * (left + right - 2) / found.squares)


WINDOW = 50
P_VALUE = 1e-4
WEAK = 10
"""A window's p may be this many times larger than the final threshold; the whole sequence then decides."""
SHORTEST = 3


@dataclass(frozen=True)
class MeanChange:
    """One change of the mean.

    at: the place of the first value after the change. before, after: the means of the two neighbouring stretches,
    which reach from ``since`` to ``until`` (exclusive). p: of a two-sided t test between these stretches.
    """

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
    """Return the changes of the mean in a sequence of finite values, in the order of the sequence.

    p: the threshold of each change. window, shortest: the numbers of values in a window and in the shortest stretch.
    correlation: of neighbouring values, as ``neighbour_correlation`` returns it.
    """
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
    """Return the places that may be changes.

    The windows overlap by half. The next window begins no earlier than the last change that was found.
    """
    found: set[int] = set()
    start = 0
    while start < series.size:
        new = [start + at for at in _divided(series[start : start + window], p, shortest)]
        found.update(new)
        start = max([start + window // 2, *new])
    return sorted(found)


def _divided(series: Floats, p: float, shortest: int) -> list[int]:
    """Split the series again and again at the best place of all stretches, as long as the two sides differ."""
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
    """Return the p-value of Student's two-sided t test with pooled variance.

    The result is 1 where both stretches together have fewer than three values.
    phi: the correlation of neighbouring values. Means of correlated values vary more than the
    scatter of the values shows, and the values tell less than as many independent values.
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


# The next functions find a pattern of the week. A pattern that comes back every week is not a change.
#
# Each day with runs is compared with the mean of the seven days around it, so that steps and slow drift do not count.
# Without a pattern, the weekdays could stand in any order, except that neighbouring days resemble each other.
# That resemblance is taken out first (``neighbour_correlation``).
# The weekdays are then shuffled DRAWN times with a fixed seed. p is the share of the shuffles in which the weekdays
# differ at least as much as in the data. Days are days in UTC.


DAY_NS = 86_400_000_000_000
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST_WEEKDAY = 3
"""1970-01-01 was a Thursday."""
AROUND = 3
"""Days before and after a day with which that day is compared."""
FEWEST_DAYS = 28
"""The least number of different days with runs: four weeks."""
FEWEST_OF_A_DAY = 3
SURE = 0.001
DRAWN = 1_999


@dataclass(frozen=True)
class WeeklyPattern:
    """A pattern of the week. by_day: the mean logarithm of each weekday minus the mean of all, Monday first."""

    by_day: tuple[float, ...]
    p: float

    @property
    def largest(self) -> int:
        return int(np.argmax(self.by_day))

    @property
    def smallest(self) -> int:
        return int(np.argmin(self.by_day))


def weekday(started_ns: int) -> int:
    """Return the weekday of a start in nanoseconds since 1970, in UTC: 0 for Monday."""
    return int((started_ns // DAY_NS + FIRST_WEEKDAY) % 7)


def weekly_pattern(values: Sequence[float], started_ns: Sequence[int]) -> WeeklyPattern | None:
    """Return the pattern of the week; None where no pattern is sure or the runs are too few to show one."""
    days, mean = _by_day(values, started_ns)
    if days.size < FEWEST_DAYS:
        return None
    # Each weekday needs several days: no weekday with too few of them may decide.
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
    """Return the values without the pattern of the week; unchanged if there is no pattern."""
    if found is None:
        return list(values)
    return [value - found.by_day[weekday(start)] for value, start in zip(values, started_ns, strict=True)]


def _by_day(values: Sequence[float], started_ns: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
    """Return each day with a run, counted since 1970, and the mean of that day's runs."""
    days, place = np.unique(np.asarray(started_ns, np.int64) // DAY_NS, return_inverse=True)
    sums = np.bincount(place, weights=np.asarray(values, np.float64))
    mean: Floats = sums / np.bincount(place)
    return days, mean


def _against_the_week(days: NDArray[np.int64], mean: Floats) -> Floats:
    """Return each day's mean minus the mean of the seven days around it, as far as these days have runs."""
    sums = np.concatenate(([0.0], np.cumsum(mean)))
    first = np.searchsorted(days, days - AROUND)
    end = np.searchsorted(days, days + AROUND, side="right")
    rest: Floats = mean - (sums[end] - sums[first]) / (end - first)
    return rest


def _fresh(days: NDArray[np.int64], rest: Floats, mean: Floats) -> Floats:
    """Return what remains of each day without its resemblance to the day before."""
    phi = neighbour_correlation([float(one) for one in mean])
    before = np.concatenate(([0.0], np.where(np.diff(days) == 1, rest[:-1], 0.0)))
    fresh: Floats = rest - phi * before
    return fresh


def _p(fresh: Floats, kinds: NDArray[np.int64]) -> float:
    """Return the p-value of the pattern. It is computed from ranks, so that no single outlying day decides."""
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
"""The probability with which a visible step in the middle is found."""


@lru_cache(maxsize=256)
def visible_step(runs: int, phi: float = 0.0) -> float:
    """Return the step in the middle of this number of runs that is found 9 times of 10.

    The step is in standard deviations of one run. It has to pass the weak threshold in a window and the strict
    threshold on the whole sequence. A step near an end has to be larger. phi: the correlation of neighbouring runs.
    """
    return max(_step(min(runs, WINDOW), WEAK * P_VALUE, 0.0), _step(runs, P_VALUE, phi))


def _step(runs: int, p: float, phi: float) -> float:
    """Return the step at which Student's t between the two halves passes the threshold with probability FOUND."""
    half = runs // 2
    freedom = max(math.floor(2 * stretch_contrast(half, runs - half, phi).freedom) / 2, 1.0)
    each = math.sqrt(4 / runs) * widened_error(half, runs - half, phi)
    return (student_quantile(1 - p / 2, freedom) + student_quantile(FOUND, freedom)) * each
