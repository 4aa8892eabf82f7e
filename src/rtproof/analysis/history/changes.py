# SPDX-License-Identifier: Apache-2.0
"""Where the mean of a sequence of runs changes: E-divisive with Student's t for its permutations, as Hunter does it.

A window slides over the sequence. In it the place where a change is most likely is the one whose two sides differ most
in energy distance (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate
data", 2014); a t test says whether the sides really differ, and each side is searched again. What is found weakly is
then weighed on the whole sequence, and the least sure change is taken away until all are sure (Fleming et al.,
"Hunter: using change point detection to hunt for performance regressions", 2023; Apache Otava).

Three things differ from Otava 0.8.0. Runs that resemble their neighbours are weighed as the fewer independent ones that
they are worth (``correlation``). Each side has at least SHORTEST values, so that one run alone is no change. And the
variance is divided by n - 2, where Otava divides by n first, which takes short sides to be less noisy than they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.history.correlation import contrast
from rtproof.analysis.special import beta_tails

WINDOW = 50
P_VALUE = 1e-4
WEAK = 10
"""How many times weaker a change may be to be weighed on the whole sequence."""
SHORTEST = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """at: the first value after it. before, after: means of the neighbouring stretches, which reach from ``since`` to
    ``until`` (exclusive). p: of a two-sided t test between them."""

    at: int
    since: int
    until: int
    before: float
    after: float
    p: float


def changes(
    values: Sequence[float],
    p: float = P_VALUE,
    window: int = WINDOW,
    shortest: int = SHORTEST,
    correlation: float = 0.0,
) -> tuple[Change, ...]:
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
        if energy <= 0 or p_value(series[start:at], series[at:stop]) > p:
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


def _weighed(series: Floats, places: list[int], phi: float) -> tuple[Change, ...]:
    ends = [0, *places, series.size]
    return tuple(_change(series, phi, *ends[number : number + 3]) for number in range(len(places)))


def _change(series: Floats, phi: float, since: int, at: int, until: int) -> Change:
    left, right = series[since:at], series[at:until]
    return Change(at, since, until, float(left.mean()), float(right.mean()), p_value(left, right, phi))


def p_value(left: Floats, right: Floats, phi: float = 0.0) -> float:
    """Of Student's t with pooled variance, two-sided; 1 where both together have fewer than three values.

    phi: correlation of neighbouring values. It makes means vary more than their values tell, and the values tell less.
    """
    if left.size + right.size < 3:
        return 1.0
    expected = contrast(left.size, right.size, phi)
    difference = float(left.mean() - right.mean())
    if difference == 0:
        return 1.0
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    if squares <= 0:
        return 0.0
    noise = expected.freedom * expected.variance * squares / expected.squares
    return beta_tails(noise / (noise + difference**2), expected.freedom / 2, 0.5)[0]
