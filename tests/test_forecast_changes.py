# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from forecast_cases import HOUR, codes, forecast_of, smooth
from simulated_seconds import second_maxima
from slow_runs import slow_run

from rtproof.record.contents import Int64Array
from rtproof.simulation.events import KnownTail
from rtproof.tail.stationarity import (
    COMPARED,
    SLOT_S,
    SLOTS,
    SLOW,
    TESTED,
    Stationarity,
    dispersion_p,
    slow_change,
    slow_p,
    stationarity,
)

HOUR_STATIONARITY = 3_600
BLOCK_S = SLOTS * SLOT_S


def even_run(seconds: int, seed: int = 1) -> Int64Array:
    return second_maxima("poisson", 0.05, seconds, KnownTail(), np.random.default_rng(seed))


def of(largest: Int64Array) -> Stationarity:
    return stationarity(np.arange(largest.size), largest)


def test_the_dispersion_is_that_of_a_table_of_counts() -> None:
    stats = pytest.importorskip("scipy.stats")
    hits = np.array([7, 19, 11, 4, 15, 9, 30])
    expected = stats.chi2_contingency(np.array([hits, SLOTS - hits]))
    assert dispersion_p(np.full(hits.size, SLOTS), hits) == pytest.approx(expected.pvalue, rel=1e-9)


def test_an_even_run_is_not_flagged_and_its_p_values_are_spread() -> None:
    found = [of(even_run(6 * HOUR_STATIONARITY, seed)) for seed in range(40)]
    smallest = [one.dispersion_p or 0 for one in found]
    assert sum(p < 0.01 for p in smallest) <= 3
    assert sum(p < 0.5 for p in smallest) >= 10
    assert found[0].blocks == 36


@pytest.mark.parametrize("largest", [np.array([], np.int64), np.full(5 * HOUR_STATIONARITY, 7), np.arange(2 * BLOCK_S)])
def test_too_short_or_all_alike_gives_no_p_value(largest: Int64Array) -> None:
    assert of(largest) == Stationarity()


def test_seconds_in_which_nothing_ran_do_not_count_as_quiet_ones() -> None:
    largest = even_run(12 * HOUR_STATIONARITY)
    second = np.arange(largest.size)
    kept = (second // BLOCK_S % 2 == 0) | (second % 30 < 15)
    found = stationarity(second[kept], largest[kept])
    assert found.blocks == 72
    assert (found.dispersion_p or 0) > 0.01


# What varies more slowly than a run can show: found where the run has a trace of it, and named where it has none.


def p_of(largest: Int64Array) -> float:
    found = slow_change(np.arange(largest.size), largest, 5)
    assert found is not None
    return found.p


def test_the_ratio_of_half_waves_has_the_f_distribution() -> None:
    stats, fft = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.fft")
    averages = np.random.default_rng(1).normal(size=100) + np.linspace(0, 0.6, 100)
    squares = fft.dct(averages, norm="ortho")[1 : COMPARED + 1] ** 2
    rest = squares[SLOW:].mean()
    expected = [stats.f.sf(squares[:k].mean() / rest, k, COMPARED - SLOW) for k in TESTED]
    assert list(slow_p(averages)) == pytest.approx(expected, rel=1e-9)


def test_even_runs_are_seldom_flagged_whatever_their_bursts() -> None:
    """Of 60 at 1 %, more than four are flagged in less than one of a thousand cases."""
    found = [p_of(slow_run("even", 2 * HOUR, np.random.default_rng(seed)).largest_ns) for seed in range(60)]
    assert sum(p < 0.01 for p in found) <= 4
    assert sum(p < 0.5 for p in found) >= 6


@pytest.mark.parametrize(("kind", "hours"), [("beat", 8), ("daily", 4), ("warming", 1)])
def test_a_slow_change_of_which_the_run_has_a_part_is_found(kind: str, hours: int) -> None:
    found = [p_of(slow_run(kind, hours * HOUR, np.random.default_rng(seed)).largest_ns) for seed in range(10)]
    assert sum(p < 0.01 for p in found) >= 9


@pytest.mark.parametrize(("periods", "refused"), [(2, True), (5, True), (9, True), (30, False)])
def test_a_forecast_needs_ten_periods_of_the_slowest_rhythm(periods: int, refused: bool) -> None:
    largest = smooth(8)
    largest += (3_000 * np.cos(np.arange(largest.size) * 2 * np.pi * periods / largest.size)).astype(np.int64)
    assert ("SLOW" in codes(forecast_of(largest))) == refused


def test_a_beat_of_two_clocks_that_only_the_body_shows_is_refused() -> None:
    """The offset moves the body by a part of its width. The rates of large latencies do not tell it from chance."""
    largest = smooth(8)
    largest += (2_000 * np.cos(np.arange(largest.size) * 2 * np.pi / (24 * HOUR))).astype(np.int64)
    found = forecast_of(largest)
    assert codes(found) == ["SLOW"]
    assert found.limit_ns is None
