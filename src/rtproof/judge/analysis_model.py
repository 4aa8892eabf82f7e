# SPDX-License-Identifier: Apache-2.0
"""Results of a judgement, as frozen data: requirement, episode, verdict, and the Analysis that holds everything."""

from dataclasses import dataclass
from enum import Enum

from rtproof.record.contents import Record
from rtproof.summary.quantiles import USUAL_SHARES
from rtproof.summary.summary_model import Cycles, Doubt, Summary, Switch
from rtproof.tail.forecast_model import Forecast


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


LONGEST_GAP_NS = 60_000_000_000


NO_LONGEST = 2**63 - 1
"""Longest length of an episode where none was fixed, as in records of rtproof before its schema 3 of run.json."""


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


def several_stages(analysis: Analysis) -> tuple[Summary, ...]:
    """The summaries of all fields in order; nothing where there is one only, of which everything else tells."""
    return analysis.stages if len(analysis.stages) > 1 else ()


def shares_of(analysis: Analysis) -> tuple[float, ...]:
    """The usual shares and those that were asked for."""
    return tuple(sorted({*USUAL_SHARES, *analysis.shares}))
