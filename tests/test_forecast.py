# SPDX-License-Identifier: Apache-2.0
"""What a forecast says of smooth runs, when it refuses, and that it never has a say in the verdict."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analysis_records import SECOND, block, fact, file, record
from forecast_cases import HOUR, HOURS, SLOW, analysed, codes, forecast_of, long_run, message, smooth
from msgspec import structs
from simulated_seconds import rate_above, second_maxima

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Event, Int64Array, Moment, SystemFile
from rtproof.simulation.events import KnownTail
from rtproof.tail.forecast import TailUnits, data_refusals, tail_units

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
    usual, near, far = (forecast_of(smooth(), horizon) for horizon in (None, 2 * T_NS, 60 * T_NS))
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
    near = forecast_of(smooth(), 60 * SECOND)
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


CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"files": (file(CLOCK, "hpet"),)}, "the clock is hpet"),
        ({"events": (Event(T_NS, 0, "stalled", f"no more; since_ns={T_NS - SECOND}"),)}, "did not run again"),
        ({"events": (Event(SECOND, 0, "kernel", "sched: RT throttling activated"),)}, "the kernel throttled"),
    ],
    ids=["clock", "stalled", "invalid"],
)
def test_data_that_is_not_whole(parts: dict[str, Any], says: str) -> None:
    found = forecast_of(smooth(), **parts)
    assert codes(found) == ["DATA"]
    assert says in message(found, "DATA")


def test_missed_activations_count_where_the_tail_is() -> None:
    pooled = analyse(long_run(smooth(1)), None, 1).pooled
    for at, refused in ((pooled.seconds.max.argmax(), 1), (pooled.seconds.max.argmin(), 0)):
        missed = np.where(np.arange(pooled.seconds.max.size) == at, 3, 0)
        spoiled = replace(pooled, seconds=structs.replace(pooled.seconds, missed=missed))
        assert len(list(data_refusals(spoiled, ()))) == refused


def test_few_seconds_are_told_without_a_look_at_the_values() -> None:
    found = forecast_of(smooth(0.5))
    assert codes(found) == ["FEW"]
    assert (found.ladder, found.stationarity, found.top) == (None, None, None)
    assert "about 3 min 20 s more" in message(found, "FEW")


def test_two_mechanisms() -> None:
    largest, generator = smooth(), np.random.default_rng(3)
    at = generator.random(largest.size) < 0.01
    largest[at] = generator.normal(8e6, 2e5, int(at.sum())).astype(np.int64)
    found = forecast_of(largest)
    assert "FIT" in codes(found)


def test_a_heavy_tail() -> None:
    found = forecast_of(smooth(tail=KnownTail(shape=0.9)))
    assert "HEAVY" in codes(found)


def test_a_limit_far_beyond_the_data() -> None:
    found = forecast_of(smooth(2, seed=4, tail=KnownTail(threshold_ns=50_000, scale_ns=20_000, shape=0.45)))
    assert "WIDE" in codes(found)


@pytest.mark.parametrize("kind", ["storm", "storm2", "drift"])
def test_a_run_that_is_not_even(kind: str) -> None:
    largest = second_maxima(kind, 0.3, 24 * HOUR, KnownTail(), np.random.default_rng(2))
    found = forecast_of(largest)
    assert "DRIFT" in codes(found)


def test_far_has_a_warning_and_too_far_is_refused() -> None:
    far, too_far = forecast_of(smooth(), 50 * T_NS), forecast_of(smooth(), 110 * T_NS)
    assert (codes(far), len(far.warnings)) == ([], 1)
    assert codes(too_far) == ["FAR"]
    assert "8 h 48 min" in message(too_far, "FAR")


STAT = "cpu  1 0 2 3 0 0 0 {} 0 0"
STOLEN = (file("/proc/stat", STAT.format(100)), file("/proc/stat", STAT.format(150), Moment.END))


@pytest.mark.parametrize("files", [STOLEN, (file("/proc/cpuinfo", "flags : fpu hypervisor"),)], ids=["steal", "guest"])
def test_somebody_below(files: tuple[SystemFile, ...]) -> None:
    assert codes(forecast_of(smooth(), files=files)) == ["EXTERNAL"]


def test_virtual_time_has_no_forecast_at_all() -> None:
    assert analysed(smooth(), facts=(fact("virtual_time", "qemu icount", Moment.START),)).forecast is None


def test_a_coarse_clock_and_one_that_is_fine_enough_for_a_tail_of_tens() -> None:
    assert codes(forecast_of(smooth() // 100_000 * 100_000)) == ["COARSE"]
    found = forecast_of(smooth() // 1_000 * 1_000)
    assert found.step_ns == 1_000
    assert codes(found) == []
