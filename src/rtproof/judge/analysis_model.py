# SPDX-License-Identifier: Apache-2.0
"""The results of a judgement as frozen data: episode, verdict, and the ``Analysis`` that holds all."""

from dataclasses import dataclass
from enum import Enum

from rtproof.core.errors import RtproofError
from rtproof.core.notebook import Sentences, html_lines, printed_sentences, time_text
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.measured_kernel import core_beside
from rtproof.summary.quantiles import USUAL_SHARES
from rtproof.summary.recorded_facts import virtual_time_clock
from rtproof.summary.summary_model import Cycles, Doubt, Summary, Switch
from rtproof.summary.two_board_edges import BoardEdges
from rtproof.tail.forecast import Forecast


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
        first_second: The second of the first late time.
        last_second: The second of the last late time.
        worst_ns: The largest latency.
        threads: The threads that were late.
        begin_ns: The first late time, from the origin of the record; exact where single activations are known.
        end_ns: The last late time, likewise.
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
    """How many of n samples exceed a limit, and the one-sided bounds of their share (Clopper and Pearson).

    n: the number of samples; None: not told.
    least: samples above the limit, at least. most: samples above the limit, at most; None: not told.
    share_low: the lower bound of their share, if the samples were independent; 0 without n. share_high: the upper
    bound, likewise; None without n or most.
    """

    n: int | None
    least: int
    most: int | None
    share_low: float
    share_high: float | None


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether a run shows that a limit holds, and the figures behind it.

    A verdict is neither true nor false: compare its ``state``, as in ``verdict.state is rtproof.State.HELD``. A figure
    that needs a requirement is None if there is none, or if nothing was measured. A plain limit, which may never be
    exceeded, has no episodes and no figures of the test.

    Attributes:
        state: The answer.
        requirement: What was asked; None: nothing.
        reasons: Why the state is what it is.
        sentences: Label and text of each line to print, VERDICT first. An empty label continues the line before.
        episodes: The episodes in order of time; () for a histogram, which has no order of time: it is ``untimed``.
        measured_ns: How long was measured, all threads at once; None if another tool does not tell it.
        exceedances_observed: Activations that ran and were later than the limit.
        exceedances_schedule: The same of all that were due, the missed ones charged with their lateness.
        alpha: The probability of error of this limit's test: 1 minus the confidence, of m limits the m-th part
            (Bonferroni).
        tau: ``measured_ns`` divided by ``at_most_ns``.
        live_ns: The quiet time: all time measured but that from the first late time of an episode to the gap behind its
            last. It alone counts for E+ and the upper bounds of the rate.
        log_e_proven: The natural logarithm of E+ at the end (docs/verdict.md); a threshold is ln(1 / ``alpha``).
        log_e_refuted: The natural logarithm of E- at the end.
        rate_low_per_s: The lower bound of the rate of episodes, at ``alpha``, of all of the run, valid whenever one
            looks or stops.
        rate_high_per_s: The upper bound of the same rate; None if values were lost or no time was quiet.
        rate_high_fixed_per_s: The upper bound that holds only for a length fixed beforehand.
        decided_at_ns: The measured time at which the state was reached; None: undecided.
        decided_with: The episodes by then.
        kind: The rule that REFUTED: "rate", or "duration" of one episode.
        proven_at_ns: The measured time of a proof, also where a later refutation prevailed over it.
        proven_with: The episodes by then.
        bunches_bound: PROVEN holds if episodes come in bunches of up to so many on average; below 1: all of the run
            would not be PROVEN.
        bunched: Whether the episodes look bunched at the end; None: fewer than three.
        withheld: Whether that alone keeps the run from being PROVEN.
        longest_seen_ns: How long the longest episode surely lasted.
        late_seconds: The seconds in which something was late.
        refuted_at_latest_ns: The measured time at which an episode that is not over will be REFUTED by its length;
            None: none is open.
        needed_ns: The measured time in all until PROVEN if no further episode comes; None, as the next five, if values
            were lost or a proof is ``withheld``.
        more_ns: How much of that time is missing.
        needed_with_one_more_ns: The same as ``needed_ns`` if one more episode comes.
        more_with_one_more_ns: The same as ``more_ns`` if one more episode comes.
        chance: The chance to be PROVEN by ``needed_ns``, at a rate that fits the episodes so far: a forecast, no bound.
        chance_with_one_more: The same if one more episode comes.
        chosen_after: Whether the limit was chosen when the data were there, so that nothing was tested.
        deterministic: Whether the run was in virtual time, so that it tells what was seen, and no figure has a
            probability.
        untimed: Whether the file has no order of time, so that times, rates and episodes are unknown.
        above: What such a file counts above the limit.
        largest_ns: The largest latency; of a thread that never ran again, how late it was at least; None: none is
            known.
        shown_rate_per_s: Of HELD: at 1 - ``alpha``, the limit is exceeded no more often than this.
    """

    state: State
    requirement: Requirement | None
    reasons: tuple[str, ...]
    sentences: Sentences
    episodes: tuple[Episode, ...]
    measured_ns: int | None
    exceedances_observed: int | None
    exceedances_schedule: int | None
    alpha: float | None = None
    tau: float | None = None
    live_ns: int | None = None
    log_e_proven: float | None = None
    log_e_refuted: float | None = None
    rate_low_per_s: float | None = None
    rate_high_per_s: float | None = None
    rate_high_fixed_per_s: float | None = None
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
    untimed: bool = False
    above: CountAbove | None = None
    largest_ns: int | None = None
    shown_rate_per_s: float | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of a command: 0 HELD, PROVEN, NOT ASKED, 1 EXCEEDED, REFUTED, 3 INVALID, 4 UNDECIDED."""
        return self.state.exit_code

    @property
    def limit_ns(self) -> int | None:
        """The latency above which an activation is late; None if no limit was asked."""
        return self.requirement.limit_ns if self.requirement else None

    @property
    def at_most_ns(self) -> int | None:
        """Episodes above the limit may come once per this time; None, as the next two: never."""
        return self.requirement.at_most_ns or None if self.requirement else None

    @property
    def longest_ns(self) -> int | None:
        """No episode may last longer; None if nothing was fixed."""
        return self.requirement.fixed_longest_ns if self.requirement else None

    @property
    def gap_ns(self) -> int | None:
        """Late times no further apart than this are one episode."""
        return self.requirement.gap_ns if self.requirement and not self.plain else None

    @property
    def confidence(self) -> float | None:
        """Of all verdicts of the run together; of a plain limit, of this one."""
        return self.requirement.confidence if self.requirement else None

    @property
    def plain(self) -> bool:
        """Whether the limit is never to be exceeded."""
        return self.requirement is not None and self.requirement.plain

    @property
    def exceeded_count(self) -> int | None:
        """Due activations that were later than the limit, at least; None: unknown, or no limit."""
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

    def __str__(self) -> str:
        """The lines that the command line prints."""
        return "\n".join(printed_sentences(self.sentences))

    def __repr__(self) -> str:
        """The state and the limit."""
        limit = "no limit" if self.limit_ns is None else f"limit {time_text(self.limit_ns)}"
        return f"<Verdict {self.state.value}, {limit}>"

    def __bool__(self) -> bool:
        """Refuse, because ``if verdict:`` would be true whatever the verdict is."""
        raise RtproofError(
            f"a verdict is neither true nor false: compare its state with State.HELD; this one is {self.state.value}"
        )

    def _repr_html_(self) -> str:
        return html_lines(self.state.value, printed_sentences(self.sentences))


@dataclass(frozen=True)
class Analysis:
    """Everything that rtproof says about a record. Reports and exports show this and nothing else.

    run_record: where the numbers come from; None for the file of another tool, which is in ``imported``.
    verdict: is the requirement met, and why; of several limits the verdict that decides: INVALID, else EXCEEDED,
    REFUTED, UNDECIDED, HELD, PROVEN. verdicts: one for each limit, in the order given; without a limit the one that
    says so.
    doubts: reasons not to believe the numbers, the worst first: what makes the run INVALID, what is gone from it, what
    is of this run, what every run on this machine has.
    summaries: a summary of each measuring thread, of the field that is judged, which is the last one. pooled: a summary
    of all threads together, of the field that is judged.
    shares: the user asked for the quantiles of these shares, besides the usual ones. every: a summary of each series,
    in the record's order.
    stages: for each field in order, a summary of all threads together; the judged field is last.
    switches: the time from each stage to the next, activation by activation; empty without samples.
    cycles: the cycles of a loop (method ``loop``), else None.
    forecast: what the run lets expect beyond itself, or why nothing ([forecast.md](forecast.md)); None in virtual time,
    where nothing was measured, and if nobody wanted one.
    imported: what another tool printed, which holds no times, else None. What needs time is then empty. If rtproof ran
    the tool itself, there is a record too.
    edges: of a run on two boards: their edges, else None; the verdict and the forecast are of the generator's record.
    """

    run_record: Record | None
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
    edges: BoardEdges | None = None

    @property
    def record(self) -> Record:
        """The record of a run; ValueError for the file of another tool, which has none."""
        if self.run_record is None:
            raise ValueError("what another tool printed has no record")
        return self.run_record

    @property
    def started_ns(self) -> int:
        """When measuring began, in ns since 1970 by the clock of the target; 0 if unknown."""
        if self.run_record is None:
            return (self.imported.started_s or 0) * 1_000_000_000 if self.imported else 0
        return self.run_record.begin.origin_realtime_ns

    @property
    def virtual_clock(self) -> str | None:
        """What made the clock of the run count instructions; None for a clock that shows time."""
        return virtual_time_clock(self.run_record) if self.run_record else None

    @property
    def core(self) -> str | None:
        """The co-kernel that ran beside Linux; None if none is known."""
        return core_beside(self.run_record) if self.run_record else None


def several_stages(analysis: Analysis) -> tuple[Summary, ...]:
    """The summaries of all fields in order; empty if there is only one field, which the other tables show already."""
    return analysis.stages if len(analysis.stages) > 1 else ()


ANSWERS = {"edge", "output", "answer", "response"}
"""Fields that only answers have: the edge that began the answer, the output that ended it, or the whole."""


def is_response(analysis: Analysis) -> bool:
    """Whether the run measured answers to events from outside, judged by the names of its fields."""
    return bool(ANSWERS & {stage.series.field for stage in analysis.stages})


def shares_of(analysis: Analysis) -> tuple[float, ...]:
    """The usual shares and those that the user asked for, in ascending order."""
    return tuple(sorted({*USUAL_SHARES, *analysis.shares}))
