# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from tail_cases import counts_of, pareto

from rtproof.summary.counts import NO_COUNTS, counts_of_values
from rtproof.tail.thresholds import FARTHEST, tail_limit

UNITS = 100_000


def test_a_smooth_tail_has_a_limit() -> None:
    found = tail_limit(counts_of(0.05, 1e7, UNITS), UNITS, 10 * UNITS)
    assert found.codes == ()
    assert found.level == found.envelope
    true = 1e7 / 0.05 * ((10 * UNITS) ** 0.05 - 1)
    assert true <= (found.level or 0) <= 2 * true


def test_too_few_units() -> None:
    found = tail_limit(counts_of(0.05, 1e7, 1999), 1999, 1999)
    assert found.codes == ("FEW",)
    assert found.level is None
    assert tail_limit(NO_COUNTS, 0, 1).codes == ("FEW", "FAR")


def test_too_far_ahead() -> None:
    counts = counts_of(0.0, 1e7, UNITS)
    assert tail_limit(counts, UNITS, FARTHEST * UNITS).codes == ()
    assert "FAR" in tail_limit(counts, UNITS, FARTHEST * UNITS + 1).codes


@pytest.mark.parametrize("values", [np.full(UNITS, 7), pareto(0.0, 200, UNITS, 1) // 1000 * 1000])
def test_too_coarse(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    assert tail_limit(counts_of_values(values), UNITS, UNITS, 1000).codes == ("COARSE",)


def test_no_fit_holds() -> None:
    """Every threshold has a column of equal values above it, which no smooth tail has."""
    values = pareto(0.0, 1e7, UNITS, 1)
    order = np.argsort(values)
    for first, count in ((-190, 60), (-380, 60)):
        values[order[first : first + count]] = values[order[first]]
    found = tail_limit(counts_of_values(values), UNITS, UNITS)
    assert found.codes == ("FIT",)
    assert found.envelope is None
    assert found.top is None


def test_a_heavy_tail_is_told_even_where_no_fit_holds() -> None:
    found = tail_limit(counts_of(1.0, 1e5, UNITS), UNITS, UNITS)
    assert "HEAVY" in found.codes
    assert found.level is None


def test_a_single_strange_value() -> None:
    values = pareto(0.0, 1e6, UNITS, 3)
    values[0] = 10**9
    codes = tail_limit(counts_of_values(values), UNITS, UNITS).codes
    assert {"FIT", "TOP"} & set(codes)


def test_a_limit_far_beyond_the_largest_value_is_wide() -> None:
    found = [tail_limit(counts_of(0.3, 1e5, 4000, seed), 4000, 40_000) for seed in range(12)]
    wide = [(one.envelope or 0) > 3 * one.ladder.largest for one in found]
    assert [("WIDE" in one.codes) for one in found] == wide
    assert 0 < sum(wide) < len(found)


def test_no_horizon() -> None:
    with pytest.raises(ValueError, match="positive"):
        tail_limit(NO_COUNTS, 0, 0)
