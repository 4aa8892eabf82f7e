# SPDX-License-Identifier: Apache-2.0
"""What a forecast says, as frozen data, and its units: the largest latency of each second, over all threads.

Latencies are in nanoseconds. Rates are per second of measured time.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
