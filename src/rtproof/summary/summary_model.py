# SPDX-License-Identifier: Apache-2.0
"""Results of a summary, as frozen data. Values are in the unit of the series: nanoseconds for latencies."""

import math
from dataclasses import dataclass
from enum import Enum

from rtproof.record.contents import Seconds, Series, Top
from rtproof.summary.counts import Counts
from rtproof.summary.dependence import BlockCounts


@dataclass(frozen=True)
class Moments:
    """Exact sums in integers, so that merging parts loses nothing. min and max are 0 when count is 0."""

    count: int = 0
    min: int = 0
    max: int = 0
    sum: int = 0
    sum_squares: int = 0

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation with n - 1, from exact integers; None below two values."""
        if self.count <= 1:
            return None
        return math.sqrt((self.count * self.sum_squares - self.sum**2) / (self.count * (self.count - 1)))


NO_MOMENTS = Moments()


@dataclass(frozen=True)
class Lag:
    """Sums over neighbouring activations that show catch-up (docs/record-format.md, SUMMARY)."""

    pairs: int = 0
    sum_products: int = 0
    catch_up_pairs: int = 0


NO_LAG = Lag()


class Dependence(Enum):
    """ESTIMATED: the interval is that of ``effective`` values. UNCLEAR: the run does not tell how many; no interval.

    ASSUMED_NONE: the order of the values is not known; the interval takes all of them as independent.
    """

    ESTIMATED = "estimated"
    UNCLEAR = "unclear"
    ASSUMED_NONE = "assumed none"


@dataclass(frozen=True)
class Quantile:
    """The value that a share p of all activations does not exceed, by nearest rank.

    ``value``, ``low``, ``high`` are None where n does not carry them ("unknown"). [low, high] is the order-statistic
    interval at ``confidence``; resolution is the width of the bin that value lies in (0: exact). effective: how many
    independent values the n are worth for this quantile. dependence: what the interval rests on.
    """

    p: float
    n: int
    value: int | None
    low: int | None
    high: int | None
    confidence: float
    resolution: int
    effective: int | None = None
    dependence: Dependence = Dependence.ASSUMED_NONE


@dataclass(frozen=True)
class Summary:
    """All of one thread, or of all threads together (``series`` is then empty of meaning but for period and unit).

    observed: one value per activation that ran. schedule: those and the missed ones, charged with their lateness.
    expected: due times in the span measured, which begins at first_due_ns. exact: counted from samples, not from the
    record's histogram. unbinned: activations that ran of which only ``seconds`` and ``top`` tell, because the record
    was cut off before the histogram that would hold them. stalled: due times behind the last activation, for which a
    thread never ran until the end; in neither ``expected`` nor ``missed``. stalled_ns: how late the first was at least.
    blocks: how values above some levels are spread over the run; None if they were not counted from samples.
    """

    series: Series
    threads: tuple[int, ...]
    expected: int
    missed: int
    lost: int
    span_ns: int
    observed: Moments
    charged: Moments
    observed_counts: Counts
    schedule_counts: Counts
    lag: Lag
    seconds: Seconds
    top: Top
    exact: bool
    first_due_ns: int | None = None
    unbinned: int = 0
    stalled: int = 0
    stalled_ns: int = 0
    blocks: BlockCounts | None = None

    @property
    def obtained(self) -> int:
        """Activations that ran, also those whose value was lost on the way."""
        return self.observed.count + self.unbinned + self.lost

    @property
    def due(self) -> int:
        """Due times of the whole run, also those of a stall that lasted to the end."""
        return self.expected + self.stalled

    @property
    def never_ran(self) -> int:
        """Due times for which the thread never ran."""
        return self.missed + self.stalled

    def stalled_above(self, limit_ns: int) -> int:
        """How many of the stalled due times were surely later than a limit; of one thread only."""
        if self.stalled_ns <= limit_ns:
            return 0
        period_ns = max(self.series.period_ns, 1)
        return min(self.stalled, (self.stalled_ns - limit_ns - 1) // period_ns + 1)


@dataclass(frozen=True)
class Switch:
    """The time from one stage to the next of the same activation, over all threads: later minus earlier.

    backwards: activations whose later stage came first by the clock. unpaired: values whose activation has none in the
    other field. Exact, counted from samples.
    """

    earlier: str
    later: str
    counts: Counts
    moments: Moments
    backwards: int
    unpaired: int


class Severity(Enum):
    """INVALID: the run did not measure what was asked. WARNING: read the numbers with this in mind."""

    INVALID = "invalid"
    WARNING = "warning"


@dataclass(frozen=True)
class Doubt:
    """One reason not to believe a number: what is wrong, in a sentence with its figures, and what to do about it."""

    code: str
    severity: Severity
    what: str
    remedy: str


@dataclass(frozen=True)
class Stall:
    """A loop that stood still. ``over``: it went on before the run ended."""

    thread: int
    since_ns: int
    duration_ns: int
    over: bool


@dataclass(frozen=True)
class Cycles:
    """Cycles of all threads after the ignored ones; lengths in nanoseconds, unknown (None) where none was counted.

    short, long: below low_ns, above high_ns. catch_up_pairs: a long one directly followed by
    a short one. correlation: of neighbouring cycles, towards -0.5 where each late run makes the next cycle shorter;
    None if they are too few or all the same. stalls: also those among the ignored cycles. loops: threads that ran one.
    deterministic: of virtual time, in which a count says nothing of other cycles.
    """

    period_ns: int
    low_ns: int
    high_ns: int
    ignored: int
    counted: int
    short: int
    long: int
    min_ns: int | None
    max_ns: int | None
    catch_up_pairs: int
    correlation: float | None
    stalls: tuple[Stall, ...]
    loops: int = 1
    deterministic: bool = False

    @property
    def out_of_band(self) -> int:
        return self.short + self.long
