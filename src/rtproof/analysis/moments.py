# SPDX-License-Identifier: Apache-2.0
"""Exact sums of 64-bit integers, without the overflow that squares and products would have.

A value is split into digits of 21 bits: products of two digits have 42 bits, and 2^20 of them add up within 63.
"""

from collections.abc import Iterable

import numpy as np

from rtproof.analysis.counts import Counts
from rtproof.analysis.model import Moments
from rtproof.record import Int64Array

DIGIT = 21
BLOCK = 1 << 20


def exact_dot(x: Int64Array, y: Int64Array) -> int:
    """Sum of x[i] * y[i], whatever the size of the integers."""
    if not x.size:
        return 0
    return sum(_dot(x[at : at + BLOCK], y[at : at + BLOCK]) for at in range(0, x.size, BLOCK))


def neighbour_products(values: Int64Array) -> int:
    """Sum of values[i] * values[i + 1]."""
    ends = range(0, values.size - 1, BLOCK)
    return sum(_neighbour_products(values[at : at + BLOCK + 1]) for at in ends)


def _neighbour_products(values: Int64Array) -> int:
    digits = _digits(values)
    return sum(int(np.dot(a[:-1], b[1:])) << (i + j) for i, a in digits for j, b in digits)


def _dot(x: Int64Array, y: Int64Array) -> int:
    return sum(int(np.dot(a, b)) << (i + j) for i, a in _digits(x) for j, b in _digits(y))


def _digits(x: Int64Array) -> list[tuple[int, Int64Array]]:
    """Digits and the power of two that each counts; the highest carries the sign."""
    digits, shift = [], 0
    while x.max() >= 1 << DIGIT or x.min() < -1 << DIGIT:
        digits.append((shift, x & ((1 << DIGIT) - 1)))
        x, shift = x >> DIGIT, shift + DIGIT
    return [*digits, (shift, x)]


def of_counts(counts: Counts) -> Moments:
    """Moments of exact counts; ValueError where a bin holds more than one value."""
    if not counts.exact:
        raise ValueError("bins of several values have no exact moments")
    if not counts.n.size:
        return Moments()
    value, n = counts.lo, counts.n
    digits = _digits(value)
    squares = sum(exact_dot(a * b, n) << (i + j) for i, a in digits for j, b in digits)
    return Moments(counts.total, int(value[0]), int(value[-1]), exact_dot(value, n), squares)


def of_values(values: Int64Array) -> Moments:
    """Moments of an array of values in any order."""
    if not values.size:
        return Moments()
    squares = exact_dot(values, values)
    ones = np.ones(values.size, np.int64)
    return Moments(values.size, int(values.min()), int(values.max()), exact_dot(values, ones), squares)


def merge(parts: Iterable[Moments]) -> Moments:
    """Moments of all parts together."""
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


def of_progression(first: int, step: int, terms: int) -> Moments:
    """Moments of first, first - step, first - 2 step, ... in closed form; step > 0."""
    if not terms:
        return Moments()
    n = terms - 1
    ones, squares = n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6
    total = terms * first - step * ones
    return Moments(
        terms, first - step * n, first, total, terms * first * first - 2 * first * step * ones + step * step * squares
    )
