# SPDX-License-Identifier: Apache-2.0
"""The histogram of a SUMMARY chunk: its log-linear bins, and its bytes.

The bins are computed from the bits of a double. Its exponent and the nine highest bits of its fraction, read as one
number, make the number of the bin: 512 equal bins in each power of two.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtproof.record.encoding import (
    CONTINUED,
    Int64Array,
    MalformedError,
    leb128_decode,
    leb128_encode,
    unzigzags,
    zigzags,
)

LINEAR_BINS = 1024
"""Each value below this has a bin of its own."""
BINS_PER_OCTAVE = 512
"""Bins in each power of two from there on."""
LAST_BIN = LINEAR_BINS + (63 - 10) * BINS_PER_OCTAVE - 1
"""Bin of the largest 64-bit value. The bin of the smallest is -1 - LAST_BIN."""

_FRACTION_BITS = 52
_BIAS = (1023 + 10) * BINS_PER_OCTAVE - LINEAR_BINS
_EXACT = 1 << 53
_DROP = ~np.int64((1 << 40) - 1)


def bin_of(values: ArrayLike) -> Int64Array:
    """The bin of each value, as an array of the same shape."""
    value = np.asarray(values, dtype=np.int64)
    negative = value >> 63
    size = value ^ negative
    # Only the ten highest bits decide the bin. The lowest forty bits of a large value are cleared, because the
    # conversion to a double could otherwise round the value up to the next power of two.
    exact = np.where(size < _EXACT, size, size & _DROP).astype(np.float64)
    scaled = (exact.view(np.int64) >> (_FRACTION_BITS - 9)) - _BIAS
    place: Int64Array = np.where(size < LINEAR_BINS, size, scaled)
    return place ^ negative


def bin_edges(bins: ArrayLike) -> tuple[Int64Array, Int64Array]:
    """The smallest and the largest value of each bin, as two arrays. ValueError if a bin is outside of the scale."""
    bin_index = np.asarray(bins, dtype=np.int64)
    negative = bin_index >> 63
    place = bin_index ^ negative
    if place.size and int(place.max()) > LAST_BIN:
        raise ValueError(f"bin {int(place.max())} is outside the scale, which ends at {LAST_BIN}")
    shift, steps = _steps(place)
    low = steps << shift
    high = low + ((np.int64(1) << shift) - 1)
    return np.where(negative, ~high, low), np.where(negative, ~low, high)


def _steps(place: Int64Array) -> tuple[Int64Array, Int64Array]:
    """For each bin two arrays, a shift and a step: the smallest value of the bin is step << shift."""
    above = np.maximum(place - LINEAR_BINS, 0)
    scaled = place >= LINEAR_BINS
    shift: NDArray[np.int64] = np.where(scaled, above // BINS_PER_OCTAVE + 1, 0)
    return shift, np.where(scaled, BINS_PER_OCTAVE + above % BINS_PER_OCTAVE, place)


PLAIN = 1 << 31
"""A sum of a few thousand numbers up to this one fits into 64 bits."""


def histogram_bytes(places: Int64Array, counts: Int64Array) -> bytes:
    """The histogram's bytes in a SUMMARY chunk. ``places``: the bins that are not empty, increasing."""
    numbers = np.zeros((places.size, 2), dtype=np.uint64)
    if places.size:
        numbers[:1, 0] = zigzags(places[:1])
        numbers[1:, 0] = np.diff(places)
        numbers[:, 1] = counts
    return leb128_encode(numbers.reshape(-1))


@lru_cache(maxsize=4)
def histogram_arrays(stored: bytes, total: int) -> tuple[Int64Array, Int64Array]:
    """The bins and counts of a stored histogram, as two read-only arrays. MalformedError if they are impossible."""
    ends = int(np.count_nonzero(np.frombuffer(stored, dtype=np.uint8) < CONTINUED))
    if ends % 2:
        raise MalformedError("a histogram has a bin without a count")
    numbers = leb128_decode(stored, ends).reshape(-1, 2)
    if numbers.size and int(numbers.max()) >= 1 << 62:
        raise MalformedError("a histogram has impossible numbers")
    places, counts = numbers.astype(np.int64).T
    if places.size:
        places[0] = unzigzags(numbers[:1, 0])[0]
        if (places[1:] < 1).any() or (places[1:] > 2 * LAST_BIN + 1).any():
            raise MalformedError("the bins of a histogram do not increase")
        places = np.cumsum(places)
    outside = places.size and (places[0] < -1 - LAST_BIN or places[-1] > LAST_BIN)
    if outside or (counts < 1).any() or sum(counts.tolist()) != total:
        raise MalformedError(f"the bins of a histogram do not add up to {total}")
    places.flags.writeable = counts.flags.writeable = False
    return places, counts


def unpack_histograms(packed: Sequence[tuple[bytes, int]]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Three arrays for many slices: the number of bins of each slice, and the bins and counts of all slices in order.

    packed: the bytes of each histogram, and how many values it has. A hundred slices together unpack several times as
    fast as one by one, and still fit the cache. RecordError if a histogram is wrong.
    """
    together = _unpack_at_once(packed)
    if together is not None:
        return together
    none = np.empty(0, dtype=np.int64)
    each = [histogram_arrays(stored, count) for stored, count in packed]
    places, counts = [one[0] for one in each], [one[1] for one in each]
    sizes = np.array([one.size for one in places], dtype=np.int64)
    return sizes, np.concatenate([none, *places]), np.concatenate([none, *counts])


def _unpack_at_once(packed: Sequence[tuple[bytes, int]]) -> tuple[Int64Array, Int64Array, Int64Array] | None:
    """The sizes, bins and counts. None if a histogram is wrong or has huge numbers: then each is unpacked alone."""
    stored = [one for one, _ in packed]
    raw = b"".join(stored)
    more = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) >= CONTINUED)
    ends = np.cumsum([len(one) for one in stored], dtype=np.int64)
    pairs = (ends - np.searchsorted(more, ends)) // 2
    starts = np.concatenate(([0], pairs[:-1])).astype(np.int64)
    if not pairs.size or (pairs == starts).any():
        return None
    numbers = leb128_decode(raw, 2 * int(pairs[-1]))
    if int(numbers.max()) > PLAIN:
        return None
    steps, counts = np.ascontiguousarray(numbers.reshape(-1, 2).T.astype(np.int64))
    jumps = steps.copy()
    jumps[starts] = unzigzags(steps[starts].view(np.uint64))
    jumps[starts[1:]] -= np.add.reduceat(jumps, starts)[:-1]
    steps[starts] = 1
    places = np.cumsum(jumps)
    totals = np.array([count for _, count in packed])
    right = (np.add.reduceat(counts, starts) == totals).all() and (counts > 0).all() and (steps > 0).all()
    inside = int(places.min()) >= -1 - LAST_BIN and int(places.max()) <= LAST_BIN
    return (pairs - starts, places, counts) if right and inside else None
