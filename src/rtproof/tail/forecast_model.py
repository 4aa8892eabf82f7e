# SPDX-License-Identifier: Apache-2.0
"""What a forecast says, as frozen data, and its units: the largest latency of each second, over all threads.

Latencies are in nanoseconds, rates are per second of measured time.
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
"""The reasons to refuse, in the order in which they are told."""
FORECAST_CONFIDENCE = 0.95
PERIODS_SEEN = SLOW // 2
"""As often must a rhythm return in a run before the run shows it; a whole period is two half waves."""


@dataclass(frozen=True)
class ForecastRefusal:
    """A reason why there is no forecast: one of ``CODES`` and a sentence with its figures."""

    code: str
    message: str


@dataclass(frozen=True)
class ForecastHorizon:
    """How far to look; None: ten times the measured time. far: up to a hundred times it, with a warning."""

    ns: int | None = None
    far: bool = False


NOWHERE = ForecastHorizon(0)
"""For those who want no forecast, which takes longer than the rest of a long run's analysis."""


@dataclass(frozen=True)
class Forecast:
    """Either a limit or refusals. limit_ns: at 95 %, of the level that is exceeded once in the horizon.

    units: one-second maxima, each of unit_ns of the measured time and read by a clock of step_ns. step_ns,
    stationarity, ladder and top are None where a refusal made them needless. envelope_ns: the limit whatever the
    refusals. warnings: sentences on a forecast that is given.
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

    @property
    def longest_rhythm_ns(self) -> int:
        """The longest period of which the run has three; slower rhythms cannot be told from no rhythm at all."""
        return self.measured_ns // PERIODS_SEEN

    def rate_above(self, level_ns: int) -> float | None:
        """Upper limit, at 95 %, of the rate per second of seconds above a level; not below one in horizon or run.

        None where the forecast is refused, or the level is not above all that was measured: the run itself tells of it.
        """
        if self.limit_ns is None or self.ladder is None or level_ns <= self.ladder.largest:
            return None
        share = self.ladder.probability(level_ns)
        return None if share is None else max(share / self.unit_ns, 1 / max(self.horizon_ns, self.measured_ns)) * 1e9


# The units of a forecast: the largest latency of each second, over all threads.
#
# Bursts shorter than a second are then one value, so that neighbouring values depend on each other far less than
# samples
# do, and rates come per second of themselves.


@dataclass(frozen=True)
class TailUnits:
    """Seconds in which anything ran, and the largest latency of each; measured_ns: the time they stand for."""

    second: Int64Array
    largest_ns: Int64Array
    measured_ns: int

    @property
    def count(self) -> int:
        return int(self.second.size)

    @property
    def unit_ns(self) -> float:
        """The time that one of them stands for: a second, or more where activations are further apart."""
        return self.measured_ns / max(self.count, 1)

    @cached_property
    def step_ns(self) -> int:
        """Of the clock, as the values show it: the least distance between two of them.

        Values on a grid are never nearer to each other. Those of a fine clock are, unless they are few and far apart,
        and then so small a step changes nothing.
        """
        distinct = np.unique(self.largest_ns)
        return int(np.diff(distinct).min()) if distinct.size > 1 else 1

    @cached_property
    def counts(self) -> Counts:
        """How often each value occurred."""
        return counts_of_values(self.largest_ns)

    def probability(self, horizon_ns: int) -> float:
        """That one unit exceeds a level which is exceeded once in the horizon."""
        return self.unit_ns / horizon_ns


def tail_units(pooled: Summary) -> TailUnits:
    """The one-second maxima of a run."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    return TailUnits(seconds.second[ran], seconds.max[ran], pooled.span_ns)
