# SPDX-License-Identifier: Apache-2.0
"""What a forecast says of smooth runs, and that it never has a say in the verdict."""

import math
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import SECOND, block, record
from forecast_cases import HOUR, HOURS, SLOW, analysed, codes, forecast_of, smooth

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Int64Array
from rtproof.simulation.events import KnownTail, rate_above
from rtproof.tail import forecast
from rtproof.tail.forecast_model import Forecast, ForecastHorizon, TailUnits, tail_units
from rtproof.tail.thresholds import ThresholdFit

T_NS = HOURS * HOUR * SECOND


def true_level(horizon_ns: int, tail: KnownTail, rate_per_s: float = 0.3) -> float:
    """Of the process of ``smooth``, by bisection: the level that is exceeded once in the horizon."""
    low, high = tail.threshold_ns, 1e9
    while high - low > 1:
        middle = (low + high) / 2
        often = -math.expm1(-rate_above("poisson", rate_per_s, tail, middle)) * horizon_ns / SECOND > 1
        low, high = (middle, high) if often else (low, middle)
    return high


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.2])
def test_the_limit_holds_what_is_true_and_is_not_far_from_it(shape: float) -> None:
    tail, found = KnownTail(shape=shape), []
    for seed in range(12):
        one = forecast_of(smooth(seed=seed, tail=tail))
        found += [one.limit_ns / true_level(one.horizon_ns, tail)] if one.limit_ns else []
    assert len(found) >= 6
    assert sum(ratio < 1 for ratio in found) <= 1
    assert float(np.median(found)) < 1.9


def test_the_limit_is_that_of_ten_times_the_run_unless_asked_otherwise() -> None:
    usual, near, far = (
        forecast_of(smooth(), horizon)
        for horizon in (None, ForecastHorizon(2 * T_NS), ForecastHorizon(60 * T_NS, far=True))
    )
    assert usual.horizon_ns == 10 * T_NS
    assert (near.limit_ns or 0) < (usual.limit_ns or 0) < (far.limit_ns or 0)
    assert usual.warnings == ()


def test_the_rate_above_a_limit_beyond_the_data() -> None:
    found = forecast_of(smooth())
    assert found.limit_ns is not None
    largest = int(smooth().max())
    just, far = (found.rate_above(level) for level in (largest + 5_000, 10 * largest))
    assert just is not None
    assert far is not None
    once = SECOND / found.horizon_ns
    assert far == pytest.approx(once)
    assert once < just < 1 / (HOURS * HOUR) * 10
    assert found.rate_above(largest - 1) is None
    near = forecast_of(smooth(), ForecastHorizon(60 * SECOND))
    assert near.rate_above(10 * largest) == pytest.approx(1 / (HOURS * HOUR))
    assert found.rate_above(found.limit_ns) == pytest.approx(once, rel=0.02)


def test_it_has_no_say_in_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [(smooth(), 400_000), (smooth(), 150_000), (smooth(0.2), 400_000)]
    with_it = [analysed(largest, limit).verdict for largest, limit in runs]
    monkeypatch.setattr("rtproof.judge.analyse.forecast", lambda *_: None)
    without = [analysed(largest, limit).verdict for largest, limit in runs]
    assert {verdict.state for verdict in with_it} >= {State.PROVEN, State.REFUTED}
    for one, other in zip(with_it, without, strict=True):
        kept = [pair for pair in one.sentences if pair not in set(one.sentences) - set(other.sentences)]
        assert replace(one, sentences=tuple(kept)) == other


def test_a_short_run_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a short run was fitted")

    monkeypatch.setattr(forecast, "tail_limit", never)
    monkeypatch.setattr(forecast, "stationarity", never)
    assert codes(forecast_of(smooth(0.3))) == ["FEW"]


@pytest.mark.parametrize("largest", [np.full(3_000, 7), np.full(3_000, -7), -smooth(1), np.arange(3_000)], ids=str)
def test_strange_runs_are_refused_and_not_stumbled_over(largest: Int64Array) -> None:
    found = forecast_of(largest.astype(np.int64))
    assert found.limit_ns is None
    assert codes(found)


def of(*largest: int, measured_ns: int = SECOND) -> TailUnits:
    return TailUnits(np.arange(len(largest)), np.array(largest), measured_ns)


def test_the_largest_of_each_second_over_all_threads() -> None:
    series = [SLOW, replace(SLOW, id=1, thread=1)]
    run = record([block([5, 1, 9], series=series[0]), block([4, 7, 2], series=series[1])], series)
    units = tail_units(analyse(run, None, 1).pooled)
    assert units.largest_ns.tolist() == [5, 7, 9]
    assert (units.count, units.measured_ns, units.unit_ns) == (3, 3 * SECOND, SECOND)


def test_a_second_in_which_nothing_ran_is_no_unit() -> None:
    largest = np.array([1, 3 * SECOND, 5, 2], np.int64)
    run = record([block(largest.tolist(), {1: 2}, series=SLOW)], (SLOW,))
    units = tail_units(analyse(run, None, 1).pooled)
    assert units.second.tolist() == [0, 1, 4, 5]
    assert units.unit_ns == 1.5 * SECOND


@pytest.mark.parametrize(
    ("largest", "step"),
    [((5_000, 7_000, 12_000), 2_000), ((3, 3, 3), 1), ((41, 83, 125, 166), 41), ((7, 8, 5_000), 1), ((), 1)],
)
def test_the_step_of_the_clock_is_the_least_distance(largest: tuple[int, ...], step: int) -> None:
    assert of(*largest).step_ns == step


SECOND_CURVES = 10**9


@pytest.fixture(scope="module")
def units() -> TailUnits:
    return TailUnits(np.arange(HOURS * HOUR), smooth(), HOURS * HOUR * SECOND_CURVES)


@pytest.fixture(scope="module")
def found() -> Forecast:
    return forecast_of(smooth())


@pytest.fixture(scope="module")
def rung(found: Forecast) -> ThresholdFit:
    drawn = forecast.drawn_units(found)
    assert drawn is not None
    return drawn


def test_return_levels_reach_from_the_threshold_to_the_limit(
    units: TailUnits, found: Forecast, rung: ThresholdFit
) -> None:
    drawn = forecast.return_levels(found, rung, units)
    assert drawn.measured_period[-1] == units.measured_ns
    assert drawn.measured[-1] == units.largest_ns.max()
    assert drawn.period[-1] == pytest.approx(found.horizon_ns)
    assert drawn.high[-1] == pytest.approx(found.limit_ns, abs=1)
    assert (np.diff(drawn.fitted) > 0).all()
    assert (drawn.low <= drawn.fitted + 1).all()
    assert (drawn.fitted <= drawn.high + 1).all()


def test_the_mean_excess_of_an_exponential_tail_is_level(units: TailUnits) -> None:
    drawn = forecast.mean_excess(units, 2_000)
    assert drawn is not None
    assert (drawn.low < KnownTail().scale_ns).mean() > 0.8
    assert (drawn.high > KnownTail().scale_ns).mean() > 0.8
    assert (np.diff(drawn.threshold) > 0).all()
