# SPDX-License-Identifier: Apache-2.0
"""The log-linear scale of the summary's histogram (docs/record-format.md, SUMMARY), in both directions.

A double has the same scale in its own bits: its exponent and the nine highest bits of its fraction, read as one
number, count 512 equal steps in each power of two.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtproof.record import Int64Array

LINEAR = 1024
"""Values below this have a bin each."""
STEPS = 512
"""Bins in each power of two above."""
LAST = LINEAR + (63 - 10) * STEPS - 1
"""Bin of the largest 64-bit value; the bin of the smallest is -1 - LAST."""

_FRACTION_BITS = 52
_BIAS = (1023 + 10) * STEPS - LINEAR
_EXACT = 1 << 53
_DROP = ~np.int64((1 << 40) - 1)


def index(values: ArrayLike) -> Int64Array:
    """Bin of each value."""
    value = np.asarray(values, dtype=np.int64)
    negative = value >> 63
    size = value ^ negative
    # Only the ten highest bits count; without the lowest forty, no large value is rounded up to the next power of two.
    exact = np.where(size < _EXACT, size, size & _DROP).astype(np.float64)
    scaled = (exact.view(np.int64) >> (_FRACTION_BITS - 9)) - _BIAS
    place: Int64Array = np.where(size < LINEAR, size, scaled)
    return place ^ negative


def edges(bins: ArrayLike) -> tuple[Int64Array, Int64Array]:
    """Smallest and largest value of each bin, both inclusive; ValueError outside the scale."""
    bin_index = np.asarray(bins, dtype=np.int64)
    negative = bin_index >> 63
    place = bin_index ^ negative
    if place.size and int(place.max()) > LAST:
        raise ValueError(f"bin {int(place.max())} is outside the scale, which ends at {LAST}")
    shift, steps = _steps(place)
    low = steps << shift
    high = low + ((np.int64(1) << shift) - 1)
    return np.where(negative, ~high, low), np.where(negative, ~low, high)


def _steps(place: Int64Array) -> tuple[Int64Array, Int64Array]:
    """How far the first value of a bin is shifted, and what is shifted."""
    above = np.maximum(place - LINEAR, 0)
    scaled = place >= LINEAR
    shift: NDArray[np.int64] = np.where(scaled, above // STEPS + 1, 0)
    return shift, np.where(scaled, STEPS + above % STEPS, place)
