# SPDX-License-Identifier: Apache-2.0
"""Reasons to refuse that the fitted tail gives, with the figures that tell why."""

from dataclasses import dataclass

import numpy as np

from rtproof.analysis.forecast import wording
from rtproof.analysis.forecast.model import Refusal
from rtproof.analysis.forecast.units import Units
from rtproof.analysis.tail.ladder import FEWEST, FEWEST_BINS, MOST_SHARE, Rung
from rtproof.analysis.tail.limits import WIDEST, TailLimit
from rtproof.analysis.tail.region import UNBOUNDED
from rtproof.record import Int64Array

PER_OCTAVE = 8
"""Columns of the logarithmic histogram in which peaks are looked for."""
MOST_PEAKS = 5
_SURE = 3.0
"""Standard deviations by which a peak stands above the valleys beside it."""


@dataclass(frozen=True)
class Largest:
    """The largest value of a run and when it was, in words."""

    value_ns: int
    at: str


def refusals(found: TailLimit, units: Units, largest: Largest) -> tuple[Refusal, ...]:
    """COARSE, FIT, TOP, HEAVY, WIDE: those that the tail gives reason for."""
    told = {"COARSE": _coarse, "FIT": _fit, "TOP": _top, "HEAVY": _heavy, "WIDE": _wide}
    return tuple(tell(found, units, largest) for code, tell in told.items() if code in found.codes)


def peaks(values_ns: Int64Array) -> tuple[int, ...]:
    """Where values gather: the middles of the highest columns of a logarithmic histogram between which it falls."""
    if not values_ns.size or values_ns.max() <= 0:
        return ()
    column = np.floor(np.log2(np.maximum(values_ns, 1)) * PER_OCTAVE).astype(np.int64)
    height = np.bincount(column)
    found: list[int] = []
    for at in np.argsort(-height, kind="stable").tolist():
        if len(found) < MOST_PEAKS and height[at] and all(_parted(height, at, other) for other in found):
            found.append(at)
    return tuple(wording.rounded(float(np.median(values_ns[column == at]))) for at in sorted(found))


def _parted(height: Int64Array, lower: int, higher: int) -> bool:
    """Whether a column and a higher one have a valley between them that chance does not make."""
    between = height[min(lower, higher) + 1 : max(lower, higher)]
    valley = int(between.min()) if between.size else int(height[lower])
    return bool(height[lower] - valley > _SURE * np.sqrt(height[lower] + valley))


def _first(found: TailLimit) -> Rung | None:
    """The fit of the fewest largest values whose bins are fine enough, else of the fewest."""
    rungs = found.ladder.rungs
    return next((rung for rung in rungs if not rung.coarse), next(iter(rungs), None))


def judged(found: TailLimit) -> Rung | None:
    """The fit that is told of: the one that the limit rests on, else the first that could be made."""
    return found.ladder.best or _first(found)


def _fitted(found: TailLimit) -> Rung:
    rung = judged(found)
    assert rung is not None, "a refusal for its shape comes of a tail that was fitted"
    return rung


def _coarse(found: TailLimit, units: Units, largest: Largest) -> Refusal:
    rung = _first(found)
    if rung and rung.bins >= FEWEST_BINS:
        return wording.narrow(rung.bin_width, rung.fit.sigma)
    if rung:
        return wording.alike(rung.bins, FEWEST_BINS, rung.k, units.count, units.step_ns)
    return _without_threshold(units)


def _without_threshold(units: Units) -> Refusal:
    """No value has enough others above it, and few enough: one is too frequent, or it has all of them."""
    values, n = units.counts.lo, units.counts.n
    above = n[::-1].cumsum()[::-1] - n
    at = int(np.flatnonzero(above < FEWEST)[0])
    count = int(n[at])
    if not above[at] and count <= MOST_SHARE * units.count:
        return wording.alike(1, FEWEST_BINS, count, units.count, units.step_ns)
    return wording.same(int(values[at]), count, units.count, int(above[at]), FEWEST)


def _fit(found: TailLimit, units: Units, largest: Largest) -> Refusal:
    rung = _fitted(found)
    return wording.fit(rung.p, rung.k, peaks(units.largest_ns))


def _top(found: TailLimit, units: Units, largest: Largest) -> Refusal:
    assert found.top is not None, "TOP comes of a test of the largest"
    return wording.top(found.top.number, found.top.p, largest.value_ns, largest.at)


def _heavy(found: TailLimit, units: Units, largest: Largest) -> Refusal:
    rung = _fitted(found)
    upper = float(rung.region.xi[-1])
    return wording.heavy(rung.fit.xi, upper if upper < UNBOUNDED[1] else None)


def _wide(found: TailLimit, units: Units, largest: Largest) -> Refusal:
    assert found.envelope is not None, "WIDE comes of a limit"
    return wording.wide(found.envelope, largest.value_ns, WIDEST)
