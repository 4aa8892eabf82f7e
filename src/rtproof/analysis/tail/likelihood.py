# SPDX-License-Identifier: Apache-2.0
"""The interval-censored likelihood of a generalised Pareto distribution over bins, for many shapes at once.

Of excesses y over a high threshold, 1 - F(y) = (1 + xi y / sigma)^(-1 / xi) (Pickands 1975; Davison and Smith 1990).
A bin [lo, lo + width) with n values adds n ln(S(lo) - S(lo + width)). With t = ln sigma this is concave in t for every
xi > -1, since ln y has a log-concave density and integrals of such over intervals are log-concave (Prekopa 1973): so
Newton's method in t always arrives.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rtproof.analysis.tail.excesses import Excesses, Floats

FLAT = 1e-9
"""Shapes nearer to 0 than this are taken for it."""
_STEPS = 60
_SMALL = 1e-10


@dataclass(frozen=True)
class Score:
    """The log-likelihood at some (xi, t), and its first two derivatives to t; -inf where it has none."""

    value: Floats
    slope: Floats
    bend: Floats


def survival(y: ArrayLike, xi: ArrayLike, sigma: ArrayLike) -> Floats:
    """1 - F(y) of the generalised Pareto distribution, for y >= 0; 0 beyond its end where xi < 0."""
    y, xi, sigma = np.asarray(y, float), away_from_zero(xi), np.asarray(sigma, float)
    inside = np.maximum(xi * (y / sigma), -1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(-np.log1p(inside) / xi), dtype=np.float64)


def growth(ratio: ArrayLike, xi: ArrayLike) -> Floats:
    """(ratio^xi - 1) / xi: by how many sigma the level lies above the threshold that is ``ratio`` times as rare."""
    xi = away_from_zero(xi)
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(xi * np.log(ratio)) / xi, dtype=np.float64)


def away_from_zero(xi: ArrayLike) -> Floats:
    """So that all formulas may divide by it: the limit for 0 is met to nine digits."""
    shapes = np.asarray(xi, dtype=np.float64)
    return np.where(np.abs(shapes) < FLAT, FLAT, shapes)


def score(of: Excesses, xi: Floats, t: Floats) -> Score:
    """At the pairs (xi[j], t[j]), one-dimensional."""
    shape, scale = away_from_zero(xi)[:, None], np.exp(t)[:, None]
    near = scale + shape * of.lo
    far = near + shape * of.width
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The bin that holds the end of the distribution reaches to infinity.
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


def lowest(of: Excesses, xi: Floats) -> Floats:
    """The t below which the largest values could not have been: -inf for xi >= 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(xi < 0, np.log(np.maximum(-xi * of.lo[-1], 0)), -np.inf)


def best_scale(of: Excesses, xi: Floats, start: Floats | None = None) -> tuple[Floats, Score]:
    """For each shape the t of the largest likelihood, and the score there."""
    edge = lowest(of, xi)
    t = np.full(xi.size, np.log(of.mean)) if start is None else start
    t = np.maximum(t, edge + 0.1)
    for _ in range(_STEPS):
        at = score(of, xi, t)
        step = -at.slope / at.bend
        t = _inside(t, t + np.clip(step, -2, 2), edge)
        if np.abs(step).max() < _SMALL**0.5:
            break
    return t, score(of, xi, t)


def crossing(of: Excesses, xi: Floats, best: tuple[Floats, Score], goal: float, side: int) -> Floats:
    """The t at which the likelihood has fallen to ``goal``, above (side 1) or below (-1) the best scale."""
    edge = lowest(of, xi)
    top, at_top = best
    fall = np.maximum(at_top.value - goal, 0)
    t = _inside(top, top + side * np.sqrt(2 * fall / -at_top.bend), edge)
    for _ in range(_STEPS):
        at = score(of, xi, t)
        step = (goal - at.value) / np.where(at.slope * side < 0, at.slope, -side * np.inf)
        step = np.where(fall > 0, np.clip(step, -2, 2), 0)
        t = _inside(t, t + step, edge)
        if np.abs(step).max() < 1e-7:
            break
    return t


def _inside(old: Floats, new: Floats, edge: Floats) -> Floats:
    """A step that would leave the domain goes nine tenths of the way to its edge."""
    with np.errstate(invalid="ignore"):
        return np.where(new > edge, new, old + 0.9 * (edge - old))
