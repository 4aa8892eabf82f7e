# SPDX-License-Identifier: Apache-2.0
"""How often each value occurred: sorted bins [lo, hi] with counts; exact where lo == hi."""

from dataclasses import dataclass

from rtproof.record import Int64Array


@dataclass(frozen=True)
class Counts:
    """Three arrays of equal length, bins increasing and disjoint, both ends inclusive, counts > 0."""

    lo: Int64Array
    hi: Int64Array
    n: Int64Array
