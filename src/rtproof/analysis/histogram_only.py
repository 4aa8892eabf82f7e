# SPDX-License-Identifier: Apache-2.0
"""What a histogram without time order still carries, and what it cannot carry however many values it has.

Everything about single values remains: how many exceed a limit, quantiles, the maximum. Whatever needs to know when a
value came is lost: episodes and their rate, whether the run was the same throughout, a forecast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtproof.analysis.bounds import share_lower, share_upper
from rtproof.analysis.counts import EMPTY, Counts, merge
from rtproof.analysis.imported import Imported
from rtproof.analysis.model import Quantile, Requirement, State
from rtproof.analysis.quantiles import DEFAULT, quantile
from rtproof.analysis.sequential import refuted_until_ns

MARGIN_NS = 1_000_000_000
"""By how much a duration that is told in seconds may be too short."""


@dataclass(frozen=True)
class Above:
    """How many of n samples exceed a limit, at least and at most (None: not told), and the bounds of their share.

    The bounds are of Clopper and Pearson, one-sided each, and hold if the samples were independent.
    """

    n: int
    least: int
    most: int | None
    share_low: float
    share_high: float | None


@dataclass(frozen=True)
class Judged:
    """A limit and what can be said on it. above: None where nothing is known of the samples. reason: a sentence."""

    requirement: Requirement
    state: State
    reason: str
    above: Above | None


@dataclass(frozen=True)
class HistogramOnly:
    """Everything that is said of an imported histogram.

    states are REFUTED, UNDECIDED or INVALID for each limit, NOT ASKED without one. quantiles: of the values in bins and
    those beyond the scale. beyond: the share from which on a quantile lies beyond the scale; None: none does.
    """

    imported: Imported
    judged: tuple[Judged, ...]
    quantiles: tuple[Quantile, ...]
    beyond: float | None

    @property
    def state(self) -> State:
        """The one that decides: a contradiction before a refutation, and that before none."""
        if self.imported.faults:
            return State.INVALID
        states = [one.state for one in self.judged] or [State.NOT_ASKED]
        return min(states, key=(State.REFUTED, State.UNDECIDED, State.NOT_ASKED).index)


def say(
    imported: Imported, requirements: Sequence[Requirement] = (), shares: tuple[float, ...] = DEFAULT
) -> HistogramOnly:
    """What remains of a histogram. With several limits each is tested at its part of alpha (Bonferroni)."""
    judged = tuple(_judged(imported, one, len(requirements)) for one in requirements)
    counts = with_overflow(imported)
    found = tuple(quantile(counts, p) for p in shares) if counts.total else ()
    overflow = imported.overflow or 0
    beyond = 1 - overflow / counts.total if overflow and counts.total else None
    return HistogramOnly(imported, judged, found, beyond)


def with_overflow(imported: Imported) -> Counts:
    """The histogram with what lies beyond its scale as one wide bin, up to the maximum."""
    bins = imported.histogram if imported.histogram is not None else EMPTY
    if not imported.overflow:
        return bins
    start = scale_end_ns(imported)
    end = max(imported.largest_ns or start, start)
    return merge([bins, Counts(*(np.array([x], np.int64) for x in (start, end, imported.overflow)))])


def scale_end_ns(imported: Imported) -> int:
    """What lies beyond the scale was at least this."""
    bins = imported.histogram
    last = int(bins.hi[-1]) + 1 if bins is not None and bins.n.size else 0
    return max(imported.scale_ns or 0, last)


def above(imported: Imported, requirement: Requirement) -> Above | None:
    """How many samples exceed the limit; None where not even their number is told."""
    n = imported.count
    if not n:
        return None
    least, most = _exceeding(imported, requirement.limit_ns, n)
    confidence = requirement.confidence
    high = None if most is None else share_upper(most, n, confidence)
    return Above(n, least, most, share_lower(least, n, confidence), high)


def _exceeding(imported: Imported, limit_ns: int, n: int) -> tuple[int, int | None]:
    largest, smallest = imported.largest_ns, imported.min_ns
    if largest is not None and largest <= limit_ns:
        return 0, 0
    seen = int(imported.max_ns is not None and imported.max_ns > limit_ns)
    if imported.histogram is None:
        return (n if smallest is not None and smallest > limit_ns else seen), n
    counts = with_overflow(imported)
    least, most = counts.exceedances(limit_ns)
    return max(least, seen), None if imported.overflow is None else most


def _judged(imported: Imported, requirement: Requirement, limits: int) -> Judged:
    found = above(imported, requirement)
    if imported.faults:
        return Judged(requirement, State.INVALID, imported.faults[0], found)
    if found and found.least and _refuted(imported, requirement, limits):
        return Judged(requirement, State.REFUTED, FORCED, found)
    if found is None:
        return Judged(requirement, State.UNDECIDED, NOTHING, found)
    if found.least:
        return Judged(requirement, State.UNDECIDED, UNORDERED, found)
    return Judged(requirement, State.UNDECIDED, UNKNOWN if found.most != 0 else NONE, found)


def _refuted(imported: Imported, requirement: Requirement, limits: int) -> bool:
    """Whether a single episode anywhere in the run refutes the claim: the arithmetic needs no order then."""
    duration = imported.duration_ns
    alpha = (1 - requirement.confidence) / limits
    return duration is not None and duration + MARGIN_NS <= refuted_until_ns(1, requirement.at_most_ns, alpha)


FORCED = (
    "at least one sample exceeded the limit, so there was at least one episode, and in so short a run one is too many, "
    "whenever it came"
)
UNORDERED = (
    "samples exceeded the limit, but a histogram does not tell when: they may all belong to one episode, which does "
    "not refute the claim, or each to its own"
)
NONE = (
    "no sample exceeded the limit, but the file shows neither that every activation was measured nor how, and not how "
    "long each part of it took, so it proves nothing"
)
UNKNOWN = "its bins do not tell whether a sample exceeded the limit"
NOTHING = "the file does not say how many samples were taken"


def after_the_data(said: HistogramOnly, why: str) -> HistogramOnly:
    """Without a decision, because whoever has seen the data can choose a limit that fits."""
    judged = tuple(
        replace(one, state=State.UNDECIDED, reason=why) if one.state is State.REFUTED else one for one in said.judged
    )
    return replace(said, judged=judged)


def stated(said: HistogramOnly, word: str) -> HistogramOnly:
    """With the user's word beside each decision that rests on it."""
    judged = tuple(
        replace(one, reason=f"{one.reason}; {word}") if one.state is State.REFUTED else one for one in said.judged
    )
    return replace(said, judged=judged)


def impossible(said: HistogramOnly) -> Iterator[tuple[str, str]]:
    """Each statement that a run of rtproof's own carries and this file does not, and why."""
    imported = said.imported
    yield "episodes and their rate", f"{NO_ORDER}, so exceedances cannot be put together to episodes or apart"
    yield "PROVEN", "the file does not show that every due activation was measured, at which policy, and by which clock"
    if imported.overruns is None:
        yield "missed activations", "a histogram counts what ran; what was skipped behind a late one is in no bin"
    yield "whether the run was the same throughout", f"{NO_ORDER}, so no drift, no period and no change can be seen"
    yield "a forecast", f"{NO_ORDER}: it needs the largest value of each second, and order unknown means none of these"
    if imported.overflow:
        yield "quantiles beyond the scale", f"{_saturated(imported)}; of these only the largest is known"
    if imported.overflow is None:
        yield "how much lies beyond the scale", "the file does not count it, so a quantile may be too small"
    if imported.histogram is None:
        yield "quantiles and shares", "there is no histogram in it, only its ends"
    if imported.resolution_ns and imported.resolution_ns > 1:
        yield "differences below its resolution", f"values are rounded down to {imported.resolution_ns:,} ns"


NO_ORDER = "a histogram has no time order"


def _saturated(imported: Imported) -> str:
    return f"{imported.overflow:,} values lie beyond the scale, which ends at {scale_end_ns(imported):,} ns"
