# SPDX-License-Identifier: Apache-2.0
"""A rule that holds the shape of the distribution in a row against its ends, mean and count.

Percentiles, a curve, a fullest bin, counts of bins and an overflow all say the same kind of thing: at least this share
of the values is at or above a value, or at or below it. Such statements bound the mean, because none of the others lies
beyond the ends. Two of them must not ask for more than all values.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import percent
from rtproof.judge.doubts.result_row import Figures, ResultBins, ResultClaim, shown
from rtproof.summary.counts import Counts

Floats = NDArray[np.float64]
DEFINITIONS = 2
"""By so many values do the definitions of a percentile differ."""
ROUNDING_NS = 0.5
"""A whole number of ns is off by this much at most: a minimum of 15 us is not in the bin that ends at 14.999 us."""
MOST_LACKING = 20_000
"""A tool that writes its file while its threads still run may count this many values that its bins lack: those of a
second at 50 us."""
NEARLY_NONE = 1e-9
"""The share of one of an unknown number of values."""
SUM_ERROR = 1e-12
"""A mean near the ends of 64 bits and its bounds, as sums of doubles, differ by less than this share of them."""


def distribution(_claim: ResultClaim, each: Figures) -> Iterator[str]:
    """Bins, percentiles and curves that contradict the minimum, mean, maximum or count of the same values.

    Each printed figure may be off by a unit of its last digit. Percentiles are defined in several ways, which differ by
    two values at most. So each statement about a share is weakened by two values.
    """
    wrong = list(_total_of_counts(each, each.counts)) if each.counts is not None else []
    yield from wrong
    above, below = _statements(each, None if wrong else each.counts)
    beyond = [*_beyond_ends(each, above, below), *_both(each, above, below)]
    yield from beyond or _mean(each, above, below)
    yield from _of_too_few(each)
    yield from _less_than_average(each, each.bins or ResultBins())


def _of_too_few(each: Figures) -> Iterator[str]:
    """A percentile with less than one value above it is the maximum by another name."""
    for point in each.percentiles:
        if each.count and point.share < 1 and each.count * (1 - point.share + point.share_step) < 1 - NEARLY_NONE:
            fewest = math.ceil(1 / (1 - point.share) - 1e-6)
            yield f"its percentile {percent(point.share)} is of {each.count:,} values, and needs {fewest:,}"


def _less_than_average(each: Figures, bins: ResultBins) -> Iterator[str]:
    """The fullest bin has the average share of the bins at least."""
    low, high, step = bins.full_from_ns, bins.full_to_ns, max(_step(each, "min"), _step(each, "max"))
    if low is None or high is None or bins.full_share is None or high <= low or each.at_least or each.beyond:
        return
    most = bins.number
    if each.min_ns is not None and each.max_ns is not None:
        most = math.floor((each.max_ns + step) / (high - low)) - math.floor((each.min_ns - step) / (high - low)) + 1
    if most and bins.share_step and (bins.full_share + bins.share_step) * most < 1 - NEARLY_NONE:
        yield f"its fullest bin has {percent(bins.full_share)} of the values, less than the average of {most:,} bins"


def _total_of_counts(each: Figures, counts: Counts) -> Iterator[str]:
    held, count = counts.total + (each.beyond or 0), each.count
    if count is None or held == count or (each.beyond is None and 0 <= count - held <= max(MOST_LACKING, count // 100)):
        return
    yield f"its bins hold {held:,} values, its count says {count:,}"


def _step(each: Figures, name: str) -> float:
    return max(each.step(name), ROUNDING_NS)


@dataclass(frozen=True)
class ShareStatements:
    """At least ``shares[i]`` of all values lie on one side of ``edges_ns[i]``, the edge included; ascending edges.

    names: what says so, of the first statements; all others are of the bins.
    """

    edges_ns: Floats
    shares: Floats
    names: Sequence[str]

    def name(self, at: int) -> str:
        return self.names[at] if at < len(self.names) else f"its bins have values at {shown(self.edges_ns[at])}"


NOTHING_SAID = ShareStatements(np.zeros(0), np.zeros(0), ())


Statement = tuple[float, float, str]
"""An edge in ns, the share of all values on one side of it, and what says so."""


def _statements(each: Figures, counts: Counts | None) -> tuple[ShareStatements, ShareStatements]:
    """The statements on values at or above an edge, and those on values at or below one."""
    above: list[Statement] = []
    below: list[Statement] = []
    _of_points(each, above, below)
    _of_counts_beside_the_bins(each, above, below)
    _of_fullest_bin(each, above, below)
    bins, n = each.bins or ResultBins(), each.count or 0
    if counts is None and bins.end_ns is not None and not each.beyond:
        below.append((bins.end_ns, 1.0, f"its bins end at {shown(bins.end_ns)}"))
    if not above and not below and counts is None:
        return NOTHING_SAID, NOTHING_SAID
    one = 1 / n if n else NEARLY_NONE
    if each.max_ns is not None:
        above.append((each.max_ns - _step(each, "max"), one, f"its maximum is {shown(each.max_ns)}"))
    if each.min_ns is not None:
        below.append((each.min_ns + _step(each, "min"), one, f"its minimum is {shown(each.min_ns)}"))
    return _with_counts(each, counts, above, low=True), _with_counts(each, counts, below, low=False)


def _of_points(each: Figures, above: list[Statement], below: list[Statement]) -> None:
    """Add what percentiles and points of a curve say. A percentile lies between the ends, whatever its definition."""
    one, few = (1 / each.count, DEFINITIONS / each.count) if each.count else (NEARLY_NONE, 0.0)
    for points, name in ((each.percentiles, "percentile"), (each.curve, "point of the curve")):
        for point in points:
            told = f"its {name} {percent(point.share)} is {shown(point.value_ns)}"
            low, high, exact = point.share - point.share_step, point.share + point.share_step, point.share_step == 0
            step = max(point.value_step_ns, ROUNDING_NS)
            above.append((point.value_ns - step, max(1 - high - few, one if exact or high < 1 else 0.0), told))
            whole = low >= 1 if exact else each.count and low > 1 - one
            some = max(low - few, one if exact or low > few else 0.0)
            below.append((point.value_ns + step, 1.0 if whole else some, told))


def _of_counts_beside_the_bins(each: Figures, above: list[Statement], below: list[Statement]) -> None:
    """Add what the numbers outside of the band and beyond the scale say."""
    n = each.count or 0
    sides = (
        (each.below, each.low_ns, below, above, -ROUNDING_NS, "shorter"),
        (each.above, each.high_ns, above, below, ROUNDING_NS, "longer"),
    )
    for count, edge_ns, outside, inside, rounding_ns, than in sides:
        if count is not None and edge_ns is not None:
            told = f"{count:,} are said to be {than} than {shown(edge_ns)}"
            outside.append((edge_ns, count / n if n else NEARLY_NONE * count, told))
            # A value just at the edge is inside, and a histogram may count it beyond its scale.
            inside.append((edge_ns + rounding_ns, 1 - count / n if n else float(not count), told))
    if each.beyond and each.beyond_from_ns is not None:
        told = f"{each.beyond:,} values lie beyond {shown(each.beyond_from_ns)}"
        above.append((each.beyond_from_ns + ROUNDING_NS, each.beyond / max(n, each.beyond), told))


def _of_fullest_bin(each: Figures, above: list[Statement], below: list[Statement]) -> None:
    """Add what the fullest bin says. An end that lies outside of it is one value more on that side."""
    bins, one = each.bins or ResultBins(), 1 / each.count if each.count else NEARLY_NONE
    if bins.full_from_ns is None or bins.full_to_ns is None:
        return
    has = "" if bins.full_share is None else f" has {percent(bins.full_share)} of the values"
    told = f"its fullest bin from {shown(bins.full_from_ns)} to {shown(bins.full_to_ns)}{has}"
    share = max((bins.full_share or 0) - bins.share_step, one)
    under = each.min_ns is not None and each.min_ns + _step(each, "min") < bins.full_from_ns
    over = each.max_ns is not None and each.max_ns - _step(each, "max") > bins.full_to_ns
    above.append((bins.full_from_ns, share + one * over, told))
    below.append((bins.full_to_ns, share + one * under, told))


def _with_counts(each: Figures, counts: Counts | None, some: Sequence[Statement], *, low: bool) -> ShareStatements:
    """The statements with those of the bins. low: each bin has its values at or above its lower end."""
    edges, shares = ([statement[at] for statement in some if statement[1] > 0] for at in (0, 1))
    names = [name for _, share, name in some if share > 0]
    if counts is None or not counts.n.size:
        return ShareStatements(np.array(edges, float), np.array(shares, float), names)
    number = counts.n.astype(float)
    whole = max(each.count or 0, counts.total + (each.beyond or 0))
    more = each.beyond or 0 if each.beyond_from_ns is not None else 0
    held = np.cumsum(number[::-1])[::-1] + more if low else np.cumsum(number)
    # Where nobody counts what lies beyond the scale, a bin shows no more than that it has a value.
    of_bins = held / whole if each.beyond is not None else np.full(number.size, NEARLY_NONE)
    of_edges = (counts.lo if low else counts.hi).astype(float)
    return ShareStatements(np.concatenate((edges, of_edges)), np.concatenate((shares, of_bins)), names)


def _beyond_ends(each: Figures, above: ShareStatements, below: ShareStatements) -> Iterator[str]:
    """Values above the maximum or below the minimum; all of them on one side of an end."""
    ends = (
        (above, below, None if each.at_least else each.max_ns, _step(each, "max"), 1, "above its maximum"),
        (below, above, each.min_ns, _step(each, "min"), -1, "below its minimum"),
    )
    for outward, inward, end, step, sign, where in ends:
        if end is None:
            continue
        if outward.edges_ns.size:
            far = int((sign * outward.edges_ns).argmax())
            if sign * (outward.edges_ns[far] - end) > step:
                yield f"{outward.name(far)}, {where} {shown(end)}"
        for at in (inward.shares >= 1).nonzero()[0].tolist():
            if sign * (end - inward.edges_ns[at]) > step:
                yield f"{inward.name(at)}, and its {where.split()[-1]} {shown(end)} lies beyond"
                break


def _both(each: Figures, above: ShareStatements, below: ShareStatements) -> Iterator[str]:
    """Two statements that together ask for more than all values."""
    if not above.edges_ns.size or not below.edges_ns.size:
        return
    order = below.edges_ns.argsort(kind="stable")
    most = np.maximum.accumulate(below.shares[order])
    behind = np.searchsorted(below.edges_ns[order], above.edges_ns, "left") - 1
    sums = above.shares + np.where(behind >= 0, most[behind], 0)
    at = int(sums.argmax())
    if sums[at] > 1 + (0.5 / each.count if each.count else NEARLY_NONE):
        other = int(order[int((most == most[behind[at]]).argmax())])
        yield f"{above.name(at)}, and {below.name(other)}: both cannot be"


def _mean(each: Figures, above: ShareStatements, below: ShareStatements) -> Iterator[str]:
    """A mean that is smaller or larger than all statements and the ends together allow."""
    if each.mean_ns is None or each.at_least or not each.count or not above.edges_ns.size + below.edges_ns.size:
        return
    step = max(_step(each, "mean"), abs(each.mean_ns) * SUM_ERROR)
    turned = ShareStatements(-below.edges_ns, below.shares, below.names)
    least = _least_mean(above, None if each.min_ns is None else each.min_ns - _step(each, "min"))
    most = _least_mean(turned, None if each.max_ns is None else -each.max_ns - _step(each, "max"))
    if least is not None and each.mean_ns < least - step:
        yield f"its mean {shown(each.mean_ns)} is below {shown(least)}, the least that its other figures allow"
    if most is not None and each.mean_ns > -most + step:
        yield f"its mean {shown(each.mean_ns)} is above {shown(-most)}, the most that its other figures allow"


def _least_mean(above: ShareStatements, floor_ns: float | None) -> float | None:
    """The least mean of values of which these shares lie above edges, and none below the floor; None: no bound."""
    all_above = above.edges_ns[above.shares >= 1]
    if floor_ns is None and not all_above.size:
        return None
    floor = float(all_above.max()) if floor_ns is None else floor_ns
    order = above.edges_ns.argsort(kind="stable")
    rising = np.maximum(above.edges_ns[order], floor)
    at_least = np.maximum.accumulate(above.shares[order][::-1])[::-1]
    return floor + float(np.diff(rising, prepend=floor) @ at_least)
