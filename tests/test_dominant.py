# SPDX-License-Identifier: Apache-2.0

import numpy as np

from rtproof.summary.counts import NO_COUNTS, Counts, DominantBin, counts_of_values, dominant_bin


def of(*values: int, width: int = 2_000) -> DominantBin | None:
    return dominant_bin(counts_of_values(np.array(values, np.int64)), width)


def test_the_fullest_bin_begins_at_a_multiple_of_its_width() -> None:
    assert of(8_000, 9_999, 10_000, 500_000_000) == DominantBin(8_000, 10_000, 2, 4)


def test_bins_lie_below_zero_too() -> None:
    assert of(-1, -2_000, 0) == DominantBin(-2_000, 0, 2, 3)


def test_of_equally_full_bins_it_is_the_first() -> None:
    assert of(1, 5_000) == DominantBin(0, 2_000, 1, 2)


def test_a_wide_bin_of_the_record_stands_where_its_middle_lies() -> None:
    wide = Counts(np.array([1_000]), np.array([4_000]), np.array([7]))
    assert dominant_bin(wide, 2_000) == DominantBin(2_000, 4_000, 7, 7)


def test_nothing_has_none() -> None:
    assert dominant_bin(NO_COUNTS, 2_000) is None
