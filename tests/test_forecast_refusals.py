# SPDX-License-Identifier: Apache-2.0
"""Each of the reasons to refuse, by a cause that is put into an otherwise smooth run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from analysis_records import SECOND, array, fact, file
from forecast_cases import HOUR, HOURS, analysed, codes, forecast_of, long_run, message, smooth

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Event, Moment, Record
from rtproof.simulation.events import KnownTail, second_maxima
from rtproof.tail.forecast import density_peaks
from rtproof.tail.forecast_model import ForecastHorizon

CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
T_NS = HOURS * HOUR * SECOND


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"files": (file(CLOCK, "hpet"),)}, "the clock is hpet"),
        ({"events": (Event(T_NS, 0, "stalled", f"no more; since_ns={T_NS - SECOND}"),)}, "did not run from"),
        ({"events": (Event(SECOND, 0, "kernel", "sched: RT throttling activated"),)}, "the kernel throttled"),
    ],
    ids=["clock", "stalled", "invalid"],
)
def test_data_that_is_not_whole(parts: dict[str, Any], says: str) -> None:
    found = forecast_of(smooth(), **parts)
    assert codes(found) == ["DATA"]
    assert says in message(found, "DATA")


def stalls(lateness: int, missed: int, at: int = 1_000) -> Record:
    """A smooth run in which one activation is late and some behind it never ran."""
    run = long_run(smooth())
    (one,) = run.read_blocks(run.chunk_refs)
    values = one.values.copy()
    values[at] = lateness
    changed = replace(one, values=values[: values.size - missed], gap_position=array(at), gap_missed=array(missed))
    assert run.end is not None
    totals = (replace(run.end.totals[0], obtained=values.size - missed, missed=missed),)
    refs = (replace(run.chunk_refs[0], count=values.size - missed),)
    return replace(
        run, end=replace(run.end, totals=totals), chunk_refs=refs, read_blocks=lambda wanted: iter((changed,))
    )


def test_missed_activations_in_the_tail() -> None:
    found = analyse(stalls(3 * SECOND + 5, 3), None, 1).forecast
    assert found is not None
    assert "3 activations in the tail never ran" in message(found, "DATA")


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
    peak = message(found, "FIT").rpartition(" and ")[2]
    assert 7_500 < float(peak.removesuffix(" us").replace(",", "")) < 8_500


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


def test_a_question_that_reaches_too_far() -> None:
    found = forecast_of(smooth(), ForecastHorizon(11 * T_NS))
    assert codes(found) == ["FAR"]
    assert "8 h 48 min" in message(found, "FAR")


def test_who_asks_for_it_may_look_farther_but_not_everywhere() -> None:
    found = forecast_of(smooth(), ForecastHorizon(50 * T_NS, far=True))
    assert codes(found) == []
    assert codes(forecast_of(smooth(), ForecastHorizon(101 * T_NS, far=True))) == ["FAR"]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (
            {
                "files": (
                    file("/proc/stat", "cpu  1 0 2 3 0 0 0 100 0 0"),
                    file("/proc/stat", "cpu  1 0 2 3 0 0 0 150 0 0", Moment.END),
                )
            },
            "the hypervisor took 500 ms",
        ),
        ({"files": (file("/proc/cpuinfo", "flags : fpu hypervisor"),)}, "this is a virtual machine"),
    ],
    ids=["steal", "guest"],
)
def test_somebody_below(parts: dict[str, Any], says: str) -> None:
    found = forecast_of(smooth(), **parts)
    assert codes(found) == ["EXTERNAL"]
    assert says in message(found, "EXTERNAL")


def test_virtual_time_has_no_forecast_at_all() -> None:
    assert analysed(smooth(), facts=(fact("virtual_time", "qemu icount", Moment.START),)).forecast is None


def around(*middles: float, each: int = 2_000, spread: float = 0.03) -> np.ndarray:
    generator = np.random.default_rng(4)
    drawn = [generator.normal(middle, spread * middle, each) for middle in middles]
    return np.concatenate(drawn).astype(np.int64)


def near(found: tuple[int, ...], *middles: float) -> None:
    assert found == pytest.approx(middles, rel=0.1)


def test_each_gathering_is_a_peak() -> None:
    near(density_peaks(around(20_000, 8e6, 16.7e6)), 20_000, 8e6, 16.7e6)


def test_a_small_gathering_far_out_counts_and_chance_does_not() -> None:
    values = np.concatenate((around(20_000, spread=0.3), around(9e6, each=40)))
    near(density_peaks(values), 20_000, 9e6)
    near(density_peaks(np.concatenate((around(20_000, spread=0.05), np.array([5_000_000, 7_000_000])))), 20_000)


@pytest.mark.parametrize("values", [[], [-5, -3], [0, 0]])
def test_where_nothing_is_late_there_is_no_peak(values: list[int]) -> None:
    assert density_peaks(np.array(values, np.int64)) == ()


def test_a_coarse_clock_and_one_that_is_fine_enough_for_a_tail_of_tens() -> None:
    assert codes(forecast_of(smooth() // 100_000 * 100_000)) == ["COARSE"]
    found = forecast_of(smooth() // 1_000 * 1_000)
    assert found.step_ns == 1_000
    assert codes(found) == []
