# SPDX-License-Identifier: Apache-2.0
"""The limit that the tail alone allows to state, or the codes of the reasons against one."""

from dataclasses import dataclass

from rtproof.analysis.counts import Counts
from rtproof.analysis.tail.ladder import FEWEST, MOST_SHARE, Ladder, Rung, ladder
from rtproof.analysis.tail.top import Top

FARTHEST = 10
"""Times what was measured: no further ahead is anything said."""
TOP_P = 0.01
"""Of the p averaged over shapes: it finds as many single strange events as 0.001 of the most likely shape alone, whose
false alarms reach 4 % of smooth tails; here they are below 1 %.
"""
HEAVY_XI = 0.5
HEAVY_XI_UPPER = 0.7
WIDEST = 3
"""Times the largest value: a limit beyond says nothing."""


@dataclass(frozen=True)
class TailLimit:
    """Either a level or codes. level: one that in the horizon is exceeded once at most, on average, at 95 %.

    envelope: the level whatever the codes, for a plot of what was refused; None if no fit holds. Codes, in this order:
    FEW (too few excesses), FAR (horizon), COARSE (bins too wide for the tail), FIT (no fit holds), HEAVY (no useful
    limit exists), TOP (the largest do not belong to the rest), WIDE (beyond three times the largest value).
    """

    level: float | None
    codes: tuple[str, ...]
    envelope: float | None
    ladder: Ladder
    top: Top | None


def limit_of(counts: Counts, units: int, horizon_units: float, step: int | None = None) -> TailLimit:
    """From the counts of ``units`` independent alike units, the level that ``horizon_units`` exceed once on average.

    step: as in ``ladder``. ValueError for a horizon that is not positive.
    """
    if horizon_units <= 0:
        raise ValueError("a horizon must be positive")
    rungs = ladder(counts, units, step)
    envelope = rungs.limit(1 / horizon_units)
    top = rungs.top
    found = {
        "FEW": not _enough(counts, units),
        "FAR": horizon_units > FARTHEST * units,
        "COARSE": _coarse(rungs, counts, units),
        "FIT": bool(rungs.rungs) and not _coarse(rungs, counts, units) and rungs.best is None,
        "HEAVY": _heavy(rungs),
        "TOP": top is not None and top.p < TOP_P,
        "WIDE": envelope is not None and envelope > WIDEST * max(rungs.largest, 0),
    }
    codes = tuple(code for code, holds in found.items() if holds)
    return TailLimit(None if codes else envelope, codes, envelope, rungs, top)


def _enough(counts: Counts, units: int) -> bool:
    return MOST_SHARE * units >= FEWEST and counts.total >= FEWEST


def _coarse(rungs: Ladder, counts: Counts, units: int) -> bool:
    """Whether there are values enough, but no threshold at which they show a tail."""
    return _enough(counts, units) and all(rung.coarse for rung in rungs.rungs)


def _heavy(rungs: Ladder) -> bool:
    """By the best fit; where none holds, by the one with the fewest excesses."""
    judge: Rung | None = rungs.best or next(iter(rungs.rungs), None)
    if judge is None or judge.coarse:
        return False
    return judge.fit.xi > HEAVY_XI or float(judge.region.xi[-1]) > HEAVY_XI_UPPER
