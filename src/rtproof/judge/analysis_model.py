# SPDX-License-Identifier: Apache-2.0
"""The results of a judgement as frozen data: episode, verdict, and the ``Analysis`` that holds all."""

from dataclasses import dataclass
from enum import Enum

from rtproof.judge.requirement import Requirement
from rtproof.record.contents import Record
from rtproof.summary.edge_pairs import EdgePairs
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.quantiles import USUAL_SHARES
from rtproof.summary.summary_model import Cycles, Doubt, Summary, Switch
from rtproof.tail.forecast_model import Forecast


class State(Enum):
    """The state of a limit. A run has the state of the limit that decides."""

    HELD = "HELD"
    EXCEEDED = "EXCEEDED"
    PROVEN = "PROVEN"
    REFUTED = "REFUTED"
    UNDECIDED = "UNDECIDED"
    INVALID = "INVALID"
    NOT_ASKED = "NOT ASKED"

    @property
    def exit_code(self) -> int:
        """The exit code of a command whose result is this state."""
        return EXIT_CODES[self]

    @property
    def word(self) -> str:
        """The state in words for people. A run without a limit was measured, and asks for no word on a limit."""
        return "MEASURED" if self is State.NOT_ASKED else self.value


EXIT_CODES = {
    State.HELD: 0,
    State.PROVEN: 0,
    State.NOT_ASKED: 0,
    State.EXCEEDED: 1,
    State.REFUTED: 1,
    State.INVALID: 3,
    State.UNDECIDED: 4,
}


DECIDED = (State.HELD, State.EXCEEDED, State.PROVEN, State.REFUTED)


class Outcome(Enum):
    """What a verdict is for a machine that knows tests. INVALID is an error, and UNKNOWN has no limit."""

    PASSED = "pass"
    FAILED = "fail"
    SKIPPED = "skip"
    INVALID = "invalid"
    UNKNOWN = "unknown"


OUTCOMES = {
    State.HELD: Outcome.PASSED,
    State.PROVEN: Outcome.PASSED,
    State.EXCEEDED: Outcome.FAILED,
    State.REFUTED: Outcome.FAILED,
    State.UNDECIDED: Outcome.SKIPPED,
    State.INVALID: Outcome.INVALID,
    State.NOT_ASKED: Outcome.UNKNOWN,
}


@dataclass(frozen=True)
class Episode:
    """One disturbance: late times of all threads that are no further apart than the gap.

    All its late times surely lie between ``begin_ns`` and ``end_ns``, which are exact if single activations are known.

    Attributes:
        first_second: The second of ``begin_ns``.
        last_second: The second of ``end_ns``.
        worst_ns: The largest latency.
        threads: The threads that were late.
        begin_ns: The first late time, from the origin of the record.
        end_ns: The last late time.
    """

    first_second: int
    last_second: int
    worst_ns: int
    threads: tuple[int, ...]
    begin_ns: int = 0
    end_ns: int = 0

    @property
    def length_ns(self) -> int:
        """The longest time that the episode may have lasted."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class CountAbove:
    """How many of n samples exceed a limit, at least and at most (None: unknown), and the bounds of their share.

    The bounds are the one-sided ones of Clopper and Pearson. They hold if the samples were independent.
    """

    n: int
    least: int
    most: int | None
    share_low: float
    share_high: float | None


@dataclass(frozen=True)
class Verdict:
    """The state of one limit and the figures behind it.

    A figure that needs a requirement is None if there is none, or if nothing was measured.

    * sentences: label and text of each line, VERDICT first. An empty label continues the label before.
    * alpha: the limit's probability of error; with several limits, its share.
    * tau: measured time in units of at_most_ns. live_ns: quiet time, the only time that counts for a proof.
    * log_e_proven, log_e_refuted: natural logarithms of E+ and E- at the end (``rtproof.judge.claim``).
    * rate_low, rate_high: bounds of the rate per second over the whole run. Each holds at alpha, at any stopping time.
    * rate_high_fixed: the upper bound for a length fixed beforehand. Both upper bounds are None without quiet time.
    * kind: the rule that REFUTED. decided_at_ns, decided_with: measured time and episodes when the state was reached.
    * proven_at_ns, proven_with: the same for a proof, even if a later refutation prevailed.
    * bunches_bound: PROVEN would hold for bunches of up to this many episodes on average.
    * bunched: the bunch test at the end; None with too few episodes. withheld: only this test prevents PROVEN.
    * longest_seen_ns: how long the longest episode surely lasted. late_seconds: the number of seconds with a late time.
    * needed_ns, needed_with_one_more_ns: all measured time until PROVEN, with no further episode and with one more.
    * more_ns, more_with_one_more_ns: how much of these times is still missing; 0 if nothing is.
    * chance, chance_with_one_more: the chance of PROVEN by then, at the rate that the episodes so far make likely.
    * refuted_at_latest_ns: when an episode that still goes on will be REFUTED by its length.
    * chosen_after: the limit was chosen after the data were seen.
    * untimed: of a file without time order, so all times, rates and episodes are unknown. above: what the file counts.
    * largest_ns: the largest latency; of a thread that never ran again, how late it was at least.
    * shown_rate: of HELD: at 1 - alpha, the limit is exceeded no more often than this, per second.

    A plain limit has no episodes, and no figures of the test.
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
    """Whether the run was in virtual time. Then the verdict says what was seen, and has no confidence."""
    untimed: bool = False
    above: CountAbove | None = None
    largest_ns: int | None = None
    shown_rate: float | None = None

    @property
    def plain(self) -> bool:
        """Whether the limit is never to be exceeded."""
        return self.requirement is not None and self.requirement.plain

    @property
    def exceeded_count(self) -> int | None:
        """How many due activations were later than the limit, at least; None if that is unknown."""
        if self.above is not None:
            return self.above.least
        return self.exceedances_observed if self.exceedances_schedule is None else self.exceedances_schedule

    @property
    def exceeded(self) -> bool:
        """Whether the limit is known to have been exceeded."""
        return self.state is State.EXCEEDED or bool(self.exceeded_count)

    @property
    def outcome(self) -> Outcome:
        """What the verdict is for a machine. UNDECIDED fails where the limit was exceeded: it is never skipped then."""
        undecided = self.state is State.UNDECIDED
        return Outcome.FAILED if undecided and self.exceeded else OUTCOMES[self.state]


@dataclass(frozen=True)
class Analysis:
    """Everything that rtproof says about a record. Reports and exports show this and nothing else.

    verdicts: one for each limit. verdict: the one of them that decides. summaries: one for each thread, of the field
    that a limit judges, which is the last one. pooled: the same for all threads together. shares: the user asked for
    the quantiles of these shares, besides the usual ones. every: a summary of each series, in the record's order.
    stages: for each field in order, a summary of all threads together; the judged field is last. switches: what lies
    between neighbouring stages; empty without samples. cycles: those of a loop. forecast: None in virtual time, if
    nobody wanted one, or if nothing was measured. imported: what another tool printed, which holds no times; None for a
    run. Of such a file ``record`` holds no more than the machine, and what needs time is empty.
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
    imported: ImportedHistogram | None = None
    edges: EdgePairs | None = None
    """Of a run on two boards: the edges of both records. Verdict and forecast are then of the generator's record."""


def several_stages(analysis: Analysis) -> tuple[Summary, ...]:
    """The summaries of all fields in order; empty if there is only one field, which the other tables show already."""
    return analysis.stages if len(analysis.stages) > 1 else ()


def shares_of(analysis: Analysis) -> tuple[float, ...]:
    """The usual shares and those that the user asked for, in ascending order."""
    return tuple(sorted({*USUAL_SHARES, *analysis.shares}))
