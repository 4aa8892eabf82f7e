# SPDX-License-Identifier: Apache-2.0
"""What a forecast says, as frozen data. Latencies in nanoseconds, rates per second of measured time."""

from dataclasses import dataclass

from rtproof.analysis.forecast.slow_change import SLOW
from rtproof.analysis.forecast.stationarity import Stationarity
from rtproof.analysis.tail.ladder import Ladder
from rtproof.analysis.tail.top import Top

CODES = ("DATA", "FEW", "COARSE", "FIT", "TOP", "HEAVY", "WIDE", "DRIFT", "SLOW", "FAR", "EXTERNAL")
"""The reasons to refuse, in the order in which they are told."""
CONFIDENCE = 0.95
PERIODS_SEEN = SLOW // 2
"""As often must a rhythm return in a run before the run shows it; a whole period is two half waves."""


@dataclass(frozen=True)
class Refusal:
    """A reason why there is no forecast: one of ``CODES`` and a sentence with its figures."""

    code: str
    message: str


@dataclass(frozen=True)
class Horizon:
    """How far to look; None: ten times the measured time. far: up to a hundred times it, with a warning."""

    ns: int | None = None
    far: bool = False


NOWHERE = Horizon(0)
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
    refusals: tuple[Refusal, ...]
    measured_ns: int
    units: int
    unit_ns: float
    step_ns: int | None = None
    warnings: tuple[str, ...] = ()
    stationarity: Stationarity | None = None
    ladder: Ladder | None = None
    top: Top | None = None
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
