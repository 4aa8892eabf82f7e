# SPDX-License-Identifier: Apache-2.0
"""Rows of a map of latencies: eight to each power of two, each made of whole bins of the record's scale.

Numbered like those bins (docs/record-format.md, SUMMARY), with 8 steps in a power of two in place of 512: values 0 to
15 have a row each, and row -1 - r holds the values -1 - v of the values v of row r. Zero and negative values thus have
rows of their own.
"""

import numpy as np

from rtproof.record import Int64Array, bins

STEPS = 8
LAST = (63 - 3) * STEPS + STEPS - 1
"""Row of the largest 64-bit value."""
COUNT = 2 * (LAST + 1)
ZERO = LAST + 1
"""Place of row 0 in an array of all rows."""
_LARGEST = np.iinfo(np.int64).max


def of_values(values: Int64Array) -> Int64Array:
    """Row of each value."""
    return of_bins(bins.index(values))


def of_bins(places: Int64Array) -> Int64Array:
    """Row of each bin of the record's scale."""
    rows: Int64Array = _ROW[places]
    return rows


def edges(first: int, last: int) -> Int64Array:
    """Smallest value of each row from first to last, and one above the largest of the last (if 64 bits hold it)."""
    low = np.array([smallest(row) for row in range(first, last + 1)], np.int64)
    return np.append(low, min(smallest(last + 1), _LARGEST)).astype(np.int64)


def smallest(row: int) -> int:
    """Smallest value of a row."""
    if row < 0:
        return -smallest(-row)
    octave = max(row // STEPS - 1, 0)
    return (row - octave * STEPS) << octave


def _row_of_each_bin() -> Int64Array:
    low = bins.edges(np.arange(bins.LAST + 1))[0]
    begins = np.array([smallest(row) for row in range(LAST + 1)], np.int64)
    rows = np.searchsorted(begins, low, side="right") - 1
    return np.concatenate((rows, -1 - rows[::-1])).astype(np.int64)


_ROW = _row_of_each_bin()
"""Negative bins count from its end."""
