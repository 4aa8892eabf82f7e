# SPDX-License-Identifier: Apache-2.0
"""Which of two tails is lighter and from where on, and whether two curves are the same, with the truth known."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import block, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof.compare.tail_crossing import CLOSE, TailLikeness, TailSample, tail_crossing, tail_distance, tail_sample
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import NO_COUNTS, Counts, counts_of_values

N = 40_000
NOTHING = TailSample(NO_COUNTS, 0)


def of(values: Int64Array) -> TailSample:
    return TailSample(counts_of_values(values), values.size)


def usual(seed: int, n: int = N) -> Int64Array:
    return np.random.default_rng(seed).gamma(3, 4_000, n).astype(np.int64) + 2_000


def kernels(n: int = N) -> tuple[TailSample, TailSample]:
    """As in article 5: one is slower as a rule, the other has the heavier tail, and above 70 us only that one is."""
    steady = usual(1, n) + 4_000
    wild = usual(2, n)
    late = np.random.default_rng(3).choice(n, n * 13 // 1000, replace=False)
    wild[late] = 70_000 + np.random.default_rng(4).integers(1, 400_000, late.size)
    return of(np.minimum(steady, 70_000)), of(wild)


def test_the_lighter_tail_and_where_it_begins() -> None:
    found = tail_crossing(*kernels())
    assert found is not None
    assert found.first_is_better
    assert found.above is not None
    assert 15_000 < found.above <= 70_001
    assert found.top_share >= 0.013
    back = tail_crossing(*reversed(kernels()))
    assert back is not None
    assert (back.first_is_better, back.above, back.top_share) == (False, found.above, found.top_share)


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


def test_one_that_is_better_throughout_does_not_cross() -> None:
    found = tail_crossing(of(usual(1)), of(usual(2) + 3_000))
    assert found is not None
    assert (found.first_is_better, found.above, found.top_share) == (True, None, 1.0)


def test_the_few_largest_values_decide_nothing() -> None:
    """Better throughout, but for one value: chance, and no crossing."""
    one = usual(1)
    one[7] = 10**9
    found = tail_crossing(of(one), of(usual(2) + 3_000))
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


def test_of_many_runs_of_the_same_hardly_any_is_called_different() -> None:
    pairs = [(of(usual(2 * seed, 3_000)), of(usual(2 * seed + 1, 3_000))) for seed in range(300)]
    different = sum(found.likeness is TailLikeness.DIFFERENT for pair in pairs if (found := tail_distance(*pair)))
    assert different <= 300 * 0.05
    assert sum(tail_crossing(*pair) is not None for pair in pairs) <= 300 * 0.05


def test_the_same_is_said_where_there_are_enough_values_to_know() -> None:
    many, few = tail_distance(of(usual(1)), of(usual(2))), tail_distance(of(usual(1, 500)), of(usual(2, 500)))
    assert many is not None
    assert few is not None
    assert (many.likeness, few.likeness) == (TailLikeness.SAME, TailLikeness.UNDECIDED)
    assert many.most <= CLOSE < few.most


def test_a_shift_is_found_and_where_it_is_largest() -> None:
    found = tail_distance(of(usual(1)), of(usual(1) + 2_000))
    assert found is not None
    assert found.likeness is TailLikeness.DIFFERENT
    assert 0.05 < found.seen < 0.5
    assert 5_000 < found.at < 25_000


def test_dependent_values_are_worth_less() -> None:
    """A hundred values in each burst: the same figures, but nothing sure comes of them."""
    one, other = (TailSample(counts_of_values(np.repeat(usual(seed, 60), 100)), 60) for seed in (1, 2))
    naive = tail_distance(replace(one, effective=6_000), replace(other, effective=6_000))
    honest = tail_distance(one, other)
    assert naive is not None
    assert honest is not None
    assert naive.likeness is TailLikeness.DIFFERENT
    assert honest.likeness is TailLikeness.UNDECIDED


def test_the_worth_of_a_run_comes_from_its_neighbours() -> None:
    drawn = usual(1, 3_000)
    apart = tail_sample(analyse(record([block(drawn.tolist())]), workers=1).pooled)
    bursts = tail_sample(analyse(record([block(np.repeat(drawn[:100], 30).tolist())]), workers=1).pooled)
    assert 0.8 * 3_000 < apart.effective <= 3_000
    assert bursts.effective < 150


def test_nothing_has_no_answer() -> None:
    assert (tail_crossing(NOTHING, of(usual(1))), tail_distance(of(usual(1)), NOTHING)) == (None, None)
