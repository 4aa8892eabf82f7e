# SPDX-License-Identifier: Apache-2.0
"""A forecast as frozen data and in sentences, and its units: the largest latency of each second, over all threads.

Latencies are in nanoseconds. Rates are per second of measured time.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rtproof.core.phrases import duration, percent, value
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.summary_model import Summary
from rtproof.tail.stationarity import SLOW, Stationarity
from rtproof.tail.thresholds import ThresholdLadder, TopTest

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


@dataclass(frozen=True)
class ForecastHorizon:
    """How far to look ahead. ns: None for ten times the measured time.

    far: allow up to a hundred times the measured time, with a warning.
    """

    ns: int | None = None
    far: bool = False


NOWHERE = ForecastHorizon(0)
"""The horizon of a caller that wants no forecast, which takes longer than the rest of a long run's analysis."""


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

    @cached_property
    def counts(self) -> Counts:
        """How often each value occurred."""
        return counts_of_values(self.largest_ns)


def tail_units(pooled: Summary) -> TailUnits:
    """The one-second maxima of a run, over all threads."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    return TailUnits(seconds.second[ran], seconds.max[ran], pooled.span_ns)


# What a verdict says about a forecast, in sentences with their figures.


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
    return (
        f"once-per-{horizon} level <= {value(level_rounded_up(limit_ns))} ({percent(FORECAST_CONFIDENCE)}); "
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


def probability_sentence(p: float | None) -> str:
    """A p-value in words: "= 0.034" or "< 0.0001"; "unknown" without one."""
    if p is None:
        return "unknown"
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def level_rounded_up(value_ns: int) -> int:
    """The value rounded up to three digits, because an upper limit has no more."""
    unit: int = 10 ** max(len(str(abs(value_ns))) - DIGITS, 0)
    return -(-value_ns // unit) * unit
