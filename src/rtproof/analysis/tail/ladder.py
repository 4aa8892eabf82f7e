# SPDX-License-Identifier: Apache-2.0
"""Thresholds from few excesses to many, and the largest limit of those whose fit holds.

One threshold chosen by a test covers too little: just before a fit is rejected it is already biased. The envelope of
those that hold pays with a limit that lies further out. A fit of a 32nd of the values adds only width to it: simulated
tails of seven distributions and four mixtures gain next to no coverage by it.
"""

from dataclasses import dataclass

import numpy as np

from rtproof.analysis.counts import Counts
from rtproof.analysis.tail.anderson_darling import p_value, statistic
from rtproof.analysis.tail.excesses import Excesses, Tail, coarsened, highest, tail_of
from rtproof.analysis.tail.region import Fit, Region, fit, region
from rtproof.analysis.tail.top import Top, top_test

RUNGS = (200, 400, 800, 1600, 3200, 6400)
FEWEST = RUNGS[0]
"""Excesses without which nothing is fitted."""
MOST_SHARE = 0.1
"""Of the units: what exceeds a lower threshold is no tail."""
HOLDS = 0.10
"""p of Anderson and Darling's test above which a fit is used."""
BROKEN = 0.05
"""p below which no larger number of excesses is looked at."""
REACH = 24
"""The best fit may have so many times the excesses of one that is used: five rungs."""
FEWEST_BINS = 5
WIDEST_BIN = 2.0
"""In sigma: a tail that falls faster is narrower than the clock can show."""


@dataclass(frozen=True)
class Rung:
    """The fit of the ``k`` largest values. k is what the bins gave for one of RUNGS.

    fit: of any shape, for display; region: of shapes >= 0, for limits. a2, p: Anderson and Darling's. bins: that are
    not empty; bin_width: of an average excess, in the unit of the values.
    """

    excesses: Excesses
    fit: Fit
    region: Region
    a2: float
    p: float
    bins: int

    @property
    def k(self) -> int:
        return self.excesses.count

    @property
    def bin_width(self) -> float:
        return self.excesses.bin_width

    @property
    def coarse(self) -> bool:
        """Whether the bins are too wide for the tail."""
        return self.bins < FEWEST_BINS or self.bin_width > WIDEST_BIN * self.fit.sigma

    @property
    def holds(self) -> bool:
        return self.p > HOLDS and not self.coarse

    def limit(self, probability: float) -> float:
        """Upper limit of the level that a unit exceeds with this probability, by this fit alone.

        A probability that exceeds the threshold more often has that for its limit.
        """
        if probability > self.k / self.excesses.units:
            return self.excesses.threshold
        return self.region.level_upper(probability)


@dataclass(frozen=True)
class Ladder:
    """Rungs from the fewest excesses to the most. best: the last that may be used, with the most of them (k*).

    largest: the upper end of the bin with the largest value.
    """

    rungs: tuple[Rung, ...]
    best: Rung | None
    largest: float
    units: int

    @property
    def used(self) -> tuple[Rung, ...]:
        """Those whose limits make the envelope."""
        best = self.best.k if self.best else 0
        return tuple(rung for rung in self.rungs if rung.holds and rung.k <= best < REACH * rung.k)

    def limit(self, probability: float) -> float | None:
        """One-sided 95 % upper limit of the level that a unit exceeds with this probability; None if no fit holds.

        Never below the largest value seen.
        """
        levels = [rung.limit(probability) for rung in self.used]
        return max(self.largest, *levels) if levels else None

    def probability(self, level: float) -> float | None:
        """One-sided 95 % upper limit of the probability that a unit exceeds the level; None where no fit tells it."""
        beyond = [rung.region.probability_upper(level) for rung in self.used if level >= rung.excesses.threshold]
        return max(beyond, default=None)

    @property
    def top(self) -> Top | None:
        """Whether the largest values belong to the rest, by the fit with the most excesses; None if none holds."""
        return top_test(self.best.excesses) if self.best else None


def ladder(counts: Counts, units: int, step: int | None = None) -> Ladder:
    """Fit the highest values of ``units`` units, such as one-second maxima.

    step: of the clock that rounded the values down, if it is known (``tail_of``). Without values, or with fewer units
    than the lowest rung needs, there are no rungs.
    """
    tail = tail_of(counts, units, step)
    if not tail.n.size:
        return Ladder((), None, -np.inf, units)
    rungs = tuple(_rung(excesses) for excesses in _admissible(tail))
    return Ladder(rungs, _best(rungs), tail.largest, units)


def _admissible(tail: Tail) -> list[Excesses]:
    """Of the thresholds that the bins offer, the nearest to each of RUNGS; none twice, none with one bin above."""
    found: dict[float, Excesses] = {}
    for k in RUNGS:
        one = highest(tail, k, FEWEST, MOST_SHARE * tail.units)
        if one is not None and one.n.size > 1:
            found.setdefault(one.threshold, one)
    return list(found.values())


def _rung(excesses: Excesses) -> Rung:
    quick = coarsened(excesses)
    free = fit(quick)
    a2 = statistic(excesses, free)
    p = p_value(a2, free.xi, excesses.bin_width / free.sigma)
    return Rung(excesses, free, region(quick), a2, p, excesses.n.size)


def _best(rungs: tuple[Rung, ...]) -> Rung | None:
    best = None
    for rung in rungs:
        if rung.p < BROKEN and not rung.coarse:
            break
        best = rung if rung.holds else best
    return best
