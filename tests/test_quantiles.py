# SPDX-License-Identifier: Apache-2.0

import math
from fractions import Fraction

import numpy as np
import pytest
from analysis_records import MS, block, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.contents import View
from rtproof.statistics import binomial_at_most
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.quantiles import USUAL_SHARES, interval_ranks, quantile, quantiles
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Moments


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=300), st.sampled_from((0.01, 0.07, 0.5, 0.9, 0.99)))
def test_the_point_is_the_nearest_rank(values: list[int], p: float) -> None:
    found = quantile(counts_of_values(np.array(values)), p)
    share = Fraction(str(p))
    if len(values) * (1 - share) < 1:
        assert found.value is None
    else:
        assert found.value == sorted(values)[math.ceil(len(values) * share) - 1]
    assert (found.n, found.resolution) == (len(values), 0)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("p", [0.001, 0.5, 0.9, 0.999, 0.99999])
@pytest.mark.parametrize("n", [1, 7, 100, 5000, 3_000_000])
def test_the_interval_covers_as_often_as_it_says_and_could_not_be_narrower(n: int, p: float, confidence: float) -> None:
    """By the binomial identity: X_(l) is above the quantile if at most l - 1 of n values are below it."""
    low, high = interval_ranks(n, p, confidence)
    tail = (1 - confidence) / 2
    if low is None:
        assert binomial_at_most(0, n, p) > tail
    else:
        assert binomial_at_most(low - 1, n, p) <= tail * (1 + 1e-9)
        assert binomial_at_most(low, n, p) > tail * (1 - 1e-9)
    if high is None:
        assert p**n > tail
    else:
        assert 1 - binomial_at_most(high - 1, n, p) <= tail * (1 + 1e-6)
        assert 1 - binomial_at_most(high - 2, n, p) > tail * (1 - 1e-6)


def test_the_interval_of_a_very_long_run() -> None:
    """Against the normal approximation, which is good to a few ranks in the middle of so many."""
    n = 200_000_000
    low, high = interval_ranks(n, 0.5, 0.95)
    assert low == pytest.approx(n / 2 - 1.959964 * math.sqrt(n) / 2, abs=2)
    assert high == pytest.approx(n / 2 + 1 + 1.959964 * math.sqrt(n) / 2, abs=2)


def test_the_ranks_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for n, p in ((1_500_000, 0.99999), (196_190_335, 0.999999), (1000, 0.3)):
        low, high = interval_ranks(n, p, 0.95)
        assert (low, high) == (stats.binom.ppf(0.025, n, p), stats.binom.ppf(0.975, n, p) + 1)


def test_the_99_999_percent_threshold_of_a_run_of_four_hours() -> None:
    """1.5 million samples: 15 exceedances, and an interval from the 24th to the 8th largest value."""
    found = quantile(counts_of_values(np.arange(1_500_000)), 0.99999)
    assert found.value == 1_499_984
    assert (1_500_000 - (found.low or 0), 1_500_000 - (found.high or 0)) == (24, 8)


def test_unknown_where_n_does_not_carry_it() -> None:
    found = {q.p: q for q in (quantile(counts_of_values(np.arange(1000)), p) for p in USUAL_SHARES)}
    assert found[0.999].value == 998
    assert found[0.999].high is None
    assert found[0.9999].value is None
    assert found[0.5].low == 1000 // 2 - 32


def test_nothing_counted() -> None:
    found = quantile(counts_of_values(np.array([], np.int64)), 0.5)
    assert (found.n, found.value, found.low, found.high) == (0, None, None, None)


def test_a_wide_bin_stands_for_its_upper_end_but_not_above_the_maximum() -> None:
    counts = Counts(np.array([10, 100]), np.array([19, 199]), np.array([50, 50]))
    assert quantile(counts, 0.25).value == 19
    assert quantile(counts, 0.25).resolution == 9
    assert quantile(counts, 0.9, ends=Moments(100, 11, 142, 0, 0)).value == 142


@pytest.mark.parametrize("p", [0.0, 1.0, 99.9])
def test_a_share_outside_0_and_1_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(counts_of_values(np.array([1])), p)


def test_a_stall_shows_in_the_schedule_only() -> None:
    values = [30_000] * 1600
    values[700] = 400_200_000
    (summary,) = summarise(record([block(values, {700: 400})]))
    (observed,) = quantiles(summary, View.OBSERVED, (0.99,))
    (schedule,) = quantiles(summary, View.CHARGED, (0.99,))
    assert observed.value == 30_000
    assert schedule.value is not None
    assert 300 * MS < schedule.value < 400 * MS
