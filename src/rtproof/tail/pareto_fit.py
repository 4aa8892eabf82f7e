# SPDX-License-Identifier: Apache-2.0
"""The fit of a generalised Pareto distribution to the tail, its likelihood, and the test whether the fit holds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rtproof.statistics import Floats
from rtproof.summary.counts import Counts
from rtproof.tail import fit_test_table

# A clock that counts in steps says only in which step a value fell. If each value were taken for the beginning of its
# step, every fit of a tail of few steps would be wrong. So thresholds lie on the edges of bins, and bins stay bins.


FINE = 32
"""``coarsened_excesses`` joins neighbouring bins up to a share 1 / FINE of the values from there upwards."""


@dataclass(frozen=True)
class Excesses:
    """By how much values exceed a threshold, in bins [lo, lo + width) counted from the threshold, with n values each.

    The bins increase and do not overlap. Of all values, the threshold is 0.
    units: the number of all units, such as seconds, with those below the threshold. threshold: in the unit of the
    values.
    """

    threshold: float
    lo: Floats
    width: Floats
    n: Floats
    units: int

    @property
    def count(self) -> int:
        return int(self.n.sum())

    @property
    def mean(self) -> float:
        """The mean of the lower ends of the bins, plus half of the first bin's width. It is a scale and no estimate."""
        return float((self.n * self.lo).sum() / self.n.sum() + self.width[0] / 2)

    @property
    def bin_width(self) -> float:
        """The width of the bin of an average value."""
        return float((self.n * self.width).sum() / self.n.sum())


def tail_of(counts: Counts, units: int, step: int | None = None) -> Excesses:
    """All values as bins.

    step: the step of the clock that rounded the values down. If unknown, it is 1, unless exact values all lie on a
        coarser grid. ValueError for fewer units than values.
    """
    if units < counts.total:
        raise ValueError(f"{units} units have {counts.total} values")
    lo = counts.lo.astype(np.float64)
    # Two exact values nearer to each other than the step would overlap, so there the next value ends the bin.
    # Months in nanoseconds are no longer exact in a double. A step of 1 would be lost there.
    hi = np.maximum(lo + (counts.hi - counts.lo + (step or _grid(counts))), np.nextafter(lo, np.inf))
    width = np.minimum(hi, np.append(lo[1:], np.inf)) - lo
    return Excesses(0.0, lo, width, counts.n.astype(np.float64), units)


def _grid(counts: Counts) -> int:
    """The step on whose multiples, from any start, all exact values lie; 1 for bins."""
    if not counts.exact or counts.lo.size < 3:
        return 1
    return int(np.gcd.reduce(np.diff(counts.lo)))


def highest_excesses(of: Excesses, k: int, fewest: int = 1, most: float = np.inf) -> Excesses | None:
    """The excesses above the edge that has about k values above it; None if no edge has between fewest and most.

    of: all values. The threshold is the upper edge of the highest bin that stays below. If all values differ, exactly k
    exceed it.
    """
    above = of.n[::-1].cumsum()[-2::-1]
    allowed = (above >= fewest) & (above <= most)
    if not allowed.any():
        return None
    at = int(np.argmin(np.where(allowed, np.abs(np.log(above / k)), np.inf))) + 1
    threshold = min(float(of.lo[at - 1] + of.width[at - 1]), float(of.lo[at]))
    return Excesses(threshold, of.lo[at:] - threshold, of.width[at:], of.n[at:], of.units)


def coarsened_excesses(excesses: Excesses) -> Excesses:
    """The same excesses in about 200 bins at most, for speed.

    Values far out stay alone, and neighbours near the threshold join. Joined bins hold at most a 32nd of the values
    from there upwards. A fit loses next to nothing by it.
    """
    upwards = excesses.n[::-1].cumsum()[::-1]
    group = np.floor(-FINE * np.log(upwards / upwards[0])).astype(np.int64)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], group.size) - 1
    lo = excesses.lo[starts]
    width = excesses.lo[ends] + excesses.width[ends] - lo
    return Excesses(excesses.threshold, lo, width, np.add.reduceat(excesses.n, starts), excesses.units)


# The next functions compute the interval-censored likelihood of a generalised Pareto distribution over bins, for many
# shapes at once.
#
# For excesses y over a high threshold, 1 - F(y) = (1 + xi y / sigma)^(-1 / xi) (Pickands 1975; Davison and Smith 1990).
# A bin [lo, lo + width) with n values adds n ln(S(lo) - S(lo + width)), where S = 1 - F. With t = ln sigma this is
# concave in t for every xi > -1: ln y has a log-concave density, and integrals of such a density over intervals are
# log-concave (Prekopa 1973). So Newton's method in t always converges.


FLAT = 1e-9
"""Shapes nearer to 0 than this are taken as this."""
_STEPS = 60
_SMALL = 1e-10


@dataclass(frozen=True)
class Score:
    """The log-likelihood at some (xi, t), and its first two derivatives to t; -inf if the values are impossible."""

    value: Floats
    slope: Floats
    bend: Floats


def pareto_survival(y: ArrayLike, xi: ArrayLike, sigma: ArrayLike) -> Floats:
    """1 - F(y) of the generalised Pareto distribution, for y >= 0; 0 beyond its end if xi < 0."""
    y, xi, sigma = np.asarray(y, float), away_from_zero(xi), np.asarray(sigma, float)
    inside = np.maximum(xi * (y / sigma), -1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(-np.log1p(inside) / xi), dtype=np.float64)


def pareto_growth(ratio: ArrayLike, xi: ArrayLike) -> Floats:
    """(ratio^xi - 1) / xi: so many sigma lie between the threshold and a level exceeded ``ratio`` times less often."""
    xi = away_from_zero(xi)
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(xi * np.log(ratio)) / xi, dtype=np.float64)


def away_from_zero(xi: ArrayLike) -> Floats:
    """The shapes, moved away from 0 so that formulas may divide by them. The limit for 0 is met to nine digits."""
    shapes = np.asarray(xi, dtype=np.float64)
    return np.where(np.abs(shapes) < FLAT, FLAT, shapes)


def likelihood_score(of: Excesses, xi: Floats, t: Floats) -> Score:
    """The score at the pairs (xi[j], t[j]), one-dimensional arrays."""
    shape, scale = away_from_zero(xi)[:, None], np.exp(t)[:, None]
    near = scale + shape * of.lo
    far = near + shape * of.width
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The bin that holds the end of the distribution extends to infinity.
        length = np.where(far > 0, np.log1p(shape * of.width / near) / shape, np.inf)
        value = -np.log1p(shape * of.lo / scale) / shape + np.log(-np.expm1(-length))
        ends = np.isinf(length) | (length > 700)
        rise = np.where(ends, 0.0, -scale * of.width / (near * far))
        weight = np.where(ends, 0.0, 1 / np.expm1(length))
        slope = of.lo / near + rise * weight
        turn = 1 - scale / near - np.where(ends, 0.0, scale / far) - rise * (1 + weight)
        bend = -scale * of.lo / near**2 + rise * weight * turn
    valid = (near > 0).all(axis=1)
    sums = (np.where(valid, (part * of.n).sum(axis=1), -np.inf) for part in (value, slope, bend))
    return Score(*sums)


def lowest_likelihood(of: Excesses, xi: Floats) -> Floats:
    """The t below which the largest values would be impossible; -inf for xi >= 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(xi < 0, np.log(np.maximum(-xi * of.lo[-1], 0)), -np.inf)


def best_scale(of: Excesses, xi: Floats, start: Floats | None = None) -> tuple[Floats, Score]:
    """For each shape, the t of the largest likelihood, and the score there."""
    edge = lowest_likelihood(of, xi)
    t = np.full(xi.size, np.log(of.mean)) if start is None else start
    t = np.maximum(t, edge + 0.1)
    for _ in range(_STEPS):
        at = likelihood_score(of, xi, t)
        step = -at.slope / at.bend
        t = _inside(t, t + np.clip(step, -2, 2), edge)
        if np.abs(step).max() < _SMALL**0.5:
            break
    return t, likelihood_score(of, xi, t)


def likelihood_crossing(of: Excesses, xi: Floats, best: tuple[Floats, Score], goal: float, side: int) -> Floats:
    """The t at which the likelihood has fallen to ``goal``, above (side 1) or below (-1) the best scale."""
    edge = lowest_likelihood(of, xi)
    top, at_top = best
    fall = np.maximum(at_top.value - goal, 0)
    t = _inside(top, top + side * np.sqrt(2 * fall / -at_top.bend), edge)
    for _ in range(_STEPS):
        at = likelihood_score(of, xi, t)
        step = (goal - at.value) / np.where(at.slope * side < 0, at.slope, -side * np.inf)
        step = np.where(fall > 0, np.clip(step, -2, 2), 0)
        t = _inside(t, t + step, edge)
        if np.abs(step).max() < 1e-7:
            break
    return t


def _inside(old: Floats, new: Floats, edge: Floats) -> Floats:
    """The new t. A step that would leave the domain goes nine tenths of the way to its edge."""
    with np.errstate(invalid="ignore"):
        return np.where(new > edge, new, old + 0.9 * (edge - old))


TWO_SIDED_95 = 3.841
"""The 95 % point of chi-squared with one degree of freedom."""
ONE_SIDED_95 = 2.706
"""The 90 % point of the same distribution. With it, each end is on the wrong side of the true value in 5 %."""
SHAPES = (-0.5, 1.5)
"""The shapes that are tried. Below -0.5 the likelihood has no regular maximum (Smith 1985)."""
UNBOUNDED = (0.0, 1.5)
"""The shapes for limits. They never claim that the tail has an end."""
_ZOOMS = 4
_NODES = 33


@dataclass(frozen=True)
class TailFit:
    """The most likely generalised Pareto distribution.

    xi: its shape. sigma: its scale. log_likelihood: the logarithm of the likelihood there.
    """

    xi: float
    sigma: float
    log_likelihood: float


@dataclass(frozen=True)
class FitRegion:
    """The region of likely shapes and scales: for each shape of ``xi``, increasing, sigma lies between low and high.

    threshold, sigma: in the unit of the values. excesses: how many of ``units`` exceed the threshold.
    """

    fit: TailFit
    xi: Floats
    low: Floats
    high: Floats
    threshold: float
    excesses: int
    units: int

    def level_upper(self, probability: float) -> float:
        """The upper limit of the level that a unit exceeds with this probability. ValueError below the threshold."""
        return self.threshold + _peak(self.high * pareto_growth(self._ratio(probability), self.xi))

    def level_lower(self, probability: float) -> float:
        """The lower limit of that level."""
        return self.threshold - _peak(-self.low * pareto_growth(self._ratio(probability), self.xi))

    def probability_upper(self, level: float) -> float:
        """The upper limit of the probability that a unit exceeds the level. ValueError below the threshold."""
        if level < self.threshold:
            raise ValueError(f"{level:g} lies below the threshold {self.threshold:g}")
        return self._share * min(1.0, _peak(pareto_survival(level - self.threshold, self.xi, self.high)))

    @property
    def _share(self) -> float:
        return self.excesses / self.units

    def _ratio(self, probability: float) -> float:
        if not 0 < probability <= self._share:
            raise ValueError(f"a share {self._share:g} exceeds the threshold: {probability:g} is not beyond it")
        return self._share / probability


def fit_tail(of: Excesses, shapes: tuple[float, float] = SHAPES) -> TailFit:
    """The most likely shape in an interval, and scale; ValueError if all values lie in one bin, which has no scale."""
    if of.n.size < 2:
        raise ValueError("all excesses lie in one bin")
    grid = np.linspace(*shapes, 17)
    t, at = best_scale(of, grid)
    for _ in range(_ZOOMS):
        best = int(np.argmax(at.value))
        finer = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], 9)
        t, at = best_scale(of, finer, np.interp(finer, grid, t))
        grid = finer
    xi = np.array([float(np.interp(_parabola(at.value)[0], np.arange(grid.size), grid))])
    t, at = best_scale(of, xi, np.interp(xi, grid, t))
    return TailFit(float(xi[0]), float(np.exp(t[0])), float(at.value[0]))


def fit_region(of: Excesses, drop: float = ONE_SIDED_95, shapes: tuple[float, float] = UNBOUNDED) -> FitRegion:
    """Where twice the log-likelihood is at most ``drop`` below its maximum. ValueError as in ``fit_tail``."""
    best = fit_tail(of, shapes)
    goal = best.log_likelihood - drop / 2
    ends = [_end(of, best, goal, end) for end in shapes]
    # The nodes are like those of Chebyshev, because the region is as round as an ellipse at its ends.
    xi = ends[0] + (ends[1] - ends[0]) * (1 - np.cos(np.linspace(0, np.pi, _NODES))) / 2
    ridge = best_scale(of, xi, np.full(xi.size, np.log(best.sigma)))
    low, high = (np.exp(likelihood_crossing(of, xi, ridge, goal, side)) for side in (-1, 1))
    return FitRegion(best, xi, low, high, of.threshold, of.count, of.units)


def _end(of: Excesses, best: TailFit, goal: float, end: float) -> float:
    """The shape between the best one and ``end`` at which the likelihood falls to the goal; ``end`` if it does not."""
    near, reach = best.xi, 8 * (1 + abs(best.xi)) / np.sqrt(of.count)
    far = end if abs(end - near) < reach else near + float(np.copysign(reach, end - near))
    for _ in range(3):
        grid = np.linspace(near, far, 9)
        t, at = best_scale(of, grid, np.full(grid.size, np.log(best.sigma)))
        below = np.flatnonzero(at.value < goal)
        if not below.size:
            return far if far == end else _end(of, TailFit(far, float(np.exp(t[-1])), 0), goal, end)
        first = max(int(below[0]), 1)
        near, far = float(grid[first - 1]), float(grid[first])
    share = (at.value[first - 1] - goal) / (at.value[first - 1] - at.value[first])
    return near + (far - near) * float(np.clip(share, 0, 1))


def _peak(values: Floats) -> float:
    return _parabola(values)[1]


def _parabola(values: Floats) -> tuple[float, float]:
    """The place and the height of the top of the parabola through the highest value and its neighbours."""
    at = int(np.argmax(values))
    if not 0 < at < values.size - 1 or not np.isfinite(values[at - 1 : at + 2]).all():
        return at, float(values[at])
    left, top, right = (float(value) for value in values[at - 1 : at + 2])
    bend = 2 * top - left - right
    return (at + (right - left) / (2 * bend), top + (right - left) ** 2 / (8 * bend)) if bend > 0 else (at, top)


# The next functions test whether excesses follow the fitted distribution, by Anderson and Darling's test, which looks
# at both ends.
#
# The fitted distribution function would make the excesses uniform, and A^2 measures how far they are from that. It is
# not known where in its bin a value lies. So A^2 is the mean over all places in the bins, and does not depend on places
# drawn at random. The parameters are estimated from the same data, so A^2 is smaller than in textbooks.
# ``fit_test_table`` has its distribution by shape and by width of the bins. bench/tail_table.py simulated it (as
# Choulakian and Stephens 2001 did for exact values).


_LOGS = np.log(fit_test_table.TABLE_PROBABILITIES)


def fitted_survivals(of: Excesses, fit: TailFit) -> Floats:
    """1 - F of each excess, decreasing. The excesses of a bin are spread evenly over it."""
    upper, lower = pareto_survival(of.lo, fit.xi, fit.sigma), pareto_survival(of.lo + of.width, fit.xi, fit.sigma)
    n = of.n.astype(np.int64)
    before = np.repeat(n.cumsum() - n, n)
    share = (np.arange(before.size) - before + 0.5) / np.repeat(n, n)
    return np.asarray(np.repeat(upper, n) - share * np.repeat(upper - lower, n), dtype=np.float64)


def anderson_darling_statistic(of: Excesses, fit: TailFit) -> float:
    """A^2; inf if an excess lies where the fitted distribution has no values."""
    sf = fitted_survivals(of, fit)
    weights = 2 * np.arange(1, sf.size + 1) - 1
    with np.errstate(divide="ignore"):
        even = float(-sf.size - (weights * (np.log1p(-sf) + np.log(sf[::-1]))).sum() / sf.size)
    return even + _within(of, fit)


def _within(of: Excesses, fit: TailFit) -> float:
    """What random places inside the bins add on average to the A^2 of evenly spread places.

    Take a bin of probability w with n values. The count up to a share s of the bin has the variance n s (1 - s). That
    of evenly spread values varies by 1/12. Both are divided by F (1 - F) and integrated over the bin.
    """
    high, low = pareto_survival(of.lo, fit.xi, fit.sigma), pareto_survival(of.lo + of.width, fit.xi, fit.sigma)
    spread = _integral(low, high) + _integral(1 - high, 1 - low)
    return float(((of.n - 0.5) * spread).sum() / of.n.sum())


def _integral(a: Floats, b: Floats) -> Floats:
    """The integral over [a, b] of s (1 - s) / x, where s goes from 0 to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (b - a) / a
        exact = ((b**2 - a**2) / 2 - a * b * np.log1p(ratio)) / (b - a) ** 2
    narrow = (b - a) / (3 * (a + b) + 1e-300)
    return np.asarray(np.where(a <= 0, 0.5, np.where(ratio > 1e-3, exact, narrow)), dtype=np.float64)


def anderson_darling_p_value(a2: float, xi: float, coarseness: float) -> float:
    """The probability of so large an A^2 by chance, between the nodes of the table. coarseness: bin width in sigma."""
    # Outside the table, the quantiles are those of its nearest cell.
    cells = np.array(fit_test_table.TABLE_QUANTILES)
    by_width = _between(cells, _place(xi, fit_test_table.TABLE_SHAPES))
    quantiles = _between(by_width, _place(coarseness, fit_test_table.TABLE_WIDTHS))
    if a2 <= quantiles[-1]:
        return float(np.exp(np.interp(a2, quantiles, _LOGS)))
    decay = (_LOGS[-1] - _LOGS[-4]) / (quantiles[-1] - quantiles[-4])
    return float(np.exp(_LOGS[-1] + decay * (a2 - quantiles[-1])))


def _place(value: float, nodes: tuple[float, ...]) -> float:
    return float(np.interp(value, nodes, np.arange(len(nodes))))


def _between(rows: Floats, place: float) -> Floats:
    at = min(int(place), len(rows) - 2)
    return np.asarray(rows[at] + (place - at) * (rows[at + 1] - rows[at]), dtype=np.float64)
