# SPDX-License-Identifier: Apache-2.0
"""Quantiles by nearest rank with intervals from order statistics, and the spread around the constant offset."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from rtproof.record.contents import View
from rtproof.statistics import binomial_probability
from rtproof.summary import moments
from rtproof.summary.counts import Counts
from rtproof.summary.dependence import dependence_factor
from rtproof.summary.summary_model import Dependence, Moments, Quantile, Summary


def moments_and_counts_of_view(summary: Summary, view: View) -> tuple[Counts, Moments]:
    """The counts and the moments of one view: of the activations that ran, or of all due times (CHARGED)."""
    if view is View.OBSERVED:
        return summary.observed_counts, summary.observed
    return summary.schedule_counts, moments.merge_moments((summary.observed, summary.charged))


USUAL_SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
CONFIDENCE = 0.95


def quantiles(
    summary: Summary,
    view: View = View.OBSERVED,
    shares: tuple[float, ...] = USUAL_SHARES,
    confidence: float = CONFIDENCE,
) -> tuple[Quantile, ...]:
    """Quantiles of the activations that ran, or (view CHARGED) of the schedule, which adds the missed activations."""
    counts, ends = moments_and_counts_of_view(summary, view)
    return tuple(_dependent(summary, view, quantile(counts, p, confidence, ends)) for p in shares)


def _dependent(summary: Summary, view: View, found: Quantile) -> Quantile:
    """The quantile with the interval of as many independent values as the run is worth, if that is known."""
    counts, ends = moments_and_counts_of_view(summary, view)
    if summary.blocks is None or not found.n:
        return found
    fewer = dependence_factor(summary.blocks, counts, int(counts.hi[-1]) if found.value is None else found.value, view)
    if fewer is None:
        return replace(found, low=None, high=None, dependence=Dependence.UNCLEAR)
    worth = max(int(found.n / fewer), 1)
    if worth < found.n:
        low, high = interval_ranks(worth, found.p, found.confidence)
        lower = None if low is None else max(low * found.n // worth, 1)
        upper = None if high is None else min(-(-high * found.n // worth), found.n)
        low, high = _interval(counts, lower, upper, ends)
        found = replace(found, low=low, high=high)
    return replace(found, effective=worth, dependence=Dependence.ESTIMATED)


def _interval(counts: Counts, low: int | None, high: int | None, ends: Moments | None) -> tuple[int | None, int | None]:
    return (
        None if low is None else counts.value_at_rank(low)[0],
        None if high is None else _clip(counts.value_at_rank(high)[1], ends),
    )


def quantile(counts: Counts, p: float, confidence: float = CONFIDENCE, ends: Moments | None = None) -> Quantile:
    """The value of rank ceil(n p), and an interval that holds the quantile with at least this confidence.

    A bin counts with its upper end, which a share p certainly does not exceed. ``ends`` limits it to what was measured.
    The value is None if fewer than one value is expected above it (n (1 - p) < 1). An end is None if its rank is not in
    1 to n. ValueError unless 0 < p < 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not at {p}")
    n = counts.total
    share = Fraction(repr(p))
    value, resolution = None, 0
    if n * (1 - share) >= 1:
        lo, hi = counts.value_at_rank(math.ceil(n * share))
        value, resolution = _clip(hi, ends), hi - lo
    low, high = interval_ranks(n, p, confidence)
    return Quantile(p, n, value, *_interval(counts, low, high, ends), confidence, resolution)


def _clip(value: int, ends: Moments | None) -> int:
    return min(value, ends.max) if ends and ends.count else value


MOST_SUMMED = 10**11
"""Values of a quantile up to which probabilities are summed: 1.5 million of them at this number."""
ROUNDING = 2**-50
"""More than the relative error of a product of floats."""


@lru_cache(maxsize=1024)
def interval_ranks(n: int, p: float, confidence: float) -> tuple[int | None, int | None]:
    """The ranks l, u with P(X_(l) <= quantile <= X_(u)) >= confidence and equal tails; None outside 1 to n."""
    tail = (1 - confidence) / 2
    low, high = _lower_rank(n, p, tail), n + 1 - _lower_rank(n, 1 - p, tail)
    return (low if low >= 1 else None), (high if high <= n else None)


def _lower_rank(n: int, p: float, tail: float) -> int:
    """The largest l with P(Bin(n, p) <= l - 1) <= tail.

    The probabilities are summed from where they begin to matter. The tail that lies below the mean by t is less than
    exp(-t^2 / (2 (variance + t / 3))) (Bernstein), here exp(-45). Beyond ``MOST_SUMMED`` values the sum would take too
    long. There the same bound gives a rank that is a little smaller, so the interval holds with more confidence.
    """
    mean, variance = n * p, n * p * (1 - p)
    if n > MOST_SUMMED:
        surprise = -math.log(tail)
        beyond = surprise / 3 + math.sqrt(surprise**2 / 9 + 2 * surprise * variance)
        return max(0, math.floor(mean - beyond - mean * ROUNDING))
    first = max(0, math.floor(mean - 15 - math.sqrt(225 + 90 * variance)))
    k = np.arange(first, max(math.floor(mean), first) + 1, dtype=np.float64)
    ratio = np.concatenate(([1.0], (n - k[:-1]) / (k[:-1] + 1) * (p / (1 - p))))
    at_most = np.cumsum(np.cumprod(ratio)) * binomial_probability(first, n, p)
    return first + int(np.searchsorted(at_most, tail, side="right"))


@dataclass(frozen=True)
class OffsetAndSpread:
    """The offset and the spread of a series, in its unit. A program can compensate a constant lateness, but no spread.

    offset: the median. jitter: 99th minus 1st percentile. peak_to_peak: largest minus smallest value. deviation: the
    standard deviation, with n - 1.
    drift_ppm: off the grid, where lateness adds up: how much longer the mean cycle is than the period; None: on the
    grid.
    """

    offset: int | None
    jitter: int | None
    peak_to_peak: int | None
    deviation: float | None
    drift_ppm: float | None


def offset_and_spread(summary: Summary) -> OffsetAndSpread:
    """The offset and the spread of the activations that ran."""
    median, low, high = (quantile(summary.observed_counts, p, ends=summary.observed).value for p in (0.5, 0.01, 0.99))
    observed, period_ns = summary.observed, summary.series.period_ns
    one_free_thread = not summary.series.on_grid and not summary.series.external and len(summary.threads) == 1
    cycles_ns = (summary.expected - len(summary.threads)) * period_ns
    drifts = one_free_thread and cycles_ns > 0
    return OffsetAndSpread(
        offset=median,
        jitter=None if low is None or high is None else high - low,
        peak_to_peak=observed.max - observed.min if observed.count else None,
        deviation=observed.deviation,
        drift_ppm=((summary.span_ns - period_ns) / cycles_ns - 1) * 1e6 if drifts else None,
    )
