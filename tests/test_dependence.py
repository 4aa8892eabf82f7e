# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SERIES, block, record

from rtproof.record.contents import Block, Int64Array, Series, Slice, View
from rtproof.summary.dependence import BlockCounter, LevelPlan, inflation
from rtproof.summary.per_second import sample_stretches
from rtproof.summary.quantiles import quantile, quantiles
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Dependence, Quantile

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


def test_few_values_of_a_tail_are_not_taken_for_independent_where_those_below_come_together() -> None:
    values = drawn()
    for start in np.random.default_rng(2).integers(0, N - 50, 60):
        values[start : start + 50] += 60_000
    (found,) = of_values(values, (0.9999,))
    assert found.dependence is Dependence.UNCLEAR


def test_what_a_percentile_beyond_n_has_left_of_an_interval_heeds_dependence_too() -> None:
    values = drawn(0.9, 5000)
    independent, alike = (of_values(some, (0.9999,))[0] for some in (drawn(0, 5000), values))
    assert (independent.value, alike.value) == (None, None)
    assert independent.low is not None
    assert alike.low is None


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
    one = Slice(0, View.OBSERVED, 0, 4999 * MS, 5000, 0, 1, 2, 3, 4, 0, 0, 0, np.array([50]), np.array([5000]))
    (summary,) = summarise(record([block(values)], chunk_refs=(), slices=(one,)))
    (found,) = quantiles(summary, shares=(0.5,))
    assert (found.effective, found.dependence) == (None, Dependence.ASSUMED_NONE)


def test_too_few_stretches_tell_nothing() -> None:
    assert inflation(np.array([1, 0, 1]), np.array([10, 10, 10])) is None
    assert inflation(np.zeros(100, np.int64), np.full(100, 10)) == 1.0
    (found,) = of_values(drawn(0, 10), (0.5,))
    assert found.dependence is Dependence.UNCLEAR


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
    for stretch in sample_stretches(blocks):
        counter.add(stretch.block, stretch.told)
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
