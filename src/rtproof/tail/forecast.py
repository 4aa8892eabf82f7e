# SPDX-License-Identifier: Apache-2.0
"""From a run to its forecast, or to every reason against one, and the curves that a report draws of a tail."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtproof.core.phrases import quantity, when
from rtproof.record.contents import Int64Array, Record
from rtproof.statistics import beta_inverse
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Severity, Summary
from rtproof.tail import forecast_sentences
from rtproof.tail.forecast_model import REFUSAL_CODES, Forecast, ForecastHorizon, ForecastRefusal, TailUnits, tail_units
from rtproof.tail.pareto_fit import UNBOUNDED, Floats, fitted_survivals
from rtproof.tail.stationarity import Stationarity, stationarity
from rtproof.tail.thresholds import (
    FEWEST_BINS,
    FEWEST_EXCESSES,
    MOST_SHARE,
    WIDEST,
    TailLimit,
    ThresholdFit,
    tail_limit,
)

FEWEST_TAIL_UNITS = 200
"""The number of units in the smallest tail that is fitted."""
TAIL_PART = 10
"""A tail is at most this part (one tenth) of all units. Lower values are no tail."""
SHORTEST_NS = FEWEST_TAIL_UNITS * TAIL_PART * SECOND_NS
UNEVEN_P = 0.01
USUAL_FACTOR = 10
"""Without a request, a forecast looks this many times the measured time ahead."""
FARTHEST_FACTOR = 100
"""On request, a forecast looks up to this many times the measured time ahead, with a warning."""
NOT_WHOLE = ("lost", "damage", "stalled", "totals", "clock-source")
"""Doubts which say that a part of the tail is missing, or that the clock may have missed it."""
OUTSIDE = ("steal", "guest")
"""Doubts which say that something below the kernel takes part."""


def data_refusals(pooled: Summary, doubts: tuple[Doubt, ...]) -> Iterator[ForecastRefusal]:
    """Yield a DATA refusal if a part of the tail is missing, or a doubt makes the run invalid."""
    found = [doubt.what for doubt in doubts if doubt.code in NOT_WHOLE or doubt.severity is Severity.INVALID]
    missed = _missed_in_tail(pooled)
    if missed:
        found.append(
            f"{quantity(missed, 'activation')} in the tail never ran, and what they would have met is not in it"
        )
    if found:
        yield forecast_sentences.data_refusal(found)


def length_refusals(units: TailUnits) -> Iterator[ForecastRefusal]:
    """Yield a FEW refusal if the run is too short.

    This depends on the time alone, so it needs no look at the values.
    """
    have = units.count // TAIL_PART
    if have < FEWEST_TAIL_UNITS or units.measured_ns < SHORTEST_NS:
        lacks = max(FEWEST_TAIL_UNITS * TAIL_PART - units.count, 0) * units.unit_ns
        yield forecast_sentences.few_refusal(
            have, FEWEST_TAIL_UNITS, units.measured_ns, max(round(lacks), SHORTEST_NS - units.measured_ns)
        )


def external_refusals(doubts: tuple[Doubt, ...]) -> Iterator[ForecastRefusal]:
    """Yield an EXTERNAL refusal if the host or the firmware can add delays of any size."""
    found = [doubt.what for doubt in doubts if doubt.code in OUTSIDE]
    if found:
        yield forecast_sentences.external_refusal(found)


def horizon_refusals(horizon: ForecastHorizon, measured_ns: int) -> Iterator[ForecastRefusal]:
    """Yield a FAR refusal if the horizon is too far for the run. The user may extend it to FARTHEST_FACTOR."""
    most = FARTHEST_FACTOR if horizon.far else USUAL_FACTOR
    if horizon.ns is not None and horizon.ns > most * measured_ns:
        yield forecast_sentences.far_refusal(horizon.ns, measured_ns, most, -(-horizon.ns // most))


def evenness_refusals(found: Stationarity) -> Iterator[ForecastRefusal]:
    """Yield a DRIFT refusal if the rate of large latencies changes during the run, or if they come in clusters."""
    if any(p is not None and p < UNEVEN_P for p in (found.dispersion_p, found.trend_p)):
        yield forecast_sentences.drift_refusal(found)


def stationarity_refusals(found: Stationarity) -> Iterator[ForecastRefusal]:
    """Yield a SLOW refusal if something varies so slowly that the run does not show it completely."""
    if found.slow and found.slow.p < UNEVEN_P:
        yield forecast_sentences.slow_refusal(found.slow)


def rhythm_refusals(found: Stationarity) -> Iterator[ForecastRefusal]:
    """Yield a DRIFT refusal if the run is too short to test whether the rate changes.

    A run that is refused for another reason does not need this one.
    """
    if not found.blocks or not found.slow:
        yield forecast_sentences.untold_refusal(found)


def _missed_in_tail(pooled: Summary) -> int:
    """The number of activations that never ran, in seconds of the smallest tail or in seconds without a maximum."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    if not seconds.missed.any():
        return 0
    largest = np.sort(seconds.max[ran])
    level = int(largest[-min(FEWEST_TAIL_UNITS, largest.size)]) if largest.size else 0
    return int(seconds.missed[~ran | (seconds.max >= level)].sum())


PER_OCTAVE = 8
"""Columns for each power of two, in the logarithmic histogram in which peaks are searched."""
MOST_PEAKS = 5
_SURE = 3.0
"""A peak stands above the valleys beside it by at least this many standard deviations."""


def shape_refusals(found: TailLimit, units: TailUnits, at: str) -> tuple[ForecastRefusal, ...]:
    """The refusals COARSE, FIT, TOP, HEAVY and WIDE for which the tail gives a reason. at: when the largest came."""
    told = {"COARSE": _coarse, "FIT": _fit, "TOP": _top, "HEAVY": _heavy, "WIDE": _wide}
    return tuple(tell(found, units, at) for code, tell in told.items() if code in found.codes)


def density_peaks(values_ns: Int64Array) -> tuple[int, ...]:
    """The latencies in ns near which values gather: the medians of the highest columns of a logarithmic histogram.

    The histogram falls between any two of these columns.
    """
    if not values_ns.size or values_ns.max() <= 0:
        return ()
    column = np.floor(np.log2(np.maximum(values_ns, 1)) * PER_OCTAVE).astype(np.int64)
    height = np.bincount(column)
    found: list[int] = []
    for at in np.argsort(-height, kind="stable").tolist():
        if len(found) < MOST_PEAKS and height[at] and all(_parted(height, at, other) for other in found):
            found.append(at)
    return tuple(forecast_sentences.rounded_level(float(np.median(values_ns[column == at]))) for at in sorted(found))


def _parted(height: Int64Array, lower: int, higher: int) -> bool:
    """Whether a column and a higher one have a valley between them that is too deep for chance."""
    between = height[min(lower, higher) + 1 : max(lower, higher)]
    valley = int(between.min()) if between.size else int(height[lower])
    return bool(height[lower] - valley > _SURE * np.sqrt(height[lower] + valley))


def _fitted(found: TailLimit) -> ThresholdFit:
    rung = found.ladder.shown
    assert rung is not None, "a refusal for its shape comes of a tail that was fitted"
    return rung


def _coarse(found: TailLimit, units: TailUnits, at: str) -> ForecastRefusal:
    rung = found.ladder.shown
    if rung and rung.bins >= FEWEST_BINS:
        return forecast_sentences.narrow_refusal(rung.bin_width, rung.fit.sigma)
    if rung:
        return forecast_sentences.alike_refusal(rung.bins, FEWEST_BINS, rung.k, units.count, units.step_ns)
    return _without_threshold(units)


def _without_threshold(units: TailUnits) -> ForecastRefusal:
    """The refusal if no threshold leaves enough values above it and few enough.

    One value is too frequent, or all others lie below it.
    """
    values, n = units.counts.lo, units.counts.n
    above = n[::-1].cumsum()[::-1] - n
    at = int(np.flatnonzero(above < FEWEST_EXCESSES)[0])
    count = int(n[at])
    if not above[at] and count <= MOST_SHARE * units.count:
        return forecast_sentences.alike_refusal(1, FEWEST_BINS, count, units.count, units.step_ns)
    return forecast_sentences.same_refusal(int(values[at]), count, units.count, int(above[at]), FEWEST_EXCESSES)


def _fit(found: TailLimit, units: TailUnits, at: str) -> ForecastRefusal:
    rung = _fitted(found)
    return forecast_sentences.fit_refusal(rung.p, rung.k, density_peaks(units.largest_ns))


def _top(found: TailLimit, units: TailUnits, at: str) -> ForecastRefusal:
    assert found.top is not None, "TOP comes of a test of the largest"
    return forecast_sentences.top_refusal(found.top.number, found.top.p, int(units.largest_ns.max()), at)


def _heavy(found: TailLimit, units: TailUnits, at: str) -> ForecastRefusal:
    rung = _fitted(found)
    upper = float(rung.region.xi[-1])
    return forecast_sentences.heavy_refusal(rung.fit.xi, upper if upper < UNBOUNDED[1] else None)


def _wide(found: TailLimit, units: TailUnits, at: str) -> ForecastRefusal:
    assert found.envelope is not None, "WIDE comes of a limit"
    return forecast_sentences.wide_refusal(found.envelope, int(units.largest_ns.max()), WIDEST)


UNIT = "ns"


def forecast(
    record: Record, pooled: Summary, doubts: tuple[Doubt, ...], horizon: ForecastHorizon | None = None
) -> Forecast | None:
    """The forecast of the latencies of all threads; None if nothing was measured, or the values are no times."""
    units = tail_units(pooled)
    if not units.count or units.measured_ns <= 0 or pooled.series.unit != UNIT:
        return None
    asked = horizon or ForecastHorizon()
    told = (*data_refusals(pooled, doubts), *external_refusals(doubts), *horizon_refusals(asked, units.measured_ns))
    few = tuple(length_refusals(units))
    begun = _begun(units, asked, (*told, *few))
    return begun if few else fitted_forecast(begun, units, largest_at(record, pooled))


def fitted_forecast(begun: Forecast, units: TailUnits, at: str) -> Forecast:
    """The forecast with what the tail and the order of the seconds show.

    A run that is too short may be passed too, to look at its tail.
    """
    even = stationarity(units.second, units.largest_ns)
    tail = tail_limit(units.counts, units.count, begun.horizon_ns / units.unit_ns, units.step_ns)
    told = (
        *begun.refusals,
        *shape_refusals(tail, units, at),
        *evenness_refusals(even),
        *stationarity_refusals(even),
    )
    refused = _in_order(told or tuple(rhythm_refusals(even)))
    limit = None if refused or tail.envelope is None else math.ceil(tail.envelope)
    return replace(
        begun,
        limit_ns=limit,
        step_ns=units.step_ns,
        refusals=refused,
        warnings=_warnings(begun) if limit is not None else (),
        stationarity=even,
        ladder=tail.ladder,
        top=tail.top,
        envelope_ns=tail.envelope,
    )


def open_length_forecast(found: Forecast | None) -> Forecast | None:
    """The forecast of a run whose length was not fixed before the run began. A limit then gets a warning."""
    if found is None or found.limit_ns is None:
        return found
    return replace(found, warnings=(*found.warnings, forecast_sentences.OPEN_LENGTH))


def largest_at(record: Record, pooled: Summary) -> str:
    """When the largest latency came, by the time of day, as the report's list of the largest latencies shows it."""
    if not pooled.top.value.size:
        return "a time that is not known"
    return when(record.begin.origin_realtime_ns, int(pooled.top.due_ns[0]))


def _begun(units: TailUnits, asked: ForecastHorizon, told: tuple[ForecastRefusal, ...]) -> Forecast:
    """The forecast as far as it is known without a look at the values."""
    horizon_ns = asked.ns or USUAL_FACTOR * units.measured_ns
    whole = units.measured_ns, units.count, units.unit_ns
    return Forecast(None, horizon_ns, _in_order(told), *whole, asked=asked.ns is not None)


def _in_order(told: tuple[ForecastRefusal, ...]) -> tuple[ForecastRefusal, ...]:
    return tuple(sorted(told, key=lambda refusal: REFUSAL_CODES.index(refusal.code)))


def _warnings(begun: Forecast) -> tuple[str, ...]:
    times = begun.horizon_ns / begun.measured_ns
    return (forecast_sentences.farther_sentence(times, USUAL_FACTOR),) if times > USUAL_FACTOR else ()


# The next functions compute what a report draws of a tail: return levels, mean excesses, and fitted against expected
# shares.
#
# All three are only for the reader and decide nothing. They show the fit that a forecast rests on. If the forecast is
# refused, they show the fit of the fewest values, so that the reader sees the reason.


POINTS = 80
FEWEST_EXCESSES_SHOWN = 10
"""The last mean excess is the mean of at least this many values."""
_NORMAL = 1.959964
"""97.5 % point of the normal distribution."""
_SIDE = 0.025


@dataclass(frozen=True)
class ReturnLevels:
    """Levels in ns, and the time in ns in which each is exceeded once: as measured, as fitted, and the 95 % limits."""

    measured_period: Floats
    measured: Floats
    period: Floats
    fitted: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class BandedCurve:
    """The points of a curve, and the ends of the 95 % interval at each."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats


def return_levels(forecast: Forecast, rung: ThresholdFit, units: TailUnits) -> ReturnLevels:
    """The return levels up to the horizon, or up to the end of the run if that is later.

    Measured levels begin at the lowest threshold of all fits, fitted levels at the threshold of this fit. The upper
    limit of a forecast comes from all fits that hold. If the forecast is refused, the upper limit comes from this fit.
    """
    at = _places(max(each.k for each in forecast.ladder.rungs) if forecast.ladder else rung.k)
    largest = np.sort(units.largest_ns)[::-1][at - 1].astype(np.float64)
    region, share = rung.region, rung.k / rung.excesses.units
    ends = units.unit_ns / share, float(max(forecast.horizon_ns, units.measured_ns))
    period = np.geomspace(ends[0] * (1 + 1e-9), ends[1], POINTS)
    each = units.unit_ns / period
    used = forecast.ladder.used if forecast.ladder and forecast.limit_ns is not None else (rung,)
    # A fit of few values says nothing about a level that more values exceed.
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


def mean_excess(units: TailUnits, most: int) -> BandedCurve | None:
    """The mean excess of the values above each threshold, in ns, with the interval of that mean.

    The thresholds leave from ``most`` values down to a few. None if no two thresholds differ.
    """
    ordered = np.sort(units.largest_ns)[::-1].astype(np.float64)
    leaving = _places(min(most, ordered.size - 1))
    thresholds = np.unique(ordered[leaving])
    excesses = [ordered[ordered > threshold] - threshold for threshold in thresholds]
    kept = [each for each in excesses if each.size >= FEWEST_EXCESSES_SHOWN]
    if len(kept) < 2:
        return None
    mean = np.array([each.mean() for each in kept])
    half = np.array([_NORMAL * each.std(ddof=1) / np.sqrt(each.size) for each in kept])
    return BandedCurve(thresholds[: len(kept)], mean, np.maximum(mean - half, 0), mean + half)


def probabilities(rung: ThresholdFit) -> BandedCurve:
    """For each fitted value the share of larger ones: x as expected, y by the fit, and where 95 % lie by chance."""
    larger = fitted_survivals(rung.excesses, rung.fit)[::-1]
    at = _places(larger.size)
    ends = [[beta_inverse(p, int(k), larger.size + 1 - int(k)) for k in at] for p in (_SIDE, 1 - _SIDE)]
    return BandedCurve(at / (larger.size + 1), larger[at - 1], *(np.array(end) for end in ends))


def _places(most: int) -> Int64Array:
    """Ranks from 1 to ``most``: all of the first ranks, and fewer and fewer of the others."""
    return np.unique(np.geomspace(1, most, POINTS).round().astype(np.int64)) if most > 0 else np.empty(0, np.int64)
