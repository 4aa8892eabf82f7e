# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the tail: what lies above each, whether its fit holds, and the limit that the tail supports."""

import math
from dataclasses import dataclass

import numpy as np

from rtproof.statistics import Floats, gamma_tails
from rtproof.summary.counts import Counts
from rtproof.tail.pareto_fit import (
    SHAPES,
    Excesses,
    FitRegion,
    TailFit,
    anderson_darling_p_value,
    anderson_darling_statistic,
    best_scale,
    coarsened_excesses,
    fit_region,
    fit_tail,
    fitted_survivals,
    highest_excesses,
    pareto_survival,
    tail_of,
)

# The next functions test whether the largest values belong to the rest. The fit of all other values judges them: a fit
# that has seen the few values of a second mechanism bends to meet them.


LARGEST = 10
_NODES = 41


@dataclass(frozen=True)
class TopTest:
    """The test of the largest values.

    number: how many of the largest values were judged. split: the edge above which they lie.
    p: the probability that values are at least as large as these by chance.
    """

    number: int
    split: float
    p: float


def top_test(of: Excesses) -> TopTest:
    """The test of about the ten largest values, or of the nearest number that coarse bins allow.

    The fit sees the other values, and of the largest only their number. Beyond the split, -ln of the fitted survival is
    exponential. So the largest of the values and their sum (a gamma distribution) have known tails. p is twice the
    smaller of the two tails, averaged over the shapes that the other values leave likely.
    """
    above = of.n[::-1].cumsum()[::-1]
    at = int(np.argmin(np.abs(np.log(above / LARGEST))))
    number, split = int(above[at]), float(of.lo[at])
    # The bins below, and one bin without end for all other values.
    body = coarsened_excesses(Excesses(of.threshold, of.lo[:at], of.width[:at], of.n[:at], of.units))
    ends = (np.array([of.lo[at]]), np.array([np.inf]), np.array([of.n[at:].sum()]))
    lo, width, n = (np.append(*pair) for pair in zip((body.lo, body.width, body.n), ends, strict=True))
    rest = Excesses(of.threshold, lo, width, n, of.units)
    xi = np.linspace(*SHAPES, _NODES)
    t, score = best_scale(rest, xi)
    likely = np.exp(score.value - score.value.max())
    largest = Excesses(0.0, of.lo[at:], of.width[at:], of.n[at:], of.units)
    p = [_p(largest, split, TailFit(*pair, 0.0)) for pair in zip(xi, np.exp(t), strict=True)]
    return TopTest(number, of.threshold + split, float(np.average(p, weights=likely)))


def _p(largest: Excesses, split: float, fit: TailFit) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        places: Floats = -np.log(fitted_survivals(largest, fit) / pareto_survival(split, fit.xi, fit.sigma))
    total, most = float(places.sum()), float(places.max())
    if not math.isfinite(total):
        return 0.0
    of_most = -math.expm1(places.size * math.log1p(-math.exp(-most))) if most > 0 else 1.0
    return min(1.0, 2 * min(gamma_tails(places.size, total)[1], of_most))


MOST_THRESHOLDS = (200, 400, 800, 1600, 3200, 6400)
FEWEST_EXCESSES = MOST_THRESHOLDS[0]
"""The smallest number of excesses that is fitted."""
MOST_SHARE = 0.1
"""The largest share of the units in a tail. Values above a lower threshold are no tail."""
HOLDS = 0.10
"""A fit is used if p of Anderson and Darling's test is above this."""
BROKEN = 0.05
"""If p is below this, no larger number of excesses is tried."""
REACH = 24
"""A fit is used if the best fit has fewer than this many times its excesses: five rungs."""
FEWEST_BINS = 5
WIDEST_BIN = 2.0
"""The widest bins, in sigma. A tail that falls faster is narrower than the clock can show."""


@dataclass(frozen=True)
class ThresholdFit:
    """The fit of the ``k`` largest values. k is the number nearest to one of MOST_THRESHOLDS that the bins allow.

    fit: of any shape, for display. region: of shapes >= 0, for limits.
    a2: the statistic of Anderson and Darling's test; None: infinite. p: its p-value.
    bins: the number of bins that are not empty.
    """

    excesses: Excesses
    fit: TailFit
    region: FitRegion
    a2: float
    p: float
    bins: int

    @property
    def k(self) -> int:
        """How many of the largest values it is of."""
        return self.excesses.count

    @property
    def coarse(self) -> bool:
        """Whether the bins are too wide for the tail."""
        return self.bins < FEWEST_BINS or self.excesses.bin_width > WIDEST_BIN * self.fit.sigma

    @property
    def holds(self) -> bool:
        """Whether the fit may be used."""
        return self.p > HOLDS and not self.coarse

    def limit(self, probability: float) -> float:
        """The upper limit of the level that a unit exceeds with this probability, by this fit alone.

        If the probability is larger than the share above the threshold, the limit is the threshold.
        """
        if probability > self.k / self.excesses.units:
            return self.excesses.threshold
        return self.region.level_upper(probability)


@dataclass(frozen=True)
class ThresholdLadder:
    """The fits of a tail, called rungs, from the fewest excesses to the most.

    best: the last rung that may be used, which has the most excesses (k*).
    largest: the upper end of the bin with the largest value.
    """

    rungs: tuple[ThresholdFit, ...]
    best: ThresholdFit | None
    largest: float
    units: int

    @property
    def used(self) -> tuple[ThresholdFit, ...]:
        """The rungs whose limits make the envelope."""
        best = self.best.k if self.best else 0
        return tuple(rung for rung in self.rungs if rung.holds and rung.k <= best < REACH * rung.k)

    def limit(self, probability: float) -> float | None:
        """The one-sided 95 % upper limit of the level that a unit exceeds with this probability; None if no fit holds.

        It is never below the largest measured value.
        """
        levels = [rung.limit(probability) for rung in self.used]
        return max(self.largest, *levels) if levels else None

    def probability(self, level: float) -> float | None:
        """The one-sided 95 % upper limit of the probability that a unit exceeds the level; None if no fit covers it."""
        beyond = [rung.region.probability_upper(level) for rung in self.used if level >= rung.excesses.threshold]
        return max(beyond, default=None)

    @property
    def shown(self) -> ThresholdFit | None:
        """The fit that a report shows: the best, or else that of the fewest values with fine bins, or of the fewest."""
        fine = [rung for rung in self.rungs if not rung.coarse]
        return self.best or next(iter(fine or self.rungs), None)


def threshold_ladder(counts: Counts, units: int, step: int | None = None) -> ThresholdLadder:
    """Fit the highest values of ``units`` units, such as one-second maxima.

    step: the step of the clock that rounded the values down, if it is known (``tail_of``). There are no rungs without
        values, or with fewer units than the lowest rung needs.
    """
    tail = tail_of(counts, units, step)
    if not tail.n.size:
        return ThresholdLadder((), None, -np.inf, units)
    # The excesses at the thresholds nearest to each of MOST_THRESHOLDS, each once, with more than one bin above.
    nearest = (highest_excesses(tail, k, FEWEST_EXCESSES, MOST_SHARE * units) for k in MOST_THRESHOLDS)
    admissible = {one.threshold: one for one in nearest if one is not None and one.n.size > 1}
    rungs = []
    for excesses in admissible.values():
        quick = coarsened_excesses(excesses)
        free = fit_tail(quick)
        a2 = anderson_darling_statistic(excesses, free)
        p = anderson_darling_p_value(a2, free.xi, excesses.bin_width / free.sigma)
        rungs.append(ThresholdFit(excesses, free, fit_region(quick), a2, p, excesses.n.size))
    best = None
    for rung in rungs:
        if rung.p < BROKEN and not rung.coarse:
            break
        best = rung if rung.holds else best
    return ThresholdLadder(tuple(rungs), best, float(tail.lo[-1] + tail.width[-1]), units)


TOP_P = 0.01
"""The largest p, averaged over shapes, at which the largest values do not belong to the rest.

It rejects fewer than 1 % of smooth tails. 0.001 with the most likely shape alone would reject up to 4 %.
"""
HEAVY_XI = 0.5
HEAVY_XI_UPPER = 0.7
WIDEST = 3
"""The largest useful limit, as a multiple of the largest value."""


@dataclass(frozen=True)
class TailLimit:
    """The limit of a tail, and the reasons against it.

    envelope: the level that the horizon exceeds once at most on average, at 95 %. None if no fit holds.
    codes: the reasons against it. COARSE: bins too wide for the tail. FIT: no fit holds. HEAVY: no useful limit exists.
        TOP: the largest values do not belong to the rest. WIDE: beyond three times the largest value.
    top: the test of the largest values. Without a fit that holds, a few values may be the reason; the others are then
        fitted without them.
    """

    codes: tuple[str, ...]
    envelope: float | None
    ladder: ThresholdLadder
    top: TopTest | None


def tail_limit(counts: Counts, units: int, horizon_units: float, step: int | None = None) -> TailLimit:
    """The level that ``horizon_units`` > 0 exceed once on average. step: as in ``threshold_ladder``."""
    if horizon_units <= 0:
        raise ValueError("a horizon must be positive")
    rungs = threshold_ladder(counts, units, step)
    envelope = rungs.limit(1 / horizon_units)
    shown = rungs.shown
    top = top_test(shown.excesses) if shown and not shown.coarse else None
    enough = MOST_SHARE * units >= FEWEST_EXCESSES and counts.total >= FEWEST_EXCESSES
    coarse = enough and all(rung.coarse for rung in rungs.rungs)
    # The best fit says whether the tail is too heavy; if none holds, the fit with the fewest excesses.
    judge = rungs.best or next(iter(rungs.rungs), None)
    fine = judge if judge and not judge.coarse else None
    heavy = fine is not None and (fine.fit.xi > HEAVY_XI or float(fine.region.xi[-1]) > HEAVY_XI_UPPER)
    found = {
        "COARSE": coarse,
        "FIT": bool(rungs.rungs) and not coarse and rungs.best is None,
        "HEAVY": heavy,
        "TOP": top is not None and top.p < TOP_P,
        "WIDE": envelope is not None and envelope > WIDEST * max(rungs.largest, 0),
    }
    return TailLimit(tuple(code for code, holds in found.items() if holds), envelope, rungs, top)
