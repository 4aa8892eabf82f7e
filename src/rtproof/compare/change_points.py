# SPDX-License-Identifier: Apache-2.0
"""Find where the mean of a sequence of runs changes, and how much neighbouring runs resemble each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rtproof.statistics import beta_tails, student_quantile

Floats = NDArray[np.float64]

# How much a run resembles the run before it, by the differences of runs one and two places apart. In an autoregressive
# process of first order (Box and Jenkins), their mean squares are proportional to 1 - phi and 1 - phi^2. Very large
# differences, such as a step's, are left out. Normal scores of ranks stand for the values, so that no outlier decides.

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


def neighbour_correlation(values: Sequence[float]) -> float:
    """Return the correlation of neighbouring values, from 0 to MOST in steps of 1 / STEPS.

    The result is 0 for fewer than FEWEST values, and where the correlation is not clear.
    """
    series = np.asarray(values, np.float64)
    if series.size < FEWEST:
        return 0.0
    normal = NormalDist()
    of_ranks = np.array([normal.inv_cdf((rank + 0.5) / series.size) for rank in range(series.size)])
    _, place, ties = np.unique(series, return_inverse=True, return_counts=True)
    scores = (np.bincount(place, weights=of_ranks[np.argsort(np.argsort(series))]) / ties)[place]
    steps = np.diff(series)
    near_by = np.abs(steps) <= FAR * MAD * np.median(np.abs(steps))
    both_near = near_by[1:] & near_by[:-1]
    near = ((scores[1:] - scores[:-1])[near_by] ** 2).mean() if near_by.any() else 0.0
    far = ((scores[2:] - scores[:-2])[both_near] ** 2).mean() if both_near.any() else 0.0
    found = float(far / near) - 1 if near else 0.0
    return round(min(found + RAISED * found**2, MOST) * STEPS) / STEPS if found >= CLEAR else 0.0


# A step is a change if the runs are less likely without it: if neither a slow wander (a warm machine stays warm;
# neighbours correlate by SLOW) nor independent noise explains the jump. The share of the wander in the variance is that
# with the largest likelihood. Places come from windows that are split where the energy distance is largest, as Hunter
# and Apache Otava do.

WINDOW = 50
ALARMS = 0.01
"""A change needs p below ALARMS divided by the number of runs: more runs have more places for a change."""
FEW = 40
"""Fewer runs count as this number: few runs hardly show how they wander, which makes p too small."""
WEAK = 1e-3
"""The threshold of p in a window, by Student's t test; the whole sequence then decides."""
SHORTEST = 3
SLOW = 0.9
SHARES: Floats = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
"""Shares of the wander in the variance that are tried."""
TINY = 1e-12
"""The least sum of squares about the means, as a share of all squares: rounding leaves more."""


def mean_changes(
    values: Sequence[float], p: float | None = None, window: int = WINDOW, shortest: int = SHORTEST, margin: float = 0.0
) -> tuple[tuple[int, float], ...]:
    """Return the changes of the mean in a sequence of finite values, in order: the first value behind each, and its p.

    p: the threshold of each change; by default that of ALARMS. window, shortest: the numbers of values in a window and
    in the shortest stretch. margin: a step of at most this size is no change.
    """
    series = np.asarray(values, np.float64)
    threshold = ALARMS / max(series.size, FEW) if p is None else p
    places = _weak(series, max(WEAK, threshold), window, shortest)
    steps = _Whitened.of([series - series.mean(), *(np.arange(series.size) >= at for at in places)]) if places else None
    kept = list(range(len(places)))
    while steps and kept:
        jumps, t_squared = steps.jumps([1 + each for each in kept], [0], margin)
        freedom = series.size - len(kept) - 1
        ends = [0, *(places[each] for each in kept), series.size]
        means = [float(series[start:stop].mean()) for start, stop in pairwise(ends)]
        p_values = []
        for (before, after), jump, t2 in zip(pairwise(means), jumps[:, 0], t_squared[:, 0], strict=True):
            # A jump is no change where the means do not step its way, by more than ``margin``.
            lasts = (after - before) * math.copysign(1, jump) > margin
            p_values.append(beta_tails(freedom / (freedom + t2), freedom / 2, 0.5)[0] if lasts else 1.0)
        weakest = p_values.index(max(p_values))
        if p_values[weakest] < threshold:
            return tuple(zip(ends[1:-1], p_values, strict=True))
        del kept[weakest]
    return ()


DRIFT = 1e-3
"""The threshold of p of a slow drift."""


def slow_drift(values: Sequence[float], margin: float = 0.0) -> float | None:
    """Return the last value minus the first by a straight line, which neither chance nor a slow wander explains.

    None where no drift is sure, or where it is within ``margin``.
    """
    series = np.asarray(values, np.float64)
    if not np.ptp(series):
        return None
    sizes, t_squared = _Whitened.of([series - series.mean(), np.linspace(0, 1, series.size)]).jumps([1], [0], margin)
    freedom, size = series.size - 2, float(sizes[0, 0])
    sure = beta_tails(freedom / (freedom + float(t_squared[0, 0])), freedom / 2, 0.5)[0] < DRIFT
    return size if sure and abs(size) > margin else None


@dataclass(frozen=True)
class _Whitened:
    """Columns of n runs, made independent for each of SHARES.

    products: for each share, the sums of products of the columns; the last column is constant. scale: logarithm of the
    determinant of the covariance. n: number of runs.
    """

    products: Floats
    scale: Floats
    n: int

    @classmethod
    def of(cls, columns: Sequence[NDArray[np.generic]]) -> "_Whitened":
        """Return the columns and a constant, each run without what the runs before it predict (R. E. Kalman 1960)."""
        rows = np.column_stack([*columns, np.ones(len(columns[0]))])
        share = SHARES[:, None]
        wander, known = np.zeros((SHARES.size, rows.shape[1])), share
        fresh = np.empty((SHARES.size, *rows.shape))
        scale = np.zeros(SHARES.size)
        for at, row in enumerate(rows):
            variance = known + 1 - share
            new, gain = row - wander, known / variance
            fresh[:, at] = new / np.sqrt(variance)
            scale += np.log(variance[:, 0])
            wander = SLOW * (wander + gain * new)
            known = SLOW**2 * known * (1 - gain) + (1 - SLOW**2) * share
        return cls(fresh.transpose(0, 2, 1) @ fresh, scale, len(rows))

    def jumps(
        self, steps: list[int], values: list[int], margin: float = 0.0, shift: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return the size of each step in each column of values, and the square of its t against ``margin``.

        t is Student's if the share of the wander is known. steps, values: their columns. shift: is added to each step.
        """
        some = [*steps, -1]
        right = self.products[:, some][:, :, values]
        inverse = np.linalg.inv(self.products[:, some][:, :, some])
        found = inverse @ right
        whole = self.products[:, values, values][:, None]
        squares = np.maximum(whole - (right * found).sum(axis=1, keepdims=True), TINY * whole)
        with_it, sizes = self._likelihood(squares)[:, 0], found[:, :-1] + shift
        likeliest = sizes[with_it.argmax(axis=0), :, range(len(values))].T
        errors = np.diagonal(inverse, axis1=1, axis2=2)[:, :-1, None]
        away = sizes - np.clip(likeliest, -margin, margin)
        without = self._likelihood(squares + away**2 / errors).max(axis=0)
        gained = np.maximum(2 / self.n * (with_it.max(axis=0) - without), 0.0)
        return likeliest, (self.n - len(some)) * np.expm1(gained)

    def _likelihood(self, squares: Floats) -> Floats:
        """Return the logarithm of the largest likelihood with these sums of squares, for each share."""
        likelihood: Floats = -(self.n * np.log(squares) + self.scale[:, None, None]) / 2
        return likelihood


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


def change_p_value(left: Floats, right: Floats) -> float:
    """Return the p-value of Student's two-sided t test with pooled variance.

    The result is 1 where both stretches together have fewer than three values.
    """
    freedom = left.size + right.size - 2
    difference = float(left.mean() - right.mean())
    if freedom < 1 or difference == 0:
        return 1.0
    squares = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
    noise = (1 / left.size + 1 / right.size) * squares
    return beta_tails(noise / (noise + difference**2), freedom / 2, 0.5)[0] if squares > 0 else 0.0


FOUND = 0.9
"""The probability with which a visible step in the middle is found."""
TRIED = 200
LARGEST_STEP = 64.0


@lru_cache(maxsize=256)
def visible_step(runs: int, phi: float = 0.0) -> float:
    """Return the step in the middle of this number of runs that is found 9 times of 10.

    The step is in standard deviations of one run. It has to pass the weak threshold in a window and the strict
    threshold on the whole sequence, here in TRIED histories. A step near an end has to be larger. phi: the correlation
    of neighbouring runs.
    """
    generator = np.random.default_rng(runs)
    share = min(phi / SLOW, 1.0)
    wander = generator.standard_normal((runs, TRIED))
    for at in range(1, runs):
        wander[at] = SLOW * wander[at - 1] + math.sqrt(1 - SLOW**2) * wander[at]
    noise = math.sqrt(share) * wander + math.sqrt(1 - share) * generator.standard_normal((runs, TRIED))
    some = _Whitened.of([np.arange(runs) >= runs // 2, *noise.T])
    surely = student_quantile(1 - ALARMS / max(runs, FEW) / 2, runs - 2) ** 2
    # In a window, Student's t between the two halves has to pass the weak threshold.
    half = min(runs, WINDOW)
    weak = student_quantile(1 - WEAK / 2, half - 2) + student_quantile(FOUND, half - 2)
    low, high = math.sqrt(4 / half) * weak, LARGEST_STEP
    while high - low > 0.01:
        middle = (low + high) / 2
        found = float((some.jumps([0], list(range(1, 1 + TRIED)), shift=middle)[1] > surely).mean())
        low, high = (low, middle) if found >= FOUND else (middle, high)
    return low
