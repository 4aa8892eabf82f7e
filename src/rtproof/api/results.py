# SPDX-License-Identifier: Apache-2.0
"""What a run says, as frozen data for users of the Python API.

Each class holds a part of the published JSON (docs/json-schema.md) under names that stay. Times are whole nanoseconds,
and their names end with ``_ns``. None means that the run does not tell the figure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rtproof.api.tables import html_lines, html_table, number_text, time_text
from rtproof.core.errors import RtproofError
from rtproof.judge.analysis_model import Episode, State

__all__ = ["Distribution", "Figures", "Quantile", "Summary", "Verdict"]

Sentences = tuple[tuple[str, str], ...]
"""Lines to print: label and text. An empty label continues the line before."""


def printed_sentences(sentences: Sentences) -> Iterator[str]:
    """The lines of text, each with its label."""
    width = max((len(label) for label, _ in sentences), default=0)
    return (f"{label:<{width}} {text}" for label, text in sentences)


@dataclass(frozen=True)
class Quantile:
    """The latency that a share of all activations does not exceed, by nearest rank.

    Attributes:
        share: From 0 to 1: 0.99 is the 99th percentile.
        n: The number of values.
        value_ns: The latency; None if fewer than one of n values is expected above it.
        low_ns: The lower end of its interval; None if the run does not tell it.
        high_ns: The upper end.
        confidence: Of the interval; None without one.
        beyond_scale: Whether the value lies beyond the scale of another tool's histogram.
    """

    share: float
    n: int
    value_ns: int | None
    low_ns: int | None
    high_ns: int | None
    confidence: float | None
    beyond_scale: bool = False


@dataclass(frozen=True)
class Distribution:
    """The latencies of one view: of the activations that ran, or of all that were due.

    Attributes:
        n: The number of values; None if another tool does not tell it.
        min_ns: The smallest value.
        mean_ns: The mean.
        max_ns: The largest value.
        deviation_ns: The standard deviation.
        quantiles: One for each share, ascending.
    """

    n: int | None
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    deviation_ns: float | None
    quantiles: tuple[Quantile, ...]

    def quantile(self, share: float) -> Quantile:
        """The quantile of this share. RtproofError if the summary was made without it."""
        for each in self.quantiles:
            if each.share == share:
                return each
        known = ", ".join(str(each.share) for each in self.quantiles)
        raise RtproofError(f"there is no quantile {share} here: summary(shares=[{share}]) adds it to {known or 'none'}")

    @property
    def median_ns(self) -> int | None:
        """The median."""
        return self._value_ns(0.5)

    @property
    def p99_ns(self) -> int | None:
        """The 99th percentile."""
        return self._value_ns(0.99)

    @property
    def p99_9_ns(self) -> int | None:
        """The 99.9th percentile."""
        return self._value_ns(0.999)

    def _value_ns(self, share: float) -> int | None:
        return next((each.value_ns for each in self.quantiles if each.share == share), None)


@dataclass(frozen=True)
class Figures:
    """The numbers of one measuring thread, or of all threads together.

    Attributes:
        thread: The number of the thread; None for all threads together.
        cpu: The CPU that the thread is bound to; None if it is bound to none.
        n: Activations that ran, or of which nothing is known.
        due: Due times: those of the activations that ran and those of the missed ones.
        missed: Due times for which the thread never ran.
        lost: Activations whose latency is not known.
        exact: True: counted from samples. False: from bins, whose values are known to one part in 1024.
        observed: The latencies of the activations that ran.
        schedule: The latencies of all activations that were due: the missed ones too, each with its lateness.
            None for another tool's histogram.
        offset_ns: The constant part of the latency: the median.
        jitter_ns: How far the latencies lie apart: the 99th minus the first percentile.
        peak_to_peak_ns: The largest minus the smallest latency.
    """

    thread: int | None
    cpu: int | None
    n: int | None
    due: int | None
    missed: int | None
    lost: int | None
    exact: bool
    observed: Distribution
    schedule: Distribution | None
    offset_ns: int | None
    jitter_ns: int | None
    peak_to_peak_ns: int | None

    @property
    def min_ns(self) -> int | None:
        """The smallest latency of an activation that ran."""
        return self.observed.min_ns

    @property
    def median_ns(self) -> int | None:
        """The median of the activations that ran."""
        return self.observed.median_ns

    @property
    def p99_ns(self) -> int | None:
        """The 99th percentile of the activations that ran."""
        return self.observed.p99_ns

    @property
    def p99_9_ns(self) -> int | None:
        """The 99.9th percentile of the activations that ran."""
        return self.observed.p99_9_ns

    @property
    def max_ns(self) -> int | None:
        """The largest latency of an activation that ran."""
        return self.observed.max_ns


@dataclass(frozen=True)
class Summary:
    """The numbers of a run.

    Attributes:
        pooled: All threads together.
        threads: Each thread by itself.
    """

    pooled: Figures
    threads: tuple[Figures, ...]

    def _repr_html_(self) -> str:
        head = ("thread", "n", "missed", "min", "median", "99 %", "99.9 %", "max")
        return html_table("latency of the activations that ran", head, map(_figures_row, (*self.threads, self.pooled)))


def _figures_row(one: Figures) -> tuple[str, ...]:
    name = "all" if one.thread is None else str(one.thread)
    times = (one.min_ns, one.median_ns, one.p99_ns, one.p99_9_ns, one.max_ns)
    return (name, number_text(one.n), number_text(one.missed), *map(time_text, times))


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether a run shows that a limit holds.

    A verdict is neither true nor false: compare its ``state``, as in ``verdict.state is rtproof.State.HELD``.

    Attributes:
        state: HELD, EXCEEDED, PROVEN, REFUTED, UNDECIDED, INVALID or NOT_ASKED.
        limit_ns: The latency above which an activation is late; None if no limit was asked.
        at_most_ns: Episodes above the limit may come once per this time; None, as the next two: never.
        longest_ns: No episode may last longer; None if nothing was fixed.
        gap_ns: Late times no further apart than this are one episode.
        confidence: Of all verdicts of the run together; of a limit without ``at_most_ns``, of this one.
        exceeded_count: Due activations that were later than the limit, at least; None if that is unknown.
        largest_ns: The largest latency.
        shown_rate_per_s: Of HELD: the limit is exceeded no more often than this.
        sentences: Label and text of each line to print. An empty label continues the line before.
        reasons: Why the state is what it is.
        episodes: The episodes in order of time; None for a histogram, which has no order of time.
        exceedances_observed: Activations that ran and were later than the limit.
        exceedances_schedule: The same of all that were due.
        measured_ns: How long was measured; None if another tool does not tell it.
        decided_at_ns: The measured time at which the state was reached; None: undecided.
        needed_ns: The measured time in all until PROVEN, if no further episode comes.
        more_ns: How much of that time is missing.
        more_with_one_more_ns: The same if one more episode comes.
        chance: The chance to be PROVEN by then, at a rate that fits the episodes so far.
        rate_low_per_s: The lower bound of the rate of episodes.
        rate_high_per_s: The upper bound of the rate of episodes.
        chosen_after: Whether the limit was chosen when the data were there, so that nothing was tested.
        deterministic: Whether the run was in virtual time, so that no figure has a probability.
    """

    state: State
    limit_ns: int | None
    at_most_ns: int | None
    longest_ns: int | None
    gap_ns: int | None
    confidence: float | None
    exceeded_count: int | None
    largest_ns: int | None
    shown_rate_per_s: float | None
    sentences: Sentences
    reasons: tuple[str, ...]
    episodes: tuple[Episode, ...] | None
    exceedances_observed: int | None
    exceedances_schedule: int | None
    measured_ns: int | None
    decided_at_ns: int | None
    needed_ns: int | None
    more_ns: int | None
    more_with_one_more_ns: int | None
    chance: float | None
    rate_low_per_s: float | None
    rate_high_per_s: float | None
    chosen_after: bool
    deterministic: bool

    @property
    def exit_code(self) -> int:
        """The exit code of a command with this verdict: 0 PROVEN or NOT ASKED, 1 REFUTED, 3 INVALID, 4 UNDECIDED."""
        return self.state.exit_code

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
