# SPDX-License-Identifier: Apache-2.0
"""What a histogram without time order still carries, and what it cannot carry however many values it has.

Everything about single values remains: how many exceed a limit, quantiles, the maximum. Whatever needs to know when a
value came is lost: episodes and their rate, whether the run was the same throughout, a forecast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtproof.analysis import histogram_claim
from rtproof.analysis.bounds import share_lower, share_upper
from rtproof.analysis.counts import EMPTY, Counts, merge
from rtproof.analysis.histogram_claim import Exceeding
from rtproof.analysis.imported import Imported
from rtproof.analysis.model import Quantile, Requirement, State
from rtproof.analysis.quantiles import DEFAULT, quantile


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

    states are PROVEN, REFUTED, UNDECIDED or INVALID for each limit, NOT ASKED without one. quantiles: of the values in
    bins and those beyond the scale. beyond: the share from which on a quantile lies beyond the scale; None: none does.
    """

    imported: Imported
    judged: tuple[Judged, ...]
    quantiles: tuple[Quantile, ...]
    beyond: float | None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a decision has to be read with."""
        return histogram_claim.doubts(self.imported, [one.state for one in self.judged])

    @property
    def state(self) -> State:
        """The one that decides: a contradiction before a refutation, and that before none; PROVEN if all limits are."""
        if self.imported.faults:
            return State.INVALID
        states = [one.state for one in self.judged] or [State.NOT_ASKED]
        return min(states, key=(State.REFUTED, State.UNDECIDED, State.PROVEN, State.NOT_ASKED).index)


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
    """How many samples exceed the limit; None where not even their number is told, or is too small for its bins."""
    n = imported.count
    if not n:
        return None
    least, most = _exceeding(imported, requirement.limit_ns, n)
    if max(least, most or 0) > n:
        return None
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
    return max(least, seen), None if imported.overflow is None else max(most, least, seen)


def _judged(imported: Imported, requirement: Requirement, limits: int) -> Judged:
    found = above(imported, requirement)
    if imported.faults:
        return Judged(requirement, State.INVALID, imported.faults[0], found)
    if found is None:
        return Judged(requirement, State.UNDECIDED, NOTHING, found)
    alpha = (1 - requirement.confidence) / limits
    told = histogram_claim.judged(imported, requirement, _exceedances(imported, requirement, found), alpha)
    return Judged(requirement, told.state, told.reason, found)


def _exceedances(imported: Imported, requirement: Requirement, found: Above) -> Exceeding:
    """Where bins may hold what was smaller, only the printed maximum surely exceeds the limit, and excludes others."""
    if not imported.unsure:
        return Exceeding(found.least, found.most)
    seen = imported.max_ns is not None and imported.max_ns > requirement.limit_ns
    return Exceeding(int(seen), 0 if imported.largest_ns is not None and not seen else None)


NOTHING = "the file does not say how many samples were taken"


DECIDED = (State.PROVEN, State.REFUTED)


def after_the_data(said: HistogramOnly, why: str) -> HistogramOnly:
    """Without a decision, because whoever has seen the data can choose a limit that fits."""
    judged = tuple(
        replace(one, state=State.UNDECIDED, reason=why) if one.state in DECIDED else one for one in said.judged
    )
    return replace(said, judged=judged)


def stated(said: HistogramOnly, word: str) -> HistogramOnly:
    """With the user's word beside each decision that rests on it."""
    judged = tuple(replace(one, reason=f"{one.reason}; {word}") if one.state in DECIDED else one for one in said.judged)
    return replace(said, judged=judged)


def impossible(said: HistogramOnly) -> Iterator[tuple[str, str]]:
    """Each statement that a run of rtproof's own carries and this file does not, and why."""
    imported = said.imported
    yield "episodes and their rate", f"{NO_ORDER}, so exceedances cannot be put together to episodes or apart"
    lack = histogram_claim.lack(imported)
    if lack:
        yield "PROVEN", lack
    else:
        yield "PROVEN of a limit that is exceeded", f"{NO_ORDER}: an early episode would refute the claim"
    yield "the conditions of the run", histogram_claim.NOT_CHECKED
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
