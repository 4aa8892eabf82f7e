# SPDX-License-Identifier: Apache-2.0
"""From a run to its forecast, or to every reason against one, and the levels that a report draws of a tail."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtproof.core.phrases import duration, percent, quantity, value, when
from rtproof.record.contents import Record
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Severity, Summary
from rtproof.tail.forecast_model import (
    FORECAST_CONFIDENCE,
    OPEN_LENGTH,
    REFUSAL_CODES,
    Forecast,
    ForecastHorizon,
    ForecastRefusal,
    TailUnits,
    probability_sentence,
    tail_units,
)
from rtproof.tail.pareto_fit import UNBOUNDED, Floats
from rtproof.tail.stationarity import (
    FEWEST_BLOCKS,
    FEWEST_MINUTE_BLOCKS,
    MINUTE_SLOTS,
    SLOTS,
    Stationarity,
    stationarity,
)
from rtproof.tail.thresholds import WIDEST, TailLimit, ThresholdFit, tail_limit

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


def forecast(
    record: Record, pooled: Summary, doubts: tuple[Doubt, ...], horizon: ForecastHorizon | None = None
) -> Forecast | None:
    """The forecast of the latencies of all threads; None if nothing was measured, or the values are no times."""
    units, asked = tail_units(pooled), horizon or ForecastHorizon()
    if not units.count or units.measured_ns <= 0 or pooled.series.unit != "ns":
        return None
    # These depend on the time alone, so they need no look at the values.
    few = tuple(_length_refusals(units))
    begun = Forecast(
        limit_ns=None,
        horizon_ns=asked.ns or USUAL_FACTOR * units.measured_ns,
        refusals=_in_order(
            *data_refusals(pooled, doubts),
            *_external_refusals(doubts),
            *_horizon_refusals(asked, units.measured_ns),
            *few,
        ),
        measured_ns=units.measured_ns,
        units=units.count,
        unit_ns=units.unit_ns,
        asked=asked.ns is not None,
    )
    if few:
        return begun
    # The report's list of the largest latencies shows the same time.
    due_ns = pooled.top.due_ns
    at = when(record.begin.origin_realtime_ns, int(due_ns[0])) if due_ns.size else "a time that is not known"
    return fitted_forecast(begun, units, at)


def fitted_forecast(begun: Forecast, units: TailUnits, at: str) -> Forecast:
    """The forecast with what the tail and the order of the seconds show. at: when the largest latency came.

    A run that is too short may be passed too, to look at its tail.
    """
    even = stationarity(units.second, units.largest_ns)
    tail = tail_limit(units.counts, units.count, begun.horizon_ns / units.unit_ns, units.step_ns)
    refused = _in_order(*begun.refusals, *_shape_refusals(tail, units, at), *_change_refusals(even))
    if not refused and not (even.blocks and even.slow):
        refused = (_untested(even),)
    limit = None if refused or tail.envelope is None else math.ceil(tail.envelope)
    times = begun.horizon_ns / begun.measured_ns
    warnings: tuple[str, ...] = ()
    if limit is not None and times > USUAL_FACTOR:
        warnings = (
            f"less certain: this looks {times:,.0f} times as far as the run is long, and the method was checked for up "
            f"to {USUAL_FACTOR} times",
        )
    return replace(
        begun,
        limit_ns=limit,
        step_ns=units.step_ns,
        refusals=refused,
        warnings=warnings,
        stationarity=even,
        ladder=tail.ladder,
        top=tail.top,
        envelope_ns=tail.envelope,
    )


def open_length_forecast(found: Forecast | None) -> Forecast | None:
    """The forecast of a run whose length was not fixed before the run began. A limit then gets a warning."""
    if found is None or found.limit_ns is None:
        return found
    return replace(found, warnings=(*found.warnings, OPEN_LENGTH))


def _in_order(*told: ForecastRefusal) -> tuple[ForecastRefusal, ...]:
    return tuple(sorted(told, key=lambda refusal: REFUSAL_CODES.index(refusal.code)))


def data_refusals(pooled: Summary, doubts: tuple[Doubt, ...]) -> Iterator[ForecastRefusal]:
    """Yield a DATA refusal if a part of the tail is missing, or a doubt makes the run invalid."""
    found = [doubt.what for doubt in doubts if doubt.code in NOT_WHOLE or doubt.severity is Severity.INVALID]
    # Activations that never ran, in seconds of the smallest tail or in seconds without a maximum.
    seconds, ran = pooled.seconds, pooled.seconds.obtained > 0
    largest = np.sort(seconds.max[ran])
    level = int(largest[-min(FEWEST_TAIL_UNITS, largest.size)]) if largest.size else 0
    missed = int(seconds.missed[~ran | (seconds.max >= level)].sum())
    if missed:
        found.append(
            f"{quantity(missed, 'activation')} in the tail never ran, and what they would have met is not in it"
        )
    if found:
        yield ForecastRefusal("DATA", f"the largest latencies were not recorded completely: {'; '.join(found)}")


def _length_refusals(units: TailUnits) -> Iterator[ForecastRefusal]:
    """Only the highest tenth of the seconds counts, because it is the tail."""
    have = units.count // TAIL_PART
    if have < FEWEST_TAIL_UNITS or units.measured_ns < SHORTEST_NS:
        lacks_ns = round(max(FEWEST_TAIL_UNITS * TAIL_PART - units.count, 0) * units.unit_ns)
        missing_ns = max(lacks_ns, SHORTEST_NS - units.measured_ns)
        yield ForecastRefusal(
            "FEW",
            f"{quantity(have, 'tail event')} in {duration(units.measured_ns)}, and a forecast needs "
            f"{FEWEST_TAIL_UNITS}; measure about {duration(missing_ns, up=True)} more",
        )


def _external_refusals(doubts: tuple[Doubt, ...]) -> Iterator[ForecastRefusal]:
    """No run shows the distribution of the delays of a host or of the firmware."""
    found = [doubt.what for doubt in doubts if doubt.code in OUTSIDE]
    if found:
        yield ForecastRefusal("EXTERNAL", f"the host or the firmware can add delays of any size: {'; '.join(found)}")


def _horizon_refusals(asked: ForecastHorizon, measured_ns: int) -> Iterator[ForecastRefusal]:
    most = FARTHEST_FACTOR if asked.far else USUAL_FACTOR
    if asked.ns is not None and asked.ns > most * measured_ns:
        yield ForecastRefusal(
            "FAR",
            f"{duration(asked.ns)} are {math.ceil(10 * asked.ns / measured_ns) / 10:,.1f} times the measured time of "
            f"{duration(measured_ns)}, and at most {most} times are allowed; measure "
            f"{duration(-(-asked.ns // most), up=True)}",
        )


def _shape_refusals(found: TailLimit, units: TailUnits, at: str) -> Iterator[ForecastRefusal]:
    """The refusals for which the tail gives a reason. at: when the largest value came."""
    rung, largest_ns = found.ladder.shown, int(units.largest_ns.max())
    if "COARSE" in found.codes:
        which = f"the highest {rung.k:,} of {units.count:,}" if rung else f"the {units.count:,}"
        few = f"only {quantity(rung.bins, 'different value')}" if rung else "too few different values"
        yield ForecastRefusal(
            "COARSE",
            f"{which} one-second maxima have {few} that lie {value(units.step_ns)} or more apart; this is too coarse "
            "for a tail",
        )
    if "FIT" in found.codes and rung:
        yield ForecastRefusal(
            "FIT",
            "several mechanisms seem to cause the largest latencies (Anderson-Darling p "
            f"{probability_sentence(rung.p)} for the highest {rung.k:,}; more than 0.1 is needed)",
        )
    if "TOP" in found.codes and found.top:
        yield ForecastRefusal(
            "TOP",
            f"the {found.top.number} largest have another cause than the rest (p {probability_sentence(found.top.p)}); "
            f"look first at the largest, {value(largest_ns)} at {at}",
        )
    if "HEAVY" in found.codes and rung:
        upper = float(rung.region.xi[-1])
        most = f"at most {upper:.2f}" if upper < UNBOUNDED[1] else "no upper limit"
        yield ForecastRefusal(
            "HEAVY",
            f"large latencies thin out too slowly for a useful limit (shape {rung.fit.xi:.2f}, {most} at "
            f"{percent(FORECAST_CONFIDENCE)}; at most 0.5 and 0.7 are allowed)",
        )
    if "WIDE" in found.codes:
        yield ForecastRefusal(
            "WIDE",
            f"the limit would be more than {WIDEST:g} times the largest latency measured, {value(largest_ns)}, which "
            "is of no use",
        )


def _change_refusals(found: Stationarity) -> Iterator[ForecastRefusal]:
    """The rate of large latencies changes, or something varies so slowly that the run does not show it completely."""
    if any(p is not None and p < UNEVEN_P for p in (found.dispersion_p, found.trend_p)):
        yield ForecastRefusal(
            "DRIFT",
            "the rate of large latencies changes during the run, or they come in clusters: above "
            f"{value(found.level_ns or 0)} there are {found.lowest:,} to {found.highest:,} events in "
            f"{duration(found.block_ns)} (slots of {found.slot_s} s; dispersion p "
            f"{probability_sentence(found.dispersion_p)}, trend p {probability_sentence(found.trend_p)})",
        )
    slow = found.slow
    if slow and slow.p < UNEVEN_P:
        which = "half" if slow.share == 0.5 else percent(slow.share)
        yield ForecastRefusal(
            "SLOW",
            f"the latencies change slowly over the whole run: {which} of the one-second maxima lie above "
            f"{value(slow.lowest_ns)} in one quarter of the run and above {value(slow.highest_ns)} in another "
            f"(p {probability_sentence(slow.p)})",
        )


def _untested(found: Stationarity) -> ForecastRefusal:
    """The refusal if the run is too short for the tests of changes. Any other reason makes it needless."""
    if found.blocks:
        lacks = f"{FEWEST_MINUTE_BLOCKS} stretches of {duration(found.block_ns * MINUTE_SLOTS // SLOTS)} with values"
    else:
        lacks = f"{FEWEST_BLOCKS} stretches of {duration(found.block_ns)} with values in at least half of each"
    return ForecastRefusal(
        "DRIFT", f"the run is too short to see whether the rate of large latencies changes: fewer than {lacks}"
    )


POINTS = 80


@dataclass(frozen=True)
class ReturnLevels:
    """Levels in ns, and the time in ns in which each is exceeded once: as measured, as fitted, and the 95 % limits."""

    measured_period: Floats
    measured: Floats
    period: Floats
    fitted: Floats
    low: Floats
    high: Floats


def return_levels(forecast: Forecast, rung: ThresholdFit, units: TailUnits) -> ReturnLevels:
    """The return levels up to the horizon, or up to the end of the run if that is later. They decide nothing.

    Measured levels begin at the lowest threshold of all fits, fitted levels at the threshold of this fit. The upper
    limit of a forecast comes from all fits that hold. If the forecast is refused, the upper limit comes from this fit.
    """
    most = max(each.k for each in forecast.ladder.rungs) if forecast.ladder else rung.k
    at = np.unique(np.geomspace(1, most, POINTS).round().astype(np.int64))
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
