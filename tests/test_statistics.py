# SPDX-License-Identifier: Apache-2.0

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from analysis_records import MS, SERIES, block, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof import statistics
from rtproof.record.contents import Block, Int64Array, Series, Slice, View
from rtproof.record.histogram_bins import histogram_bytes
from rtproof.statistics import beta_tails
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.dependence import BlockCounter, LevelPlan
from rtproof.summary.per_second import stretches
from rtproof.summary.quantiles import interval_ranks, quantile, quantiles
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Dependence, Moments, Quantile
from rtproof.summary.tracing_effect import paired_difference

N = 120_000
FREE = replace(SERIES, on_grid=False)
COMING = replace(FREE, external=True)


def drawn(phi: float = 0.0, n: int = N, seed: int = 1) -> Int64Array:
    """Latencies around 100 us, each like the one before by phi."""
    noise = np.random.default_rng(seed).standard_normal(n)
    for at in range(1, n if phi else 0):
        noise[at] = phi * noise[at - 1] + np.sqrt(1 - phi * phi) * noise[at]
    values: Int64Array = (100_000 + 10_000 * noise).astype(np.int64)
    return values


def of_values(values: Int64Array, shares: Sequence[float], view: View = View.OBSERVED) -> tuple[Quantile, ...]:
    (summary,) = summarise(record([block(part, None, at) for at, part in _parts(values)]))
    return quantiles(summary, view, tuple(shares))


def _parts(values: Int64Array) -> list[tuple[int, Int64Array]]:
    return [(at, values[at : at + 5000]) for at in range(0, values.size, 5000)]


def test_independent_values_are_worth_their_number() -> None:
    (summary,) = summarise(record([block(drawn())]))
    for found in quantiles(summary, shares=(0.5, 0.9, 0.99, 0.999, 0.9999)):
        plain = quantile(summary.observed_counts, found.p)
        assert (found.effective, found.dependence) == (N, Dependence.ESTIMATED)
        assert (found.low, found.high) == (plain.low, plain.high)


def test_values_like_those_before_are_worth_fewer() -> None:
    """Of a mean, values of AR .9 are worth a 19th; of the median a twelfth."""
    values = drawn(0.9)
    (middle,) = of_values(values, (0.5,))
    plain = quantile(summarise(record([block(values)]))[0].observed_counts, 0.5)
    assert middle.effective is not None
    assert N / 30 < middle.effective < N / 8
    assert middle.low is not None
    assert middle.high is not None
    assert plain.low is not None
    assert plain.high is not None
    assert middle.high - middle.low > 2.5 * (plain.high - plain.low)


def test_bursts_leave_the_median_alone_and_widen_what_they_are_in() -> None:
    values = drawn()
    for start in np.random.default_rng(2).integers(0, N - 10, N // 2000):
        values[start : start + 10] += 60_000
    middle, tail = of_values(values, (0.5, 0.995))
    assert middle.effective is not None
    assert middle.effective > N / 2
    assert tail.effective is not None
    assert N / 30 < tail.effective < N / 5


@pytest.mark.parametrize("shape", ["drift", "storms", "slow"])
def test_what_lasts_too_long_for_the_run_has_no_interval(shape: str) -> None:
    values, t = drawn(), np.arange(N) / N
    if shape == "drift":
        values += (10_000 * t).astype(np.int64)
    elif shape == "storms":
        values += np.where((t * 8) % 1 < 0.12, 8_000, 0)
    else:
        values = drawn(0.9999)
    (found,) = of_values(values, (0.9,))
    assert found.value is not None
    assert (found.low, found.high, found.effective) == (None, None, None)
    assert found.dependence is Dependence.UNCLEAR


def test_threads_that_are_late_together_are_worth_one() -> None:
    values, other = drawn(), replace(SERIES, id=1, thread=1)
    both = record([block(values), block(values, series=other)], (SERIES, other))
    apart = record([block(values), block(drawn(seed=5), series=other)], (SERIES, other))
    together, independent = (quantiles(pooled(summarise(one)), shares=(0.9,))[0].effective for one in (both, apart))
    assert together is not None
    assert independent is not None
    assert N / 3 < together < 1.2 * N
    assert independent > 1.8 * N


def test_a_stall_is_one_event_in_the_schedule() -> None:
    """400 missed activations of one stall make its 99.8 % quantile; they are no 400 independent values."""
    values = drawn(0, 100_000)
    values[50_000] = 400 * MS
    (summary,) = summarise(record([block(values, {50_000: 399})]))
    (observed,) = quantiles(summary, View.OBSERVED, (0.998,))
    (schedule,) = quantiles(summary, View.CHARGED, (0.998,))
    assert observed.effective == 100_000
    assert schedule.dependence is Dependence.UNCLEAR


def test_without_samples_independence_is_assumed() -> None:
    values = drawn(0.9, 5000)
    bins = histogram_bytes(np.array([50]), np.array([5000]))
    one = Slice(0, View.OBSERVED, 0, 4999 * MS, 5000, 0, 1, 2, 3, 4, 0, 0, 0, bins)
    (summary,) = summarise(record([block(values)], chunk_refs=(), slices=(one,)))
    (found,) = quantiles(summary, shares=(0.5,))
    assert (found.effective, found.dependence) == (None, Dependence.ASSUMED_NONE)


@pytest.mark.parametrize("series", [SERIES, FREE, COMING], ids=["grid", "free", "external"])
@pytest.mark.parametrize("unit_ns", [3 * MS, 7 * MS + 1, 400 * MS])
def test_the_counts_are_those_of_counting_one_by_one(series: Series, unit_ns: int) -> None:
    random = np.random.default_rng(3)
    blocks = []
    for number in range(6):
        values = random.integers(1000, 2 * MS, 200)
        places = np.sort(random.choice(200, 5, replace=False))
        missed = random.integers(1, 9, 5)
        values[places] += missed * MS
        first_ns = number * 1000 * MS + int(random.integers(0, MS)) * (not series.on_grid)
        blocks.append(Block(series.id, number * 1000, first_ns, values, places, missed))
    plan = LevelPlan(
        blocks[0].first_due_ns, unit_ns, 4900 * MS // unit_ns, np.array([10_000, MS, MS + 500_000, 4 * MS])
    )
    counter = BlockCounter(series, plan)
    for some, _ in stretches(series, blocks):
        counter.add(some)
    found = counter.result()
    ran, missed = np.zeros((2, 5, plan.units), np.int64)
    for due, value, late in _one_by_one(series, blocks):
        at = min(max((due - plan.origin_ns) // unit_ns, 0), plan.units - 1)
        for row, level in enumerate([-(10**12), *plan.levels.tolist()]):
            (missed if late else ran)[row, at] += value > level
    assert np.array_equal(found.ran, ran[0])
    assert np.array_equal(found.ran_above, ran[1:])
    assert np.array_equal(found.missed, missed[0])
    assert found.missed_above is not None
    assert np.array_equal(found.missed_above, missed[1:])


def test_due_times_that_go_back_are_counted_too() -> None:
    """A latency far below zero, as in a damaged record: the due time behind it is the earliest of all."""
    values = [1000, -50_000 * MS, 2000, 3000]
    made = record([block(values, series=FREE)], [FREE])
    (found,) = summarise(made, 1, None)
    assert found.blocks is not None
    assert int(found.blocks.ran.sum()) == found.observed.count == len(values)


def _one_by_one(series: Series, blocks: list[Block]) -> list[tuple[int, int, bool]]:
    """Due time, lateness, whether it was missed."""
    told = []
    for one in blocks:
        due, gaps = one.first_due_ns, dict(zip(one.gap_position.tolist(), one.gap_missed.tolist(), strict=True))
        for at, value in enumerate(one.values.tolist()):
            told.append((due, value, False))
            missed = gaps.get(at, 0)
            told += [(due + j * MS, value - j * MS, True) for j in range(1, missed + 1)]
            due += MS + (missed * MS if series.by_period else value)
    return told


# The distribution functions against exact arithmetic, published tables and, where it is installed, scipy.


def binomial_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for X successes in n trials."""
    return float(k >= n) if k < 0 or k >= n else beta_tails(p, k + 1, n - k)[1]


def exact_binomial_at_most(k: int, n: int, p: Fraction) -> float:
    return float(sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (3, 10), (9, 10), (10, 10), (-1, 10), (40, 100), (1, 300), (280, 300)])
@pytest.mark.parametrize("p", [Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2), Fraction(99, 100)])
def test_binomial_tails_are_those_of_exact_arithmetic(k: int, n: int, p: Fraction) -> None:
    exact = exact_binomial_at_most(k, n, p)
    assert binomial_at_most(k, n, float(p)) == pytest.approx(exact, rel=1e-11, abs=1e-300)
    if k >= 0:
        once = float(math.comb(n, k) * p**k * (1 - p) ** (n - k))
        assert statistics.binomial_probability(k, n, float(p)) == pytest.approx(once, rel=1e-12)


@pytest.mark.parametrize(("k", "mean"), [(0, 3.0), (3, 0.01), (5, 5.0), (20, 3.5), (60, 100.0)])
def test_poisson_tails_are_sums_of_terms(k: int, mean: float) -> None:
    terms = math.fsum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(k + 1))
    assert statistics.gamma_tails(k + 1, mean)[1] == pytest.approx(terms, rel=1e-12, abs=1e-300)


def test_a_large_binomial_near_its_middle() -> None:
    """Symmetric: half of all and half of the middle one lie at or below the middle."""
    n = 200_000_000
    middle = statistics.binomial_probability(n // 2, n, 0.5)
    assert middle == pytest.approx(math.sqrt(2 / (math.pi * n)) * (1 - 1 / (4 * n)), rel=1e-12)
    assert binomial_at_most(n // 2, n, 0.5) == pytest.approx(0.5 + middle / 2, rel=1e-11)


@pytest.mark.parametrize("p", [1e-9, 0.025, 0.5, 0.975, 0.999999])
@pytest.mark.parametrize("a", [0.5, 1, 2.5, 40, 3000, 1e6])
def test_inverses_invert(p: float, a: float) -> None:
    assert statistics.gamma_tails(a, statistics.gamma_inverse(p, a))[0] == pytest.approx(p, rel=1e-9)
    for b in (1, 7.5, 5e5):
        assert statistics.beta_tails(statistics.beta_inverse(p, a, b), a, b)[0] == pytest.approx(p, rel=1e-8)


@pytest.mark.parametrize(
    ("events", "mean"), [(0, 2.996), (1, 4.744), (2, 6.296), (3, 7.754), (4, 9.154), (5, 10.513), (8, 14.435)]
)
def test_upper_bounds_of_garwoods_table(events: int, mean: float) -> None:
    assert statistics.mean_upper(events, 0.95) == pytest.approx(mean, abs=6e-4)


@pytest.mark.parametrize(
    ("events", "n", "low", "high"), [(1, 10, 0.0025, 0.4450), (5, 20, 0.0866, 0.4910), (0, 10, 0, 0.3085)]
)
def test_two_sided_bounds_of_clopper_and_pearson(events: int, n: int, low: float, high: float) -> None:
    assert statistics.share_lower(events, n, 0.975) == pytest.approx(low, abs=6e-5)
    assert statistics.share_upper(events, n, 0.975) == pytest.approx(high, abs=6e-5)


def test_bounds_of_no_event_and_of_every_one() -> None:
    assert statistics.share_upper(0, 10**12, 0.95) == pytest.approx(2.99573227e-12, rel=1e-8)
    assert statistics.share_upper(7, 7, 0.95) == 1
    assert statistics.share_lower(7, 7, 0.95) == pytest.approx(0.05 ** (1 / 7))


CONFIDENCE = 0.95


def test_few_pairs_carry_no_interval() -> None:
    """Five signs are all the same by chance in one of sixteen cases."""
    assert paired_difference([1.0] * 5, CONFIDENCE) is None
    assert paired_difference([], CONFIDENCE) is None
    assert paired_difference([1.0] * 6, CONFIDENCE) is not None


def test_a_known_example() -> None:
    """Hollander and Wolfe's depression scores. Nine pairs have a rank sum up to 5 with a chance below 2.5 %."""
    before = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
    after = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
    differences = [x - y for x, y in zip(before, after, strict=True)]
    averages = sorted((a + b) / 2 for i, a in enumerate(differences) for b in differences[i:])
    found = paired_difference(differences, CONFIDENCE)
    assert found is not None
    assert found.difference == pytest.approx(0.46, abs=0.005)
    assert (found.low, found.high) == (averages[5], averages[-6])


@pytest.mark.parametrize("pairs", [8, 20, 60])
def test_the_interval_covers_as_often_as_it_says(pairs: int) -> None:
    """Heavy tails on both sides, as the difference of two latencies has them; the shift is 3."""
    random = np.random.default_rng(pairs)
    runs = 1_000
    covered = 0
    for _ in range(runs):
        found = paired_difference(list(3 + random.standard_t(2, pairs)), CONFIDENCE)
        assert found is not None
        covered += found.low <= 3 <= found.high
    assert 0.935 <= covered / runs <= 0.985


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


def test_a_wide_bin_stands_for_its_upper_end_but_not_above_the_maximum() -> None:
    counts = Counts(np.array([10, 100]), np.array([19, 199]), np.array([50, 50]))
    assert quantile(counts, 0.25).value == 19
    assert quantile(counts, 0.25).resolution == 9
    assert quantile(counts, 0.9, ends=Moments(100, 11, 142, 0, 0)).value == 142
