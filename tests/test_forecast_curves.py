# SPDX-License-Identifier: Apache-2.0

import math
from dataclasses import replace

import numpy as np
import pytest
from forecast_cases import HOUR, HOURS, forecast_of, smooth

from rtproof.simulation.events import KnownTail
from rtproof.tail import forecast
from rtproof.tail.forecast_model import Forecast, TailUnits
from rtproof.tail.thresholds import ThresholdFit

SECOND = 10**9


@pytest.fixture(scope="module")
def units() -> TailUnits:
    return TailUnits(np.arange(HOURS * HOUR), smooth(), HOURS * HOUR * SECOND)


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


def test_measured_and_fitted_lie_together_where_the_fit_holds(
    units: TailUnits, found: Forecast, rung: ThresholdFit
) -> None:
    drawn = forecast.return_levels(found, rung, units)
    inside = np.interp(np.log(drawn.measured_period[:-9]), np.log(drawn.period), drawn.fitted)
    assert np.abs(inside / drawn.measured[:-9] - 1).max() < 0.1


def test_a_refused_one_shows_its_own_limit_and_not_a_forecast(
    units: TailUnits, found: Forecast, rung: ThresholdFit
) -> None:
    refused = replace(found, limit_ns=None)
    drawn = forecast.return_levels(refused, rung, units)
    share = units.unit_ns / found.horizon_ns
    assert drawn.high[-1] == pytest.approx(rung.region.level_upper(share))


def test_the_mean_excess_of_an_exponential_tail_is_level(units: TailUnits) -> None:
    drawn = forecast.mean_excess(units, 2_000)
    assert drawn is not None
    assert (drawn.low < KnownTail().scale_ns).mean() > 0.8
    assert (drawn.high > KnownTail().scale_ns).mean() > 0.8
    assert (np.diff(drawn.threshold) > 0).all()


def test_mean_excesses_are_computed_as_they_are_named() -> None:
    values = np.random.default_rng(2).integers(0, 10**6, 500)
    drawn = forecast.mean_excess(TailUnits(np.arange(500), values, 500 * SECOND), 400)
    assert drawn is not None
    for threshold, mean in zip(drawn.threshold.tolist(), drawn.mean.tolist(), strict=True):
        over = [value - threshold for value in values.tolist() if value > threshold]
        assert mean == pytest.approx(math.fsum(over) / len(over))
        assert len(over) >= forecast.FEWEST_EXCESSES_SHOWN


def test_values_all_alike_have_no_mean_excess() -> None:
    assert forecast.mean_excess(TailUnits(np.arange(99), np.full(99, 7), 99 * SECOND), 50) is None


def test_nearly_all_of_a_good_fit_lies_in_the_band(rung: ThresholdFit) -> None:
    drawn = forecast.probabilities(rung)
    assert (np.diff(drawn.expected) > 0).all()
    assert (drawn.low < drawn.expected).all()
    assert (drawn.expected < drawn.high).all()
    assert ((drawn.low < drawn.fitted) & (drawn.fitted < drawn.high)).mean() > 0.8


def test_without_a_fit_nothing_is_drawn() -> None:
    assert forecast.drawn_units(forecast_of(smooth(0.1))) is None
