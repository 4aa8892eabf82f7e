# SPDX-License-Identifier: Apache-2.0
"""The figures of an article in the form that a profile's tables and curves need."""

from collections.abc import Iterable

import numpy as np

from rtproof.articles import ArticleFigure, ArticleNumbers, ArticleRow
from rtproof.profiles import Bins
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.pages.campaign_cells import ARTICLE_PREFIX, numbers_of
from rtproof.summary.counts import NO_COUNTS, Counts, DominantBin, dominant_bin, merge_counts

FEWEST_POINTS = 2
"""A maximum and one point besides are no curve."""
RANK_ROUNDING = 1e-6
"""A share such as 0.99999 is no exact number of the computer, so the rank that it gives may be a little too high."""


def published_curves(bins: Bins, rows: Iterable[ArticleRow]) -> list[NamedCounts]:
    """Return the article's curves of the latency that these bins are of."""
    found = [
        NamedCounts(f"{ARTICLE_PREFIX}{row.label}", counts, beyond=beyond)
        for row in rows
        if (own := numbers_of(row, bins.name))
        for counts, beyond in [_published_counts(own)]
    ]
    return [each for each in found if each.counts.n.size]


def published_threshold(numbers: ArticleNumbers, share: float) -> ArticleFigure | None:
    """Return the percentile of this share that the article printed, or that its bins show; None if it tells none."""
    printed = next((at for own, at in numbers.percentiles if own.value == share), None)
    counts, beyond = _published_counts(numbers) if numbers.bin_counts else (NO_COUNTS, 0)
    rank = int(np.ceil(share * (counts.total + beyond) - RANK_ROUNDING))
    if printed or not 0 < rank <= counts.total:
        return printed
    return ArticleFigure("", counts.value_at_rank(rank)[1] + 1, "ns", round(numbers.value("bin_width") or 1))


def published_bin(numbers: ArticleNumbers) -> DominantBin | None:
    """Return the fullest bin, as printed (then n is 0) or as the bins show it; None if the article tells neither."""
    start, end, width = (numbers.value(key) for key in ("bin_from", "bin_to", "bin_width"))
    if start is not None and end is not None:
        return DominantBin(round(start), round(end), 0, 0)
    return dominant_bin(_published_counts(numbers)[0], round(width)) if numbers.bin_counts and width else None


def _published_counts(numbers: ArticleNumbers) -> tuple[Counts, int]:
    """Return the values in the article's bins, or between the points of its curve, its percentiles and its ends.

    The second number is that of values of which only a lower bound is known. Without a number of values, or with
    fewer than two points besides the maximum, there is no curve to draw.
    """
    most = numbers.figures.get("max")
    last_ns = None if most is None or most.at_least else round(most.value)
    return (_of_bins if numbers.bin_counts else _of_points)(numbers, last_ns)


def _of_bins(numbers: ArticleNumbers, last_ns: int | None) -> tuple[Counts, int]:
    start, width = (numbers.value(key) or 0 for key in ("bin_start", "bin_width"))
    n = np.array(numbers.bin_counts, np.int64)
    edges = np.rint(start + width * np.arange(n.size + 1)).astype(np.int64)
    found = Counts(edges[:-1][n > 0], edges[1:][n > 0] - 1, n[n > 0])
    beyond, end_ns = round(numbers.value("overflow") or 0), int(edges[-1])
    if not beyond or last_ns is None or last_ns < end_ns:
        return found, beyond
    return merge_counts([found, Counts(*(np.array([each], np.int64) for each in (end_ns, last_ns, beyond)))]), 0


def _of_points(numbers: ArticleNumbers, last_ns: int | None) -> tuple[Counts, int]:
    total = round(numbers.value("count") or 0)
    told = sorted((share.value, round(at.value)) for share, at in (*numbers.percentiles, *numbers.curve))
    points = {at: share for share, at in told}
    if not total or len(points) < FEWEST_POINTS:
        return NO_COUNTS, 0
    points |= {last_ns: 1.0} if last_ns is not None else {}
    at = np.array(sorted(points), np.int64)
    ranks = np.maximum.accumulate(np.rint([points[each] * total for each in at.tolist()]).astype(np.int64))
    n = np.diff(ranks, prepend=0)
    low = np.concatenate(([min(round(numbers.value("min") or 0), int(at[0]))], at[:-1] + 1))
    return Counts(low[n > 0], at[n > 0], n[n > 0]), total - int(ranks[-1])
