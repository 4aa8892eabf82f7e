# SPDX-License-Identifier: Apache-2.0
"""A rule that holds the shape of the distribution in a row against its ends, mean, deviation and count."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rtproof.core.phrases import percent
from rtproof.judge.doubts.case import INVALID, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultBins, ResultClaim, ShareAtMost, of_parts, shown
from rtproof.summary.counts import Counts
from rtproof.summary.summary_model import Doubt

DEFINITIONS = 2
"""By so many values do the definitions of a percentile differ."""
ROUNDING_NS = 1
MOST_LACKING = 20_000
"""A tool that writes its file while its threads still run may count this many values that its bins lack: those of a
second at 50 us."""


def distribution(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Bins, percentiles and curves that contradict the minimum, mean, maximum, deviation or count of the same values.

    A share of values below or above some value bounds the mean: none of the others lies beyond the ends. Each printed
    figure may be off by a unit of its last digit. Percentiles are defined in several ways, which differ by two values
    at most. So each statement about a share is weakened by two values.
    """
    for claim in claims:
        alone = ((each, says) for each in claim.figures for says in _of_one(each))
        yield from of_parts(Doubt("distribution", INVALID, "", "use none of them"), claim, alone)
        few = ((each, says) for each in claim.figures for says in _too_few(each))
        yield from of_parts(
            Doubt("distribution", WARNING, "a percentile needs more values than there are", "use none of them"),
            claim,
            few,
        )


def _of_one(each: Figures) -> Iterator[str]:
    for points, name in ((each.percentiles, "percentile"), (each.curve, "point of the curve")):
        yield from _rises(points, name)
        yield from _within(each, points, name)
        yield from _mean_of_shares(each, points, name)
        yield from _deviation_of_shares(each, points, name)
    if each.bins is not None:
        yield from _fullest(each, each.bins)
        yield from _scale(each, each.bins)
    if each.counts is not None:
        yield from _against_counts(each, each.counts)


def _against_counts(each: Figures, counts: Counts) -> Iterator[str]:
    wrong = list(_total_of_counts(each, counts)) or [*_ends_of_counts(each, counts), *_mean_of_counts(each, counts)]
    yield from wrong
    yield from _fullest_of_counts(each, counts, each.bins or ResultBins())
    for points, name in ((each.percentiles, "percentile"), (each.curve, "point of the curve")):
        yield from _shares_of_counts(each, counts, points, name)


def _step(each: Figures, name: str) -> float:
    return max(each.step(name), ROUNDING_NS)


# Percentiles and points of a cumulative curve.


def _rises(points: Sequence[ShareAtMost], name: str) -> Iterator[str]:
    for low, high in pairwise(sorted(points, key=lambda point: (point.share, point.value_ns))):
        step = max(low.value_step_ns, high.value_step_ns)
        apart = high.share - low.share > low.share_step + high.share_step
        if apart and high.value_ns < low.value_ns - step:
            yield (
                f"its {name} {percent(high.share)} is {shown(high.value_ns)}, below that of {percent(low.share)}, "
                f"which is {shown(low.value_ns)}"
            )


def _too_few(each: Figures) -> Iterator[str]:
    """A percentile with less than one value above it is the maximum by another name."""
    for point in each.percentiles:
        if each.count and point.share < 1 and each.count * (1 - point.share + point.share_step) < 1 - 1e-9:
            fewest = math.ceil(1 / (1 - point.share) - 1e-6)
            yield f"its percentile {percent(point.share)} is of {each.count:,} values, and needs {fewest:,}"


def _within(each: Figures, points: Sequence[ShareAtMost], name: str) -> Iterator[str]:
    """A percentile lies between the ends. A curve may go on beyond them, with a share of 0 or 1 there."""
    for point in points:
        over, under = (max(_step(each, end), point.value_step_ns) for end in ("max", "min"))
        few = DEFINITIONS / each.count if each.count else 0.0
        low, high = point.share - point.share_step, point.share + point.share_step
        told = f"its {name} {percent(point.share)} is {shown(point.value_ns)}"
        exact = point.share_step == 0
        if each.max_ns is not None and not each.at_least:
            if point.value_ns > each.max_ns + over and (exact or high < 1):
                yield f"{told}, above the maximum {shown(each.max_ns)}"
            elif (exact and point.share >= 1 and point.value_ns < each.max_ns - over) or (
                not exact
                and low > 1 - (0 if not each.count else 1 / each.count)
                and point.value_ns < each.max_ns - over
            ):
                yield f"{told}, below the maximum {shown(each.max_ns)}"
        if each.min_ns is not None and point.value_ns < each.min_ns - under and (exact or low > few):
            yield f"{told}, below the minimum {shown(each.min_ns)}"


def _mean_of_shares(each: Figures, points: Sequence[ShareAtMost], name: str) -> Iterator[str]:
    """The smallest and the largest mean that all these shares and the ends together allow."""
    if not points or each.count is None or each.count <= 0 or each.mean_ns is None:
        return
    n, step = each.count, _step(each, "mean")
    rising = sorted(points, key=lambda point: (point.value_ns, point.share))
    if each.min_ns is not None:
        floor = each.min_ns - _step(each, "min")
        total, before = floor * n, floor
        for point in rising:
            edge = point.value_ns - point.value_step_ns
            above = max(n * (1 - point.share - point.share_step) - DEFINITIONS, 0)
            if edge > before:
                total += (edge - before) * above
                before = edge
        least = total / n
        if each.mean_ns + step < least:
            end = f"{shown(least)}, the least that its {name}s and its minimum allow"
            yield f"its mean {shown(each.mean_ns)} is below {end}"
    if each.max_ns is not None and not each.at_least:
        ceiling = each.max_ns + _step(each, "max")
        total, before = ceiling * n, ceiling
        for point in reversed(rising):
            edge = point.value_ns + point.value_step_ns
            below = max(n * (point.share - point.share_step) - DEFINITIONS, 0)
            if edge < before:
                total -= (before - edge) * below
                before = edge
        most = total / n
        if each.mean_ns - step > most:
            end = f"{shown(most)}, the most that its {name}s and its maximum allow"
            yield f"its mean {shown(each.mean_ns)} is above {end}"


def _deviation_of_shares(each: Figures, points: Sequence[ShareAtMost], name: str) -> Iterator[str]:
    """How far a share of the values can lie from the mean with this deviation (Cantelli 1929)."""
    if each.count is None or each.count < 2 or each.mean_ns is None or each.deviation_ns is None:
        return
    n = each.count
    for point in points:
        beyond = max(n * (1 - point.share - point.share_step) - DEFINITIONS, 0) / n
        within = max(n * (point.share - point.share_step) - DEFINITIONS, 0) / n
        room, deviation = point.value_step_ns + _step(each, "mean"), each.deviation_ns + _step(each, "deviation")
        above, below = point.value_ns - each.mean_ns - room, each.mean_ns - point.value_ns - room
        far = (beyond > 0 and above > deviation * math.sqrt((1 - beyond) / beyond)) or (
            within > 0 and below > deviation * math.sqrt((1 - within) / within)
        )
        if far:
            yield (
                f"its {name} {percent(point.share)} is {shown(point.value_ns)}, which is too far from the mean "
                f"{shown(each.mean_ns)} for a standard deviation of {shown(each.deviation_ns)}"
            )


# The fullest bin and the scale.


def _fullest(each: Figures, bins: ResultBins) -> Iterator[str]:
    low, high = bins.full_from_ns, bins.full_to_ns
    if low is None or high is None:
        return
    told = f"its fullest bin from {shown(low)} to {shown(high)}"
    if each.max_ns is not None and not each.at_least and low > each.max_ns + _step(each, "max"):
        yield f"{told} lies above its maximum {shown(each.max_ns)}"
        return
    if each.min_ns is not None and high < each.min_ns - _step(each, "min"):
        yield f"{told} lies below its minimum {shown(each.min_ns)}"
        return
    if bins.end_ns is not None and not bins.start_ns <= low < high <= bins.end_ns:
        yield f"{told} is not one of the bins, which begin at {shown(bins.start_ns)} and end at {shown(bins.end_ns)}"
    if bins.full_share is None:
        return
    share = max(bins.full_share - bins.share_step, 0)
    told += f" has {percent(bins.full_share)} of the values"
    yield from _fullest_and_mean(each, told, share, low, high)
    yield from _fullest_and_others(each, bins, told, share)


def _fullest_and_mean(each: Figures, told: str, share: float, low: float, high: float) -> Iterator[str]:
    step = _step(each, "mean")
    if each.mean_ns is None:
        return
    if each.min_ns is not None:
        least = share * max(low, each.min_ns) + (1 - share) * each.min_ns
        if each.mean_ns + step < least - _step(each, "min"):
            yield f"{told}, so its mean is {shown(least)} at least, and not {shown(each.mean_ns)}"
    if each.max_ns is not None and not each.at_least:
        most = share * min(high, each.max_ns) + (1 - share) * each.max_ns
        if each.mean_ns - step > most + _step(each, "max"):
            yield f"{told}, so its mean is {shown(most)} at most, and not {shown(each.mean_ns)}"
    if each.deviation_ns is not None and each.count is not None and each.count > 1:
        away = max(low - each.mean_ns, each.mean_ns - high, 0) - step
        if away > 0 and each.deviation_ns + _step(each, "deviation") < away * math.sqrt(share):
            yield f"{told}, too far from its mean for a standard deviation of {shown(each.deviation_ns)}"


def _fullest_and_others(each: Figures, bins: ResultBins, told: str, share: float) -> Iterator[str]:
    """The fullest bin has the average share of the bins at least, and leaves room for the ends outside of it."""
    low, high, step = bins.full_from_ns, bins.full_to_ns, max(_step(each, "min"), _step(each, "max"))
    if low is None or high is None or bins.full_share is None or high <= low or each.at_least:
        return
    outside = [end for end in (each.min_ns, each.max_ns) if end is not None and (end < low - step or end > high + step)]
    if each.count and outside and share * each.count > each.count - len(outside) + 0.5:
        yield f"{told}, and {shown(outside[0])} lies outside of it"
    most, between = bins.number, "there are"
    if each.min_ns is not None and each.max_ns is not None:
        most = math.floor((each.max_ns + step) / (high - low)) - math.floor((each.min_ns - step) / (high - low)) + 1
        between = "lie between its minimum and its maximum"
    if most and bins.share_step and not each.beyond and (bins.full_share + bins.share_step) * most < 1 - 1e-9:
        yield f"{told}, less than the average of the {most:,} bins that {between}"


def _scale(each: Figures, bins: ResultBins) -> Iterator[str]:
    """All values are in the bins unless the row says how many lie beyond them. Counts of the bins tell more."""
    if each.max_ns is None or bins.end_ns is None or each.counts is not None:
        return
    if each.beyond:
        yield from _mean_of_overflow(each, each.beyond, bins.end_ns)
        if not each.at_least and each.max_ns <= bins.end_ns - _step(each, "max"):
            yield (
                f"{each.beyond:,} values are said to lie beyond its bins, which end at {shown(bins.end_ns)}, and "
                f"its maximum is {shown(each.max_ns)}"
            )
    elif each.max_ns > bins.end_ns + _step(each, "max"):
        yield f"its bins end at {shown(bins.end_ns)}, and its maximum {shown(each.max_ns)} is in none of them"


def _mean_of_overflow(each: Figures, beyond: int, end_ns: float) -> Iterator[str]:
    """The values beyond the bins are at least as large as the end of the bins, and all others at least the minimum."""
    if each.count is None or each.count < beyond or each.mean_ns is None or each.min_ns is None:
        return
    least = (beyond * end_ns + (each.count - beyond) * (each.min_ns - _step(each, "min"))) / each.count
    if each.mean_ns + _step(each, "mean") < least:
        yield (
            f"{beyond:,} of {each.count:,} values are said to lie beyond its bins, which end at {shown(end_ns)}, so "
            f"its mean is {shown(least)} at least, and not {shown(each.mean_ns)}"
        )


# The counts of the bins.


def _total_of_counts(each: Figures, counts: Counts) -> Iterator[str]:
    held, count = counts.total + (each.beyond or 0), each.count
    if count is None or held == count or (each.beyond is None and 0 <= count - held <= max(MOST_LACKING, count // 100)):
        return
    yield f"its bins hold {held:,} values, its count says {count:,}"


def _fullest_of_counts(each: Figures, counts: Counts, bins: ResultBins) -> Iterator[str]:
    """The share of the fullest bin that the row tells against the counts."""
    held, largest = counts.total + (each.beyond or 0), int(counts.n.max(initial=0))
    if bins.full_share is not None and held and (bins.full_share - bins.share_step) * held > largest + 0.5:
        given = percent(largest / held)
        yield f"its fullest bin is said to hold {percent(bins.full_share)} of the values, but the counts give {given}"


def _shares_of_counts(each: Figures, counts: Counts, points: Sequence[ShareAtMost], name: str) -> Iterator[str]:
    """A percentile or a point of the curve against the counts of the bins."""
    held = counts.total + (each.beyond or 0)
    end_ns = math.inf if each.beyond_from_ns is None else each.beyond_from_ns
    for point in points:
        step = max(point.value_step_ns, ROUNDING_NS)
        surely = int(counts.n[counts.hi < point.value_ns - step].sum()) - DEFINITIONS
        reached = int(counts.n[counts.lo <= point.value_ns + step].sum()) + DEFINITIONS
        perhaps = held if point.value_ns + step > end_ns else reached
        if (point.share + point.share_step) * held < surely or (point.share - point.share_step) * held > perhaps:
            yield f"its {name} {percent(point.share)} at {shown(point.value_ns)} contradicts the counts of its bins"


def _ends_of_counts(each: Figures, counts: Counts) -> Iterator[str]:
    """The minimum lies in the first filled bin, the maximum in the last one or beyond the scale."""
    filled, beyond_ns = counts.n.size > 0, each.beyond_from_ns if each.beyond else None
    low, high = _step(each, "min"), _step(each, "max")
    if filled:  # Python's integers: values up to the largest of 64 bits overflow none of them
        first, last = ((int(counts.lo[at]), int(counts.hi[at])) for at in (0, -1))
    if each.min_ns is not None and filled and not first[0] - low <= each.min_ns <= first[1] + low:
        yield f"its minimum {shown(each.min_ns)} is not in its first filled bin, from {shown(first[0])} on"
    if each.min_ns is not None and not filled and beyond_ns is not None and each.min_ns < beyond_ns - low:
        yield f"all its values lie beyond {shown(beyond_ns)}, and its minimum is {shown(each.min_ns)}"
    if each.max_ns is None or each.at_least:
        return
    if beyond_ns is not None and each.max_ns < beyond_ns - high:
        yield f"{each.beyond:,} values lie beyond {shown(beyond_ns)}, and its maximum is {shown(each.max_ns)}"
    elif filled and (each.max_ns < last[0] - high or (each.beyond == 0 and each.max_ns > last[1] + high)):
        yield f"its maximum {shown(each.max_ns)} is not in its last filled bin, from {shown(last[0])} on"


def _mean_of_counts(each: Figures, counts: Counts) -> Iterator[str]:
    """The smallest and the largest mean that the bins allow. A value in no bin lies beyond them, or was lost.

    The largest of those beyond is the maximum.
    """
    others = max((each.count or 0) - counts.total, 0)
    whole = counts.total + others
    if each.mean_ns is None or each.at_least or not whole:
        return
    low_ns = None if each.min_ns is None else each.min_ns - _step(each, "min")
    from_ns = each.beyond_from_ns if each.beyond and each.beyond_from_ns is not None else low_ns
    weights, step = counts.n.astype(float), _step(each, "mean")
    if not others or from_ns is not None:
        least = (float(counts.lo @ weights) + others * (from_ns or 0)) / whole
        if each.beyond == others > 0 and each.beyond_from_ns is not None and each.max_ns is not None:
            least += max(each.max_ns - _step(each, "max") - each.beyond_from_ns, 0) / whole
        if each.mean_ns < least - step:
            yield f"its mean {shown(each.mean_ns)} is below {shown(least)}, the least that its bins allow"
    if not others or each.max_ns is not None:
        high_ns = 0 if each.max_ns is None else each.max_ns + _step(each, "max")
        most = (float(counts.hi @ weights) + others * high_ns) / whole
        if each.mean_ns > most + step:
            yield f"its mean {shown(each.mean_ns)} is above {shown(most)}, the most that its bins allow"
