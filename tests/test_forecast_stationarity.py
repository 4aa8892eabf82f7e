# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest

from rtproof.record.contents import Int64Array
from rtproof.simulation.events import KnownTail, second_maxima
from rtproof.tail.stationarity import SLOT_S, SLOTS, BlockMaxima, Stationarity, dispersion_p, stationarity, trend_p

HOUR = 3_600
BLOCK_S = SLOTS * SLOT_S


def even_run(seconds: int, seed: int = 1) -> Int64Array:
    return second_maxima("poisson", 0.05, seconds, KnownTail(), np.random.default_rng(seed))


def of(largest: Int64Array) -> Stationarity:
    return stationarity(np.arange(largest.size), largest)


def blocks(*hits: int) -> BlockMaxima:
    return BlockMaxima(0, np.full(len(hits), SLOTS), np.array(hits))


def test_the_dispersion_is_that_of_a_table_of_counts() -> None:
    stats = pytest.importorskip("scipy.stats")
    hits = np.array([7, 19, 11, 4, 15, 9, 30])
    expected = stats.chi2_contingency(np.array([hits, SLOTS - hits]))
    assert dispersion_p(blocks(*hits)) == pytest.approx(expected.pvalue, rel=1e-9)


def test_counts_that_are_all_the_same_are_more_than_even() -> None:
    assert dispersion_p(blocks(5, 5, 5, 5)) == 1.0
    assert dispersion_p(blocks(0, 0, 0)) == 1.0


@pytest.mark.parametrize("ties", [False, True])
def test_the_trend_is_kendalls(ties: bool) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).permutation(40).astype(float) + np.arange(40) / 2
    values = np.floor(values / 8) if ties else values
    expected = stats.kendalltau(np.arange(40), values, method="asymptotic").pvalue
    # scipy does not correct for continuity, so its p-value is a little smaller.
    assert expected < trend_p(values) < expected + 0.03


def test_values_all_alike_have_no_trend() -> None:
    assert trend_p(np.ones(30)) == 1.0


def test_an_even_run_is_not_flagged_and_its_p_values_are_spread() -> None:
    found = [of(even_run(6 * HOUR, seed)) for seed in range(40)]
    smallest = [min(one.dispersion_p or 0, one.trend_p or 0) for one in found]
    assert sum(p < 0.01 for p in smallest) <= 3
    assert sum(p < 0.5 for p in smallest) >= 10
    assert found[0].blocks == 36


@pytest.mark.parametrize("kind", ["storm", "storm2", "drift"])
def test_an_uneven_run_is_flagged(kind: str) -> None:
    found = of(second_maxima(kind, 0.05, 24 * HOUR, KnownTail(), np.random.default_rng(5)))
    assert min(found.dispersion_p or 1, found.trend_p or 1) < 1e-3
    assert found.lowest < found.highest


def test_an_hour_under_another_load_is_seen_though_every_second_of_it_is_high() -> None:
    largest = even_run(10 * HOUR)
    largest[2 * HOUR : 3 * HOUR] += 10_000_000
    found = of(largest)
    assert found.dispersion_p is not None
    assert found.dispersion_p < 1e-6
    assert found.highest == SLOTS


def test_a_slow_rise_is_a_trend() -> None:
    largest = even_run(10 * HOUR)
    rising = np.random.default_rng(1).random(largest.size) < np.linspace(0.001, 0.02, largest.size)
    found = of(np.where(rising, 10_000_000, largest))
    assert found.trend_p is not None
    assert found.trend_p < 1e-6


def test_the_order_of_the_seconds_decides_and_not_their_values() -> None:
    largest = second_maxima("storm2", 0.05, 24 * HOUR, KnownTail(), np.random.default_rng(6))
    shuffled = of(np.random.default_rng(7).permutation(largest))
    assert min(shuffled.dispersion_p or 0, shuffled.trend_p or 0) > 0.01


@pytest.mark.parametrize("largest", [np.array([], np.int64), np.full(5 * HOUR, 7), np.arange(2 * BLOCK_S)])
def test_too_short_or_all_alike_gives_no_p_value(largest: Int64Array) -> None:
    assert of(largest) == Stationarity()


def test_seconds_in_which_nothing_ran_do_not_count_as_quiet_ones() -> None:
    largest = even_run(12 * HOUR)
    second = np.arange(largest.size)
    kept = (second // BLOCK_S % 2 == 0) | (second % 30 < 15)
    found = stationarity(second[kept], largest[kept])
    assert found.blocks == 72
    assert min(found.dispersion_p or 0, found.trend_p or 0) > 0.01


def test_a_rest_of_a_block_that_is_mostly_missing_is_left_out() -> None:
    assert of(even_run(6 * HOUR + BLOCK_S // 3)).blocks == 36
    assert of(even_run(6 * HOUR + 2 * BLOCK_S // 3)).blocks == 37


def test_weeks_have_a_trend_too() -> None:
    rising = np.linspace(0, 1, 30 * 24 * HOUR)
    largest = (np.random.default_rng(8).random(rising.size) < 0.01 + 0.001 * rising).astype(np.int64)
    found = of(largest)
    assert found.blocks == 30 * 24 * 6
    assert found.trend_p is not None
    assert found.trend_p < 1e-3


@pytest.mark.parametrize("apart_s", [7, 11, 60])
def test_activations_far_apart_are_compared_over_longer_stretches(apart_s: int) -> None:
    """As many per stretch as of those that come every 5 s."""
    largest = even_run(2_400)
    largest[600:1200] += 10_000_000
    found = stationarity(np.arange(largest.size) * apart_s, largest)
    assert (found.blocks, found.slot_s) == (20, apart_s)
    assert found.block_ns == 120 * apart_s * 10**9
    assert found.dispersion_p is not None
    assert found.dispersion_p < 1e-6


def test_seconds_between_long_pauses_are_too_few_to_compare() -> None:
    second = np.arange(6 * HOUR)
    kept = second % BLOCK_S < BLOCK_S // 3
    assert of(even_run(6 * HOUR)).blocks == 36
    found = stationarity(second[kept], even_run(6 * HOUR)[kept])
    assert replace(found, slow=None) == Stationarity()
