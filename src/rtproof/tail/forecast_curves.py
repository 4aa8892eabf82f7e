# SPDX-License-Identifier: Apache-2.0
"""What a report draws of a tail: return levels, mean excesses, and fitted against expected shares.

All three are looked at and decide nothing. They are drawn of the fit that a forecast rests on, or, where it is refused,
of the one with the fewest values, so that the reason can be seen.
"""

from dataclasses import dataclass

import numpy as np

from rtproof.record.contents import Int64Array
from rtproof.statistics.exact_bounds import beta_inverse
from rtproof.tail.forecast_model import Forecast, TailUnits
from rtproof.tail.pareto_fit import fitted_survivals
from rtproof.tail.thresholds import Floats, ThresholdFit

POINTS = 80
FEWEST_EXCESSES_SHOWN = 10
"""Values behind the last mean excess."""
_NORMAL = 1.959964
"""97.5 % point of the normal distribution."""
_SIDE = 0.025


@dataclass(frozen=True)
class ReturnLevels:
    """Levels in ns over the time in which each is exceeded once, in ns: as measured, as fitted, and its 95 % limits."""

    measured_period: Floats
    measured: Floats
    period: Floats
    fitted: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class MeanExcess:
    """By how much on average the values above a threshold exceed it, in ns, with the interval of 95 % of that mean."""

    threshold: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Probabilities:
    """Share of the fitted values that are larger: expected, by the fit, and where 95 % lie at each place by chance."""

    expected: Floats
    fitted: Floats
    low: Floats
    high: Floats


def drawn_units(forecast: Forecast) -> ThresholdFit | None:
    """The fit that is drawn; None if nothing was fitted."""
    if forecast.ladder is None:
        return None
    fine = [rung for rung in forecast.ladder.rungs if not rung.coarse]
    return forecast.ladder.best or next(iter(fine or forecast.ladder.rungs), None)


def return_levels(forecast: Forecast, rung: ThresholdFit, units: TailUnits) -> ReturnLevels:
    """To the horizon, or the end of the run if that is later.

    Measured from the lowest threshold of all fits, fitted from that of this one. The upper limit of a forecast is its
    own, of all fits that hold; of one that is refused it is this fit's.
    """
    at = _places(max(each.k for each in forecast.ladder.rungs) if forecast.ladder else rung.k)
    largest = np.sort(units.largest_ns)[::-1][at - 1].astype(np.float64)
    region, share = rung.region, rung.k / rung.excesses.units
    ends = units.unit_ns / share, float(max(forecast.horizon_ns, units.measured_ns))
    period = np.geomspace(ends[0] * (1 + 1e-9), ends[1], POINTS)
    each = units.unit_ns / period
    used = forecast.ladder.used if forecast.ladder and forecast.limit_ns is not None else (rung,)
    # A fit of fewer values says nothing of what more of them exceed.
    high = np.array([max(one.region.level_upper(p) for one in used if one.k >= p * units.count) for p in each])
    if forecast.limit_ns is not None:
        high[period >= units.measured_ns] = np.maximum(high[period >= units.measured_ns], largest[0])
    return ReturnLevels(
        units.measured_ns / at[::-1],
        largest[::-1],
        period,
        np.array([region.level(p) for p in each]),
        np.array([region.level_lower(p) for p in each]),
        high,
    )


def mean_excess(units: TailUnits, most: int) -> MeanExcess | None:
    """At thresholds that leave from ``most`` values down to a few; None where two thresholds do not differ."""
    ordered = np.sort(units.largest_ns)[::-1].astype(np.float64)
    leaving = _places(min(most, ordered.size - 1))
    thresholds = np.unique(ordered[leaving])
    excesses = [ordered[ordered > threshold] - threshold for threshold in thresholds]
    kept = [each for each in excesses if each.size >= FEWEST_EXCESSES_SHOWN]
    if len(kept) < 2:
        return None
    mean = np.array([each.mean() for each in kept])
    half = np.array([_NORMAL * each.std(ddof=1) / np.sqrt(each.size) for each in kept])
    return MeanExcess(thresholds[: len(kept)], mean, np.maximum(mean - half, 0), mean + half)


def probabilities(rung: ThresholdFit) -> Probabilities:
    """Of the fit's own values: on a logarithmic scale the largest of them can be seen."""
    larger = fitted_survivals(rung.excesses, rung.fit)[::-1]
    at = _places(larger.size)
    ends = [[beta_inverse(p, int(k), larger.size + 1 - int(k)) for k in at] for p in (_SIDE, 1 - _SIDE)]
    return Probabilities(at / (larger.size + 1), larger[at - 1], *(np.array(end) for end in ends))


def _places(most: int) -> Int64Array:
    """Ranks from 1 to ``most``, all of the first and ever fewer of the others."""
    return np.unique(np.geomspace(1, most, POINTS).round().astype(np.int64)) if most > 0 else np.empty(0, np.int64)
