# SPDX-License-Identifier: Apache-2.0
"""The fit of a tail, and all (xi, sigma) that are nearly as likely: from them the profile likelihood limits.

An upper limit by profile likelihood is the largest value that the quantity takes among these. Level and rate grow with
sigma for every xi, so the upper edge sigma(xi) of the region has the upper limits of all of them, and the lower edge
the lower ones: the region is computed once and answers for every horizon and every limit.
"""

from dataclasses import dataclass

import numpy as np

from rtproof.analysis.tail.excesses import Excesses, Floats
from rtproof.analysis.tail.likelihood import best_scale, crossing, growth, survival

TWO_SIDED_95 = 3.841
"""95 % point of chi-squared with one degree of freedom."""
ONE_SIDED_95 = 2.706
"""Its 90 % point: either end is beyond the truth in 5 %."""
SHAPES = (-0.5, 1.5)
"""Shapes looked at; below -0.5 the likelihood has no regular maximum (Smith 1985)."""
UNBOUNDED = (0.0, 1.5)
"""For limits: that the tail has an end is never claimed."""
_ZOOMS = 4
_NODES = 33


@dataclass(frozen=True)
class Fit:
    """The most likely shape and scale. log_likelihood: its logarithm there."""

    xi: float
    sigma: float
    log_likelihood: float


@dataclass(frozen=True)
class Region:
    """Arrays over shapes from the smallest to the largest in the region: sigma between low and high for each.

    threshold and sigma in the unit of the values; excesses: how many of ``units`` the fit is of.
    """

    fit: Fit
    xi: Floats
    low: Floats
    high: Floats
    threshold: float
    excesses: int
    units: int

    def level(self, probability: float) -> float:
        """The level that a unit exceeds with this probability, at the most likely parameters."""
        return self.threshold + self.fit.sigma * float(growth(self._ratio(probability), self.fit.xi))

    def level_upper(self, probability: float) -> float:
        """Upper limit of it; inf beyond what a double holds. ValueError if such a level is not above the threshold."""
        return self.threshold + _peak(self.high * growth(self._ratio(probability), self.xi))

    def level_lower(self, probability: float) -> float:
        """Lower limit of it."""
        return self.threshold - _peak(-self.low * growth(self._ratio(probability), self.xi))

    def probability(self, level: float) -> float:
        """That a unit exceeds the level, at the most likely parameters; level not below the threshold."""
        return self._share * float(survival(self._excess(level), self.fit.xi, self.fit.sigma))

    def probability_upper(self, level: float) -> float:
        """Upper limit of it, that is of the rate above a fixed level per unit."""
        return self._share * min(1.0, _peak(survival(self._excess(level), self.xi, self.high)))

    def probability_lower(self, level: float) -> float:
        """Lower limit of it."""
        return self._share * max(0.0, -_peak(-survival(self._excess(level), self.xi, self.low)))

    @property
    def _share(self) -> float:
        return self.excesses / self.units

    def _ratio(self, probability: float) -> float:
        if not 0 < probability <= self._share:
            raise ValueError(f"a share {self._share:g} exceeds the threshold: {probability:g} is not beyond it")
        return self._share / probability

    def _excess(self, level: float) -> float:
        if level < self.threshold:
            raise ValueError(f"{level:g} lies below the threshold {self.threshold:g}")
        return level - self.threshold


def fit(of: Excesses, shapes: tuple[float, float] = SHAPES) -> Fit:
    """The most likely shape in an interval, and scale; ValueError if all lies in one bin, which has no scale."""
    if of.n.size < 2:
        raise ValueError("all excesses lie in one bin")
    grid = np.linspace(*shapes, 17)
    t, at = best_scale(of, grid)
    for _ in range(_ZOOMS):
        best = int(np.argmax(at.value))
        finer = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], 9)
        t, at = best_scale(of, finer, np.interp(finer, grid, t))
        grid = finer
    xi = np.array([_top_of(grid, at.value)])
    t, at = best_scale(of, xi, np.interp(xi, grid, t))
    return Fit(float(xi[0]), float(np.exp(t[0])), float(at.value[0]))


def region(of: Excesses, drop: float = ONE_SIDED_95, shapes: tuple[float, float] = UNBOUNDED) -> Region:
    """Where twice the log-likelihood is at most ``drop`` below its maximum. ValueError as in ``fit``."""
    best = fit(of, shapes)
    goal = best.log_likelihood - drop / 2
    ends = [_end(of, best, goal, end) for end in shapes]
    # Nodes like those of Chebyshev: at its ends the region is as round as an ellipse.
    xi = ends[0] + (ends[1] - ends[0]) * (1 - np.cos(np.linspace(0, np.pi, _NODES))) / 2
    ridge = best_scale(of, xi, np.full(xi.size, np.log(best.sigma)))
    low, high = (np.exp(crossing(of, xi, ridge, goal, side)) for side in (-1, 1))
    return Region(best, xi, low, high, of.threshold, of.count, of.units)


def _end(of: Excesses, best: Fit, goal: float, end: float) -> float:
    """The shape between the best one and ``end`` at which the likelihood falls to the goal; ``end`` if it does not."""
    near, reach = best.xi, 8 * (1 + abs(best.xi)) / np.sqrt(of.count)
    far = end if abs(end - near) < reach else near + float(np.copysign(reach, end - near))
    for _ in range(3):
        grid = np.linspace(near, far, 9)
        t, at = best_scale(of, grid, np.full(grid.size, np.log(best.sigma)))
        below = np.flatnonzero(at.value < goal)
        if not below.size:
            return far if far == end else _end(of, Fit(far, float(np.exp(t[-1])), 0), goal, end)
        first = max(int(below[0]), 1)
        near, far = float(grid[first - 1]), float(grid[first])
    share = (at.value[first - 1] - goal) / (at.value[first - 1] - at.value[first])
    return near + (far - near) * float(np.clip(share, 0, 1))


def _top_of(grid: Floats, values: Floats) -> float:
    """Where on a grid of equal distances the largest value lies."""
    return float(np.interp(_parabola(values)[0], np.arange(grid.size), grid))


def _peak(values: Floats) -> float:
    """The largest of a smooth function that is known at nodes of equal distance."""
    return _parabola(values)[1]


def _parabola(values: Floats) -> tuple[float, float]:
    """Place and height of the top of the parabola through the highest value and its neighbours."""
    at = int(np.argmax(values))
    if not 0 < at < values.size - 1 or not np.isfinite(values[at - 1 : at + 2]).all():
        return at, float(values[at])
    left, top, right = (float(value) for value in values[at - 1 : at + 2])
    bend = 2 * top - left - right
    return (at + (right - left) / (2 * bend), top + (right - left) ** 2 / (8 * bend)) if bend > 0 else (at, top)
