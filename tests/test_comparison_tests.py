# SPDX-License-Identifier: Apache-2.0
"""Tests and intervals against scipy, against counting by hand, and against what they promise."""

import math
from itertools import combinations

import numpy as np
import pytest
from analysis_records import block, record
from comparison_cases import run_of, side
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof import statistics
from rtproof.compare.compare import BY_RUNS, side_order
from rtproof.compare.effects import detectable_ratio
from rtproof.compare.tail_crossing import TailLikeness, TailSample, tail_crossing, tail_distance, tail_sample
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array
from rtproof.statistics import difference_interval, permutation_p_value, permuted_means, rejected_splits, welch_p_value
from rtproof.summary.counts import Counts, counts_of_values

stats = pytest.importorskip("scipy.stats")
numbers = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=5)


@pytest.mark.parametrize("freedom", [1, 1.7, 4, 8, 30, 1e5])
def test_student_like_scipy(freedom: float) -> None:
    for p in (1e-8, 0.001, 0.025, 0.3, 0.5, 0.6, 0.975, 0.9999):
        assert statistics.student_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-12)
    for t in (0.0, 1e-9, 0.1, -2.0, 7.0, 300.0):
        assert statistics.student_two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-8)
    assert statistics.student_two_sided(math.inf, freedom) == 0


def counted_inference(a: list[float], b: list[float]) -> float:
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
    assert permutation_p_value(a, b) == pytest.approx(counted_inference(a, b))


def test_the_smallest_p_there_is() -> None:
    """Five and five have 252 splits, of which one is the farthest to each side."""
    assert permutation_p_value([10.0, 11, 12, 13, 14], [1.0, 2, 3, 4, 5]) == pytest.approx(2 / 252)
    assert permutation_p_value([10.0, 11, 12, 13], [1.0, 2, 3, 4]) == pytest.approx(2 / 70)
    assert rejected_splits(5, 5, 0.05 / 6) == 1
    assert rejected_splits(5, 5, 0.05 / 7) == 0
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


# Crossing distributions, with crossings that are known, and none where there is none.


def test_a_crossing_is_found_where_it_is() -> None:
    """A is 60 % later as a rule; 2 % of B are ten times as late, from about 60 us on."""
    found = side_order(side(1, 6, factor=1.6, scatter=0.05), side(2, 6, scatter=0.05, tail=0.02))
    assert (found.lower, found.method) == (None, BY_RUNS)
    (crossing,) = found.crossings
    assert not crossing.a_lower_below
    assert crossing.between[0] <= crossing.value <= crossing.between[1]
    assert 50_000 < crossing.value < 110_000
    assert 0.005 < crossing.share < 0.06
    (other,) = side_order(side(2, 6, scatter=0.05, tail=0.02), side(1, 6, factor=1.6, scatter=0.05)).crossings
    assert (other.value, other.a_lower_below) == (crossing.value, True)


@pytest.mark.parametrize(("factor", "lower"), [(0.5, "A"), (2.0, "B")])
def test_one_that_is_lower_throughout(factor: float, lower: str) -> None:
    found = side_order(side(1, 5, factor=factor), side(2, 5))
    assert (found.lower, found.crossings) == (lower, ())
    assert found.surely is not None
    assert found.surely[0] < 20_000 < found.surely[1]


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_noise_does_not_cross(runs: int) -> None:
    """Of 40 pairs of the same at 95 %, two are expected to differ anywhere, and none to cross."""
    found = [
        side_order(side(2 * seed, runs, 1, 0.3, 0.01), side(2 * seed + 1, runs, 1, 0.3, 0.01)) for seed in range(40)
    ]
    assert sum(one.lower is not None or bool(one.crossings) for one in found) <= 6
    assert not any(one.crossings for one in found)


@pytest.mark.parametrize(("above", "lower"), [(10_100, None), (11_000, "B")])
def test_a_difference_that_is_sure_and_small_is_none(above: int, lower: str | None) -> None:
    """Runs without any scatter: 2 % more odds of 20 us are sure and nothing, 22 % more are something."""
    more = run_of(np.repeat(np.array([10_000, 20_000]), (20_000 - above, above)))
    usual = run_of(np.repeat(np.array([10_000, 20_000]), 10_000))
    assert side_order([more] * 5, [usual] * 5).lower == lower


# Which of two tails is lighter and from where on, and whether two curves are the same, with the truth known.


N = 40_000


def of(values: Int64Array) -> TailSample:
    return TailSample(counts_of_values(values), values.size)


def usual(seed: int, n: int = N) -> Int64Array:
    return np.random.default_rng(seed).gamma(3, 4_000, n).astype(np.int64) + 2_000


def test_an_exact_crossing() -> None:
    """First: 500 at 10, 500 at 20. Second: 900 at 5 and 100 at 100. From 20 on the first is better: 10 % lie beyond."""
    first = of(np.repeat(np.array([10, 20]), 500))
    second = of(np.repeat(np.array([5, 100]), (900, 100)))
    found = tail_crossing(first, second)
    assert found is not None
    assert (found.first_is_better, found.above, found.until) == (True, 20, 20)
    assert found.top_share == pytest.approx(0.1)


@pytest.mark.parametrize("width", [10, 100, 2_000])
def test_bins_of_one_do_not_make_a_difference(width: int) -> None:
    """A run that kept a summary beside one that kept every sample: within a bin nothing is known of the one."""
    places, n = np.unique(usual(2) // width, return_counts=True)
    binned = TailSample(Counts(places * width, places * width + width - 1, n.astype(np.int64)), N)
    for pair in ((of(usual(1)), binned), (binned, of(usual(1)))):
        apart = tail_distance(*pair)
        assert apart is not None
        assert apart.likeness is not TailLikeness.DIFFERENT
        assert tail_crossing(*pair) is None
    worse = of(usual(1) + 4_000)
    found = tail_crossing(binned, worse)
    assert found is not None
    assert (found.first_is_better, found.above) == (True, None)


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_two_of_the_same_do_not_cross_and_are_not_different(a: int, b: int) -> None:
    """At 4 standard errors and at 95 %; the bounds are wider than that for values this regular."""
    found = tail_distance(of(usual(a, 2_000)), of(usual(b, 2_000)))
    assert found is not None
    if tail_crossing(of(usual(a, 2_000)), of(usual(b, 2_000))) is not None:
        assert found.seen > 0.01
    assert found.least <= found.seen <= found.most


def test_a_shift_is_found_and_where_it_is_largest() -> None:
    found = tail_distance(of(usual(1)), of(usual(1) + 2_000))
    assert found is not None
    assert found.likeness is TailLikeness.DIFFERENT
    assert 0.05 < found.seen < 0.5
    assert 5_000 < found.at < 25_000


def test_the_worth_of_a_run_comes_from_its_neighbours() -> None:
    drawn = usual(1, 3_000)
    apart = tail_sample(analyse(record([block(drawn.tolist())]), workers=1).pooled)
    bursts = tail_sample(analyse(record([block(np.repeat(drawn[:100], 30).tolist())]), workers=1).pooled)
    assert 0.8 * 3_000 < apart.effective <= 3_000
    assert bursts.effective < 150
