# SPDX-License-Identifier: Apache-2.0
"""What analysis says, as frozen data. Values are in the unit of the series (nanoseconds for latencies)."""

import math
from dataclasses import dataclass
from enum import Enum

from rtproof.analysis.blockcounts import BlockCounts
from rtproof.analysis.counts import Counts
from rtproof.analysis.forecast.model import Forecast
from rtproof.record import Record, Seconds, Series, Top


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


LONGEST_GAP_NS = 60_000_000_000
NO_LONGEST = 2**63 - 1
"""Longest length of an episode where none was fixed, as in records of rtproof before its schema 3 of run.json."""


@dataclass(frozen=True)
class Requirement:
    """Episodes above limit_ns come at most once per at_most_ns, at a confidence, and none lasts longer than longest_ns.

    Exceedances within gap_ns are one episode. gap_ns, longest_ns: 0 stands for the usual one of at_most_ns, which is
    filled in. bunches: how many episodes a bunch may bring on average.
    """

    limit_ns: int
    at_most_ns: int = 3_600_000_000_000
    confidence: float = 0.95
    gap_ns: int = 0
    longest_ns: int = 0
    bunches: float = 1.0

    def __post_init__(self) -> None:
        """Fill in the usual gap and longest length."""
        if not self.gap_ns:
            object.__setattr__(self, "gap_ns", usual_gap_ns(self.at_most_ns))
        if not self.longest_ns:
            object.__setattr__(self, "longest_ns", usual_longest_ns(self.at_most_ns, self.gap_ns))

    @classmethod
    def usual(cls, limit_ns: int, at_most_ns: int) -> "Requirement":
        """With the usual confidence, gap and longest length."""
        return cls(limit_ns, at_most_ns)


def usual_gap_ns(at_most_ns: int) -> int:
    """A twentieth of at_most_ns, and a minute at most: 3 s for once per minute, a minute from 20 minutes on."""
    return max(min(LONGEST_GAP_NS, at_most_ns // 20), 1)


def usual_longest_ns(at_most_ns: int, gap_ns: int) -> int:
    """Ten gaps, and a quarter of at_most_ns at most: 15 s for once per minute, 10 minutes from 40 minutes on."""
    return max(min(10 * gap_ns, at_most_ns // 4), gap_ns)


class State(Enum):
    PROVEN = "PROVEN"
    REFUTED = "REFUTED"
    UNDECIDED = "UNDECIDED"
    INVALID = "INVALID"
    NOT_ASKED = "NOT ASKED"

    @property
    def exit_code(self) -> int:
        return {"PROVEN": 0, "NOT ASKED": 0, "REFUTED": 1, "INVALID": 3, "UNDECIDED": 4}[self.value]


@dataclass(frozen=True)
class Episode:
    """Exceedances of the limit at most GAP apart, over all threads.

    begin_ns, end_ns: between what all its late times surely lie, exact where single activations are known; the seconds
    are those of both. All are times of the record.
    """

    first_second: int
    last_second: int
    worst_ns: int
    threads: tuple[int, ...]
    begin_ns: int = 0
    end_ns: int = 0

    @property
    def length_ns(self) -> int:
        """How long it lasted at most."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Verdict:
    """State and the figures behind it. What needs a requirement is None without one, or if nothing was measured.

    alpha: the probability of error that this limit has, of several limits a share. tau: measured time in units of
    at_most_ns; live_ns: quiet time, which alone speaks for a proof. log_e_proven, log_e_refuted: natural logarithms of
    E+ and E- at the end (analysis.claim). rate_low, rate_high: per second, limits of all of the run, each at alpha,
    valid whenever one looks or stops; rate_high_fixed: that of a length fixed beforehand; None without quiet time.
    kind: which rule REFUTED. decided_at_ns: measured time at which the state was reached, decided_with: episodes by
    then; proven_at_ns, proven_with: of a proof that came before, also where a refutation prevailed. bunches_bound:
    PROVEN holds for bunches of up to so many episodes on average. bunched: the bunch test at the end; None with too few
    episodes. withheld: PROVEN but for the bunch test. longest_seen_ns: how long the longest episode surely lasted.
    late_seconds: seconds in which something was late. needed_ns: measured time in all to be PROVEN with no further
    episode, needed_with_one_more_ns: with one; more_ns, more_with_one_more_ns: what is missing of these (0: nothing).
    refuted_at_latest_ns: when the episode that goes on is REFUTED by its length. chance, chance_with_one_more: of being
    PROVEN by then, if the rate is what the episodes so far make likely. chosen_after: the data came before the limit.
    sentences: label and text, line by line, VERDICT first; an empty label carries on the one before.
    """

    state: State
    requirement: Requirement | None
    reasons: tuple[str, ...]
    sentences: tuple[tuple[str, str], ...]
    episodes: tuple[Episode, ...]
    measured_ns: int
    exceedances_observed: int | None
    exceedances_schedule: int | None
    alpha: float | None = None
    tau: float | None = None
    live_ns: int | None = None
    log_e_proven: float | None = None
    log_e_refuted: float | None = None
    rate_low: float | None = None
    rate_high: float | None = None
    rate_high_fixed: float | None = None
    decided_at_ns: int | None = None
    decided_with: int | None = None
    kind: str | None = None
    proven_at_ns: int | None = None
    proven_with: int | None = None
    bunches_bound: float | None = None
    bunched: bool | None = None
    withheld: bool = False
    longest_seen_ns: int | None = None
    late_seconds: int | None = None
    refuted_at_latest_ns: int | None = None
    needed_ns: int | None = None
    more_ns: int | None = None
    needed_with_one_more_ns: int | None = None
    more_with_one_more_ns: int | None = None
    chance: float | None = None
    chance_with_one_more: float | None = None
    chosen_after: bool = False
    deterministic: bool = False
    """Of a run in virtual time: it tells what was seen, and has no confidence (analysis.deterministic)."""


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


@dataclass(frozen=True)
class Analysis:
    """Everything said about a record; the report and the exports draw this and nothing else.

    verdict: the one that decides, of those in verdicts, one for each limit. summaries, pooled: of the field that a
    limit judges, the last one. shares: those whose quantiles the user asked for, besides the usual ones. every: a
    summary of each series of the record, in its order. stages: per field in order all threads together, the judged one
    last. switches: between neighbouring stages; none without samples. cycles: of a loop. forecast: None where nothing
    was measured.
    """

    record: Record
    summaries: tuple[Summary, ...]
    pooled: Summary
    doubts: tuple[Doubt, ...]
    verdict: Verdict
    shares: tuple[float, ...] = ()
    every: tuple[Summary, ...] = ()
    stages: tuple[Summary, ...] = ()
    switches: tuple[Switch, ...] = ()
    cycles: Cycles | None = None
    forecast: Forecast | None = None
    verdicts: tuple[Verdict, ...] = ()
