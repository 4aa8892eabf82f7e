# SPDX-License-Identifier: Apache-2.0
"""The forecast of a run: a limit in a longer time, or every reason against one, and its sentences.

Its units are the largest latency of each second, over all threads. Latencies are in nanoseconds. Rates are per second
of measured time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rtproof.core.phrases import duration, percent, quantity, value, when
from rtproof.record.contents import Int64Array, Record
from rtproof.summary.counts import counts_of_values
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.summary_model import Doubt, Severity, Summary
from rtproof.tail.pareto_fit import UNBOUNDED
from rtproof.tail.stationarity import (
    FEWEST_BLOCKS,
    FEWEST_MINUTE_BLOCKS,
    MINUTE_SLOTS,
    SLOTS,
    SLOW,
    Stationarity,
    stationarity,
)
from rtproof.tail.thresholds import WIDEST, TailLimit, ThresholdLadder, TopTest, tail_limit

REFUSAL_CODES = ("DATA", "FEW", "COARSE", "FIT", "TOP", "HEAVY", "WIDE", "DRIFT", "SLOW", "FAR", "EXTERNAL")
"""The codes of the reasons to refuse a forecast, in the order in which they are told."""
FORECAST_CONFIDENCE = 0.95
PERIODS_SEEN = SLOW // 2
"""A run that shows its slowest rhythm less often has no forecast. A whole period is two half waves."""


@dataclass(frozen=True)
class ForecastRefusal:
    """A reason why there is no forecast. code: one of REFUSAL_CODES. message: the reason in a sentence."""

    code: str
    message: str


NOWHERE = 0
"""The horizon in ns of a caller that wants no forecast, which takes longer than the rest of a long run's analysis."""


@dataclass(frozen=True)
class Forecast:
    """A forecast: either a limit or the refusals.

    limit_ns: the upper limit, at 95 %, of the level that is exceeded once in ``horizon_ns``; None: refused. horizon_ns:
    how far it looks.
    refusals: why there is no forecast. warnings: sentences on a forecast that is given.
    measured_ns: the time measured. units: the seconds in which anything ran. unit_ns: the measured time that each of
    them stands for.
    step_ns: the step of the clock, as the values show it; None if the run is too short.
    stationarity: whether the rate changes; None if the run is too short.
    ladder: the fits of the tail; None: refused before. top: whether the largest values belong to the rest; None without
    a fit.
    envelope_ns: the limit, whether or not the forecast is refused. asked: the user gave the horizon.
    """

    limit_ns: int | None
    horizon_ns: int
    refusals: tuple[ForecastRefusal, ...]
    measured_ns: int
    units: int
    unit_ns: float
    step_ns: int | None = None
    warnings: tuple[str, ...] = ()
    stationarity: Stationarity | None = None
    ladder: ThresholdLadder | None = None
    top: TopTest | None = None
    envelope_ns: float | None = None
    asked: bool = False

    @property
    def worth_telling(self) -> bool:
        """Whether people are told. A refusal is told only to a user who asked."""
        return self.limit_ns is not None or self.asked

    @property
    def longest_rhythm_ns(self) -> int:
        """The longest period that fits ten times into the run. A run that shows a slower one has no forecast."""
        return self.measured_ns // PERIODS_SEEN

    def rate_above(self, level_ns: int) -> float | None:
        """The upper limit, at 95 %, of the rate per second of seconds whose largest latency is above a level.

        The rate is at least once per horizon or once per run, whichever is longer. None if the forecast is refused.
        None also if the level is not above all that was measured: then the run itself shows the rate.
        """
        if self.limit_ns is None or self.ladder is None or level_ns <= self.ladder.largest:
            return None
        share = self.ladder.probability(level_ns)
        return None if share is None else max(share / self.unit_ns, 1 / max(self.horizon_ns, self.measured_ns)) * 1e9


@dataclass(frozen=True)
class TailUnits:
    """The seconds in which anything ran, and the largest latency of each. measured_ns: the time that they stand for.

    A burst shorter than a second is one such value. So neighbouring values depend on each other far less than samples
    do, and rates are per second without conversion.
    """

    second: Int64Array
    largest_ns: Int64Array
    measured_ns: int

    @property
    def count(self) -> int:
        return int(self.second.size)

    @property
    def unit_ns(self) -> float:
        """The time that one unit stands for: a second, or more if activations are further apart."""
        return self.measured_ns / max(self.count, 1)

    @cached_property
    def step_ns(self) -> int:
        """The step of the clock, as the values show it: the least distance between two of them."""
        distinct = np.unique(self.largest_ns)
        return int(np.diff(distinct).min()) if distinct.size > 1 else 1


def tail_units(pooled: Summary) -> TailUnits:
    """The one-second maxima of a run, over all threads."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    return TailUnits(seconds.second[ran], seconds.max[ran], pooled.span_ns)


FEWEST_TAIL_UNITS = 200
"""The number of units in the smallest tail that is fitted."""
TAIL_PART = 10
"""A tail is at most this part (one tenth) of all units. Lower values are no tail."""
SHORTEST_NS = FEWEST_TAIL_UNITS * TAIL_PART * SECOND_NS
UNEVEN_P = 0.01
USUAL_FACTOR = 10
"""Without a request, a forecast looks this many times the measured time ahead."""
FARTHEST_FACTOR = 100
"""A user may ask for up to this many times the measured time. Beyond ``USUAL_FACTOR`` there is a warning."""
NOT_WHOLE = ("lost", "damage", "stalled", "totals", "clock-source")
"""Doubts which say that a part of the tail is missing, or that the clock may have missed it."""
OUTSIDE = ("steal", "guest")
"""Doubts which say that something below the kernel takes part."""


def forecast(
    record: Record, pooled: Summary, doubts: tuple[Doubt, ...], horizon_ns: int | None = None
) -> Forecast | None:
    """The forecast of the latencies of all threads; None if nothing was measured, or the values are no times.

    horizon_ns: how far to look ahead; None for ten times the measured time.
    """
    units = tail_units(pooled)
    if not units.count or units.measured_ns <= 0 or pooled.series.unit != "ns":
        return None
    # These depend on the time alone, so they need no look at the values.
    few = tuple(_length_refusals(units))
    begun = Forecast(
        limit_ns=None,
        horizon_ns=horizon_ns or USUAL_FACTOR * units.measured_ns,
        refusals=_in_order(
            *data_refusals(pooled, doubts),
            *_external_refusals(doubts),
            *_horizon_refusals(horizon_ns, units.measured_ns),
            *few,
        ),
        measured_ns=units.measured_ns,
        units=units.count,
        unit_ns=units.unit_ns,
        asked=horizon_ns is not None,
    )
    if few:
        return begun
    # The report's list of the largest latencies shows the same time.
    due_ns = pooled.top.due_ns
    at = when(record.begin.origin_realtime_ns, int(due_ns[0])) if due_ns.size else "a time that is not known"
    return fitted_forecast(begun, units, at)


def fitted_forecast(begun: Forecast, units: TailUnits, at: str) -> Forecast:
    """The forecast with what the tail and the order of the seconds show. at: when the largest latency came."""
    even = stationarity(units.second, units.largest_ns)
    tail = tail_limit(counts_of_values(units.largest_ns), units.count, begun.horizon_ns / units.unit_ns, units.step_ns)
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


def _horizon_refusals(horizon_ns: int | None, measured_ns: int) -> Iterator[ForecastRefusal]:
    if horizon_ns is not None and horizon_ns > FARTHEST_FACTOR * measured_ns:
        yield ForecastRefusal(
            "FAR",
            f"{duration(horizon_ns)} are {math.ceil(10 * horizon_ns / measured_ns) / 10:,.1f} times the measured time "
            f"of {duration(measured_ns)}, and at most {FARTHEST_FACTOR} times are allowed; measure "
            f"{duration(-(-horizon_ns // FARTHEST_FACTOR), up=True)}",
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
    if found.dispersion_p is not None and found.dispersion_p < UNEVEN_P:
        yield ForecastRefusal(
            "DRIFT",
            "the rate of large latencies changes during the run, or they come in clusters: above "
            f"{value(found.level_ns or 0)} there are {found.lowest:,} to {found.highest:,} events in "
            f"{duration(found.block_ns)} (slots of {found.slot_s} s; dispersion p "
            f"{probability_sentence(found.dispersion_p)})",
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


DIGITS = 3
_HOUR_NS = 3_600_000_000_000
_RHYTHMS = ((24 * _HOUR_NS, "that of a day"), (7 * 24 * _HOUR_NS, "that of a week"))
OPEN_LENGTH = f"the {percent(FORECAST_CONFIDENCE)} hold for a run of a fixed length, and this run's was not fixed"


def forecast_lines(found: Forecast | None) -> tuple[str, ...]:
    """What a verdict says about a forecast, line by line: the limit and its basis, or every reason against one."""
    if found is None:
        return ()
    if found.limit_ns is not None:
        given = given_sentence(found, found.limit_ns)
        return given, *basis_sentence(found), unseen_rhythms_sentence(found), *found.warnings
    if not found.refusals:
        return ("refused (FIT): no fit of the tail holds",)
    first, *others = found.refusals
    return (f"refused ({first.code}): {first.message}", *(f"also {each.code}: {each.message}" for each in others))


def given_sentence(found: Forecast, limit_ns: int) -> str:
    """The sentence with the limit, which says too that the limit is no proof."""
    horizon = duration(found.horizon_ns).replace(" ", "-")
    # Rounded up to three digits, because an upper limit has no more.
    unit: int = 10 ** max(len(str(abs(limit_ns))) - DIGITS, 0)
    return (
        f"once-per-{horizon} level <= {value(-(-limit_ns // unit) * unit)} ({percent(FORECAST_CONFIDENCE)}); "
        "a model, no proof: it assumes that no new mechanism appears"
    )


def basis_sentence(found: Forecast) -> tuple[str, ...]:
    """The sentence on the fits behind the limit; empty without such fits."""
    if found.ladder is None or not found.ladder.used:
        return ()
    best = found.ladder.used[-1]
    return (
        f"tail fit holds up to the highest {best.k:,} of {found.units:,} one-second maxima "
        f"(Anderson-Darling p {probability_sentence(best.p)}, shape {best.fit.xi:.2f})",
    )


def unseen_rhythms_sentence(found: Forecast) -> str:
    """The sentence on the condition of every forecast. No test of the run itself can replace this condition."""
    example = next((f", such as {name}," for ns, name in _RHYTHMS if ns > found.measured_ns), "")
    return (
        f"it holds only if the {duration(found.horizon_ns)} are like the {duration(found.measured_ns)} measured; a "
        f"rhythm longer than the run{example} cannot be seen in it"
    )


def level_above(level_ns: int, rate_per_s: float) -> str:
    """The sentence on the forecast rate above a level that nothing exceeded."""
    seldom = duration(1e9 / rate_per_s)
    return f"> {value(level_ns)}: less often than once per {seldom} ({percent(FORECAST_CONFIDENCE)}, model-based)"


def probability_sentence(p: float) -> str:
    """A p-value in words: "= 0.034" or "< 0.0001"."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"
