# SPDX-License-Identifier: Apache-2.0
"""Exact sums of values, squares and products of neighbours, which give mean, deviation and correlation."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rtproof.record.activations import digits_of, exact_dot
from rtproof.record.contents import Int64Array, Series
from rtproof.summary.counts import Counts
from rtproof.summary.per_second import Stretch
from rtproof.summary.summary_model import Lag, Moments


def moments_of_counts(counts: Counts) -> Moments:
    """The moments of exact counts; ValueError if a bin holds more than one value."""
    if not counts.exact:
        raise ValueError("bins of several values have no exact moments")
    if not counts.n.size:
        return Moments()
    value, n = counts.lo, counts.n
    digits = digits_of(value)
    squares = sum(exact_dot(a * b, n) << (i + j) for i, a in digits for j, b in digits)
    return Moments(counts.total, int(value[0]), int(value[-1]), exact_dot(value, n), squares)


def moments_of_values(values: Int64Array) -> Moments:
    """The moments of an array of values in any order."""
    if not values.size:
        return Moments()
    squares = exact_dot(values, values)
    ones = np.ones(values.size, np.int64)
    return Moments(values.size, int(values.min()), int(values.max()), exact_dot(values, ones), squares)


def merge_moments(parts: Iterable[Moments]) -> Moments:
    """The moments of all parts together."""
    some = [part for part in parts if part.count]
    if not some:
        return Moments()
    return Moments(
        sum(part.count for part in some),
        min(part.min for part in some),
        max(part.max for part in some),
        sum(part.sum for part in some),
        sum(part.sum_squares for part in some),
    )


def moments_of_progression(first: int, step: int, terms: int) -> Moments:
    """The moments of first, first - step, first - 2 step, ... with ``terms`` terms, in closed form; step > 0."""
    if not terms:
        return Moments()
    n = terms - 1
    ones, squares = n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6
    total = terms * first - step * ones
    return Moments(
        terms, first - step * n, first, total, terms * first * first - 2 * first * step * ones + step * step * squares
    )


# The next functions sum over neighbouring activations, which shows catch-up (docs/record-format.md, SUMMARY): a short
# cycle follows a long one if a program runs late activations at once.


Neighbours = tuple[Int64Array, Int64Array, NDArray[np.bool_]]
"""Of consecutive activations: latency, time of the wake-up, and whether each is parted from the one before."""
NO_NEIGHBOURS: Neighbours = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)


def lag_of_stretch(series: Series, stretch: Stretch, before: Neighbours = NO_NEIGHBOURS) -> tuple[Lag, Neighbours]:
    """The pairs in a stretch and those that lead into it, and its last activations, with which the next ones begin."""
    some, parted = stretch
    value, cut = np.concatenate((before[0], some.value)), np.concatenate((before[2], parted))
    wake = np.concatenate((before[1], some.due_ns + some.value))
    joined = ~cut[1:]
    pair = joined & (np.arange(1, value.size) >= before[0].size)
    # After a sleep, the next activation is due a period after the one before ran.
    cycle = np.diff(wake) if series.on_grid or series.external else series.period_ns + value[1:]
    long, short = 5 * cycle > 6 * series.period_ns, 5 * cycle < 4 * series.period_ns
    caught_up = int(np.count_nonzero(long[:-1] & short[1:] & joined[:-1] & pair[1:]))
    products = exact_dot(value[:-1][pair], value[1:][pair])
    return Lag(int(np.count_nonzero(pair)), products, caught_up), (value[-2:], wake[-2:], cut[-2:])


def merge_lags(parts: Iterable[Lag]) -> Lag:
    """The sum of all parts."""
    some = list(parts)
    return Lag(
        sum(part.pairs for part in some),
        sum(part.sum_products for part in some),
        sum(part.catch_up_pairs for part in some),
    )


def lag_correlation(lag: Lag, moments: Moments) -> float | None:
    """The correlation of neighbouring latencies, about -1 to 1; None if they are too few or all the same."""
    if not lag.pairs or not moments.deviation or moments.mean is None:
        return None
    return (lag.sum_products / lag.pairs - moments.mean**2) / moments.deviation**2
