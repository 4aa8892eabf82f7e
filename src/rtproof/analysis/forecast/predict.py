# SPDX-License-Identifier: Apache-2.0
"""From a run to its forecast, or to every reason against one.

Whether a run is long enough is asked first: most are not, and nothing of the rest is then computed.
"""

import math
from dataclasses import replace

from rtproof.analysis.forecast import gates, shape, wording
from rtproof.analysis.forecast.model import CODES, Forecast, Horizon, Refusal
from rtproof.analysis.forecast.stationarity import stationarity
from rtproof.analysis.forecast.units import Units, units_of
from rtproof.analysis.model import Doubt, Summary
from rtproof.analysis.phrases import instant
from rtproof.analysis.tail.limits import TOP_P, TailLimit, limit_of
from rtproof.analysis.tail.top import top_test
from rtproof.record import Record

UNIT = "ns"


def forecast(
    record: Record, pooled: Summary, doubts: tuple[Doubt, ...], horizon: Horizon | None = None
) -> Forecast | None:
    """Of the latencies of all threads; None where nothing was measured, or no times."""
    units = units_of(pooled)
    if not units.count or units.measured_ns <= 0 or pooled.series.unit != UNIT:
        return None
    asked = horizon or Horizon()
    told = (*gates.recorded(pooled, doubts), *gates.outside(doubts), *gates.near(asked, units.measured_ns))
    few = tuple(gates.enough(units))
    begun = _begun(units, asked, (*told, *few))
    return begun if few else fitted(begun, units, largest_of(record, pooled))


def fitted(begun: Forecast, units: Units, largest: shape.Largest) -> Forecast:
    """The same with what the tail and the order of the seconds say; also of a run that is too short, for a look."""
    even = stationarity(units.second, units.largest_ns)
    tail = with_top(limit_of(units.counts, units.count, begun.horizon_ns / units.unit_ns, units.step_ns))
    told = (*begun.refusals, *shape.refusals(tail, units, largest), *gates.even(even), *gates.steady(even))
    refused = _in_order(told or tuple(gates.told(even)))
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


def of_open_length(found: Forecast | None) -> Forecast | None:
    """The same of a run that did not end where it was asked to before it began: a limit then has a warning."""
    if found is None or found.limit_ns is None:
        return found
    return replace(found, warnings=(*found.warnings, wording.OPEN_LENGTH))


def largest_of(record: Record, pooled: Summary) -> shape.Largest:
    """With the time of day, as the largest latencies of the report have it."""
    top = pooled.top
    if not top.value.size:
        return shape.Largest(pooled.observed.max, "a time that is not known")
    return shape.Largest(int(top.value[0]), f"{instant(record.begin.origin_realtime_ns, int(top.due_ns[0]))} UTC")


def with_top(tail: TailLimit) -> TailLimit:
    """Where no fit holds, a few values may be why: the others are then fitted without them."""
    rung = shape.judged(tail)
    if tail.top is not None or rung is None or rung.coarse:
        return tail
    top = top_test(rung.excesses)
    return replace(tail, top=top, codes=(*tail.codes, "TOP") if top.p < TOP_P else tail.codes)


def _begun(units: Units, asked: Horizon, told: tuple[Refusal, ...]) -> Forecast:
    """What is known without a look at the values."""
    horizon_ns = asked.ns or gates.CAP * units.measured_ns
    return Forecast(None, horizon_ns, _in_order(told), units.measured_ns, units.count, units.unit_ns)


def _in_order(told: tuple[Refusal, ...]) -> tuple[Refusal, ...]:
    return tuple(sorted(told, key=lambda refusal: CODES.index(refusal.code)))


def _warnings(begun: Forecast) -> tuple[str, ...]:
    times = begun.horizon_ns / begun.measured_ns
    return (wording.farther(times, gates.CAP),) if times > gates.CAP else ()
