# SPDX-License-Identifier: Apache-2.0
"""The results of a summary, as frozen data. Values are in the unit of the series: nanoseconds for latencies."""

import math
from dataclasses import dataclass
from enum import Enum, StrEnum

from rtproof.record.contents import Seconds, Series, Top
from rtproof.summary.counts import NO_COUNTS, Counts
from rtproof.summary.dependence import BlockCounts
from rtproof.summary.per_second import NO_SECONDS, NO_TOP


@dataclass(frozen=True)
class Moments:
    """Exact sums in integers, so that merging parts loses nothing. min and max are 0 if count is 0.

    count: n.
    """

    count: int = 0
    min: int = 0
    max: int = 0
    sum: int = 0
    sum_squares: int = 0

    @property
    def smallest(self) -> int | None:
        """The smallest value; None without any."""
        return self.min if self.count else None

    @property
    def largest(self) -> int | None:
        """The largest value; None without any."""
        return self.max if self.count else None

    @property
    def mean(self) -> float | None:
        """The mean; None without any value."""
        return self.sum / self.count if self.count else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation with n - 1; None for fewer than two values, or if the sum of squares is unknown."""
        if self.count <= 1 or self.count * self.sum_squares < self.sum**2:
            return None
        return math.sqrt((self.count * self.sum_squares - self.sum**2) / (self.count * (self.count - 1)))


NO_MOMENTS = Moments()


@dataclass(frozen=True)
class Lag:
    """Sums over neighbouring activations that show catch-up (docs/record-format.md, SUMMARY).

    pairs: neighbouring activations. catch_up_pairs: a cycle above 1.2 periods with one below 0.8 directly behind it.
    """

    pairs: int = 0
    sum_products: int = 0
    catch_up_pairs: int = 0


NO_LAG = Lag()


class Dependence(Enum):
    """What the interval of a quantile rests on, as ``Quantile`` says."""

    ESTIMATED = "estimated"
    UNCLEAR = "unclear"
    ASSUMED_NONE = "assumed none"


@dataclass(frozen=True)
class Quantile:
    """The value that a share p of all activations does not exceed, by nearest rank.

    Attributes:
        p: The share of values that are not larger.
        n: The number of values.
        value: By nearest rank; None if fewer than one of n values is expected above it.
        low: The lower end of the order-statistic interval at ``confidence``; None if it lies below all n values, or if
            ``dependence`` is unclear.
        high: The upper end of the same interval; None if above all n values, or unclear.
        confidence: Of the interval.
        resolution: The width of the bin that the value lies in, 0 if exact.
        effective: How many independent values the n are worth for this quantile; None: not known.
        dependence: What the interval rests on: ``estimated`` (on ``effective``); ``unclear`` (the run does not tell it:
            no interval); ``assumed none`` (the order of the values is not known: all n taken as independent).
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
    """All numbers of one thread, or of all threads together.

    series: what was measured; of all threads together, only its period and unit are valid. threads: the threads in it.
    observed: the activations that ran, one value each. charged: the missed ones, each with its lateness.
    schedule_counts: both together, so one value for each due time.
    expected: the due times in the measured span, which begins at first_due_ns. span_ns: from the first to the last due
    time and a period.
    exact: true: counted from samples, each value by itself; false: from log-linear bins with a half width of at most
    1/1024.
    lost: those of the obtained whose lateness is not known: the agent dropped them, or the file is damaged.
    unbinned: those of the obtained that are in ``top`` and in the largest value of their second only, because the
    record was cut off.
    stalled: due times after the last activation of a thread that did not run again before the end. They are in neither
    ``expected`` nor ``missed``. stalled_ns: how late the first of them was at least.
    blocks: how the values above some levels are spread over the run. None if they were not counted from samples.
    """

    series: Series
    threads: tuple[int, ...] = ()
    expected: int = 0
    missed: int = 0
    lost: int = 0
    span_ns: int = 0
    observed: Moments = NO_MOMENTS
    charged: Moments = NO_MOMENTS
    observed_counts: Counts = NO_COUNTS
    schedule_counts: Counts = NO_COUNTS
    lag: Lag = NO_LAG
    seconds: Seconds = NO_SECONDS
    top: Top = NO_TOP
    exact: bool = False
    first_due_ns: int | None = None
    unbinned: int = 0
    stalled: int = 0
    stalled_ns: int = 0
    blocks: BlockCounts | None = None

    @property
    def obtained(self) -> int:
        """Activations that ran, including those whose value was lost on the way."""
        return self.observed.count + self.unbinned + self.lost

    @property
    def due(self) -> int:
        """The due times of the whole run, including those of a stall that lasted to the end."""
        return self.expected + self.stalled

    @property
    def apart_ns(self) -> float:
        """From one due time to the next. Of events from outside, whose period is only expected, the mean distance."""
        after_first, period_ns = self.observed.count + self.never_ran - 1, self.series.period_ns
        return (self.span_ns - period_ns) / after_first if self.series.external and after_first > 0 else period_ns

    @property
    def next_due_ns(self) -> int:
        """The time to the next due time, which an activation took at least if that came first; 0: it is not known."""
        return min(round(self.apart_ns), self.series.period_ns)

    @property
    def never_ran(self) -> int:
        """The due times for which the thread never ran."""
        return self.missed + self.stalled

    def stalled_above(self, limit_ns: int) -> int:
        """How many of the stalled due times were certainly later than a limit. Valid for one thread only."""
        if self.stalled_ns <= limit_ns:
            return 0
        period_ns = max(self.series.period_ns, 1)
        return min(self.stalled, (self.stalled_ns - limit_ns - 1) // period_ns + 1)


@dataclass(frozen=True)
class Switch:
    """The time from one stage to the next of the same activation, over all threads: later minus earlier.

    It is exact, counted from samples.
    earlier: the field of the stage before. later: the field of the stage behind.
    backwards: activations whose later stage came first by the clock.
    unpaired: values whose activation has none in the other field.
    """

    earlier: str
    later: str
    counts: Counts
    moments: Moments
    backwards: int
    unpaired: int


class Severity(StrEnum):
    """INVALID: the run did not measure what was asked. WARNING: read the numbers with this in mind."""

    INVALID = "invalid"
    WARNING = "warning"


@dataclass(frozen=True)
class Doubt:
    """A reason not to believe the numbers of a run.

    Attributes:
        code: Its name; docs/json-schema.md has a table of them.
        severity: "invalid": the run did not measure what was asked. "warning": read the numbers with this in mind.
        what: The fact with its number, short.
        remedy: What to do about it, as an imperative; empty if nothing can be done.
        detail: The figures and names that ``what`` leaves out; empty if it leaves out none.
        rows: Of results that are compared, the names of those that it is about; empty: of the run itself.
    """

    code: str
    severity: Severity
    what: str
    remedy: str
    detail: str = ""
    rows: tuple[str, ...] = ()

    @property
    def brief(self) -> str:
        """The doubt in one line of a screen: the fact and what to do."""
        return f"{self.what}: {self.remedy}" if self.remedy else self.what

    @property
    def whole(self) -> str:
        """The fact with all its figures."""
        return f"{self.what}; {self.detail}" if self.detail else self.what


@dataclass(frozen=True)
class Stall:
    """A loop that stood still.

    thread: the thread that stood still. since_ns: when it began to. duration_ns: how long it did.
    over: whether it went on before the run ended.
    """

    thread: int
    since_ns: int
    duration_ns: int
    over: bool


@dataclass(frozen=True)
class Cycles:
    """The cycles of all threads after the ignored ones. Lengths are in nanoseconds, None if no cycle was counted.

    Attributes:
        period_ns: The period.
        low_ns: A shorter cycle is short.
        high_ns: A longer cycle is long.
        ignored: Cycles at the start, which are not counted.
        counted: Cycles that count.
        short: Those below the band, shorter than ``low_ns``.
        long: Those above the band, longer than ``high_ns``.
        min_ns: The shortest cycle.
        max_ns: The longest cycle.
        catch_up_pairs: How often a short cycle directly follows a long one.
        correlation: Of neighbours: near -0.5 if each late activation makes the next cycle shorter; None if the cycles
            are too few or all the same.
        stalls: Loops that stood still, in the ignored cycles too.
        loops: The threads that ran a loop.
        deterministic: Whether the run was in virtual time. A count there says nothing about other cycles.
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
