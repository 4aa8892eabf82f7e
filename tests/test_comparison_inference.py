# SPDX-License-Identifier: Apache-2.0
"""Tests and intervals against scipy, against counting by hand, and against what they promise."""

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof import statistics
from rtproof.compare.effects import detectable_ratio, runs_for_ratio
from rtproof.statistics import (
    EXACT,
    difference_interval,
    is_exact,
    permutation_p_value,
    permuted_means,
    rejected_share,
    welch_p_value,
)

stats = pytest.importorskip("scipy.stats")
numbers = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=5)


@pytest.mark.parametrize("freedom", [1, 1.7, 4, 8, 30, 1e5])
def test_student_like_scipy(freedom: float) -> None:
    for p in (1e-8, 0.001, 0.025, 0.3, 0.5, 0.6, 0.975, 0.9999):
        assert statistics.student_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-12)
    for t in (0.0, 1e-9, 0.1, -2.0, 7.0, 300.0):
        assert statistics.student_two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-8)
    assert statistics.student_two_sided(math.inf, freedom) == 0


def counted(a: list[float], b: list[float]) -> float:
    """By hand: every way to choose side a out of all."""
    every = [*a, *b]
    seen = sum(a) / len(a) - sum(b) / len(b)
    means = []
    for chosen in combinations(range(len(every)), len(a)):
        left = [every[i] for i in chosen]
        means.append(sum(left) / len(a) - (sum(every) - sum(left)) / len(b))
    above, below = (sum(sign * mean >= sign * seen - 1e-9 for mean in means) for sign in (1, -1))
    return min(1.0, 2 * min(above, below) / len(means))


@given(numbers, numbers)
@settings(deadline=None)
def test_all_splits_like_by_hand(a: list[float], b: list[float]) -> None:
    assert permutation_p_value(a, b) == pytest.approx(counted(a, b))


@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 6), (7, 7)])
def test_all_splits_like_scipy(n: int, m: int) -> None:
    random = np.random.default_rng(n)
    for shift in (0.0, 1.0, 3.0):
        a, b = random.normal(shift, 1, n), random.normal(0, 1, m)
        found = stats.permutation_test(
            (a, b), lambda x, y, axis: x.mean(axis) - y.mean(axis), vectorized=True, n_resamples=np.inf
        )
        assert permutation_p_value(a.tolist(), b.tolist()) == pytest.approx(found.pvalue)


def test_the_smallest_p_there_is() -> None:
    """Five and five have 252 splits, of which one is the farthest to each side."""
    assert permutation_p_value([10.0, 11, 12, 13, 14], [1.0, 2, 3, 4, 5]) == pytest.approx(2 / 252)
    assert permutation_p_value([10.0, 11, 12, 13], [1.0, 2, 3, 4]) == pytest.approx(2 / 70)
    assert rejected_share(5, 5, 0.05 / 6) == 1
    assert rejected_share(5, 5, 0.05 / 7) == 0
    assert permuted_means(5, 5).shape == (251, 10)


def test_ties_and_constants() -> None:
    assert permutation_p_value([1.0] * 5, [1.0] * 5) == 1
    assert permutation_p_value([0.1 + 0.2] * 5, [0.3] * 5) == 1
    assert welch_p_value([1.0] * 9, [1.0] * 9) == 1
    assert welch_p_value([1.0] * 9, [2.0] * 9) == 0
    assert welch_p_value([1.0], [2.0] * 9) == 1
    assert difference_interval([1.0], [2.0] * 9, 0.05).low == -math.inf
    assert difference_interval([1.0] * 9, [2.0] * 9, 0.05).high == -1


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(numbers, numbers, st.floats(0.001, 0.5))
@settings(deadline=None)
def test_welch_like_scipy(a: list[float], b: list[float], alpha: float) -> None:
    if len({*a}) == len({*b}) == 1:
        return
    found = stats.ttest_ind(a, b, equal_var=False)
    assert welch_p_value(a, b) == pytest.approx(float(found.pvalue), rel=1e-6)
    low, high = found.confidence_interval(1 - alpha)
    ours = difference_interval(a, b, alpha)
    assert [ours.low, ours.high] == pytest.approx([float(low), float(high)], rel=1e-6)


@given(numbers, numbers, st.integers(-1000, 1000).map(float))
@settings(deadline=None)
def test_what_is_added_to_both_sides_changes_nothing(a: list[float], b: list[float], added: float) -> None:
    moved = permutation_p_value([x + added for x in a], [x + added for x in b])
    assert moved == pytest.approx(permutation_p_value(a, b))
    assert permutation_p_value(b, a) == pytest.approx(permutation_p_value(a, b))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(p_values: list[float]) -> None:
    """Rejecting below alpha is the same as stepping down through alpha / m, alpha / (m - 1) and so on."""
    found = statistics.holm_adjusted(p_values)
    for alpha in (0.01, 0.05, 0.3):
        rejected_ones = set()
        for step, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
            if p_values[at] * (len(p_values) - step) > alpha:
                break
            rejected_ones.add(at)
        assert {at for at, p in enumerate(found) if p <= alpha} == rejected_ones
    assert all(adjusted >= p for adjusted, p in zip(found, p_values, strict=True))


def test_holm_of_the_textbook() -> None:
    assert statistics.holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(("n", "m", "deviation"), [(5, 5, 0.5), (7, 7, 0.1), (5, 7, 0.5), (8, 8, 0.5), (6, 15, 0.3)])
def test_what_is_told_to_be_detectable_is_found_four_times_of_five(n: int, m: int, deviation: float) -> None:
    """400 drawings: the standard error of the power is 2 %, and the t formula is good to 2 % more."""
    random = np.random.default_rng(n * m)
    alpha, margin = 0.05 / 6, math.log(1.05)
    shift = detectable_ratio(deviation, n, m, alpha, margin)
    hits = 0
    for _ in range(400):
        a, b = random.normal(shift, deviation, n).tolist(), random.normal(0, deviation, m).tolist()
        hits += permutation_p_value(a, b) <= alpha and difference_interval(a, b, 0.05).low > margin
    assert 0.72 <= hits / 400 <= 0.88


def test_more_runs_see_more_and_none_see_what_the_margin_hides() -> None:
    alpha, margin = 0.05 / 6, math.log(1.05)
    seen = [detectable_ratio(0.5, n, n, alpha, margin) for n in (5, 6, 7, 8, 12, 30, 100)]
    assert seen == sorted(seen, reverse=True)
    assert detectable_ratio(0.5, 3, 3, alpha, margin) == math.inf
    assert detectable_ratio(0.0, 5, 5, alpha, margin) == pytest.approx(margin)
    assert runs_for_ratio(math.log(1.04), 0.1, alpha, margin, 5) is None
    assert is_exact(EXACT, EXACT)
    assert not is_exact(EXACT, EXACT + 1)


@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_the_number_of_runs_is_near_that_of_the_textbook(deviation: float) -> None:
    alpha, margin = 0.05 / 6, math.log(1.05)
    found = runs_for_ratio(math.log(1.5), deviation, alpha, margin, 5)
    assert found is not None
    normal = NormalDist()
    sure = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(0.8)
    known = 2 * (deviation / math.log(1.5) * sure) ** 2
    assert known <= found <= 1.05 * known + 3
    assert detectable_ratio(deviation, found, found, alpha, margin) <= math.log(1.5)
    assert detectable_ratio(deviation, found - 1, found - 1, alpha, margin) > math.log(1.5)
