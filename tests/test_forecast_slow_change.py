# SPDX-License-Identifier: Apache-2.0
"""What varies more slowly than a run can show: found where the run has a trace of it, and named where it has none."""

from dataclasses import replace

import numpy as np
import pytest
from forecast_cases import HOUR, codes, forecast_of, message, smooth
from slow_runs import KINDS, SlowRun, slow_run

from rtproof.record.contents import Int64Array
from rtproof.tail.forecast_sentences import forecast_lines, unseen_rhythms_sentence
from rtproof.tail.stationarity import COMPARED, SLOW, TESTED, slow_change, slow_p


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


def test_averages_without_any_fast_variation_are_not_divided_by_nothing() -> None:
    assert list(slow_p(np.zeros(50))) == [1.0] * len(TESTED)


def test_even_runs_are_seldom_flagged_whatever_their_bursts() -> None:
    """Of 60 at 1 %, more than four are flagged in less than one of a thousand cases."""
    found = [p_of(slow_run("even", 2 * HOUR, np.random.default_rng(seed)).largest_ns) for seed in range(60)]
    assert sum(p < 0.01 for p in found) <= 4
    assert sum(p < 0.5 for p in found) >= 6


@pytest.mark.parametrize(("kind", "hours"), [("beat", 8), ("daily", 4), ("warming", 1)])
def test_a_slow_change_of_which_the_run_has_a_part_is_found(kind: str, hours: int) -> None:
    found = [p_of(slow_run(kind, hours * HOUR, np.random.default_rng(seed)).largest_ns) for seed in range(10)]
    assert sum(p < 0.01 for p in found) >= 9


def test_a_beat_of_two_clocks_that_only_the_body_shows_is_refused() -> None:
    """The offset moves the body by a part of its width. The rates of large latencies do not tell it from chance."""
    largest = smooth(8)
    largest += (2_000 * np.cos(np.arange(largest.size) * 2 * np.pi / (24 * HOUR))).astype(np.int64)
    found = forecast_of(largest)
    assert codes(found) == ["SLOW"]
    assert message(found, "SLOW").startswith(
        "the latencies change slowly over the whole run, and the run does not show three whole periods of what varies: "
    )
    assert "of the run and above" in message(found, "SLOW")
    assert found.limit_ns is None


def test_a_rhythm_that_returns_often_is_no_slow_change() -> None:
    largest = smooth(8)
    largest += (2_000 * np.cos(np.arange(largest.size) * 2 * np.pi / (HOUR // 4))).astype(np.int64)
    assert p_of(largest) > 0.01


def test_a_change_of_the_load_for_the_second_half_is_refused() -> None:
    largest = smooth(2)
    largest[HOUR:] += 3_000
    assert "SLOW" in codes(forecast_of(largest))


def test_what_cannot_be_seen_is_named_with_every_forecast() -> None:
    """A daily rhythm at its turn leaves no trace in an hour: a forecast is given, which its condition makes true."""
    found = forecast_of(smooth(1, seed=2))
    assert found.limit_ns is not None
    assert found.longest_rhythm_ns == 20 * 60 * 10**9
    said = (
        "it holds only if the 10 h are like the 1 h measured: a rhythm longer than 20 min (a third of the run), such "
    )
    assert any(line.startswith(said) and "that of a day" in line for line in forecast_lines(found))


@pytest.mark.parametrize(("hours", "example"), [(71, "a day"), (80, "a week"), (503, "a week")])
def test_the_rhythm_that_is_named_is_longer_than_the_run_can_show(hours: int, example: str) -> None:
    found = replace(forecast_of(smooth(1, seed=2)), measured_ns=hours * HOUR * 10**9)
    assert f"such as that of {example}, cannot be seen" in unseen_rhythms_sentence(found)
    months = replace(found, measured_ns=600 * HOUR * 10**9)
    assert "such as" not in unseen_rhythms_sentence(months)


def test_too_few_minutes_with_values_are_not_tested() -> None:
    largest = smooth(1)[:1_380]
    assert slow_change(np.arange(largest.size), largest, 5) is None
    assert slow_change(np.arange(4 * HOUR), np.full(4 * HOUR, 7), 5) is None
    assert slow_change(np.array([], np.int64), np.array([], np.int64), 5) is None


def test_weeks_are_tested_in_longer_blocks() -> None:
    largest = np.random.default_rng(3).integers(5_000, 20_000, 14 * 24 * HOUR)
    assert p_of(largest) > 0.001
    largest[largest.size // 2 :] += 500
    assert p_of(largest) < 1e-6


def test_a_run_knows_what_comes_after_it() -> None:
    runs: list[SlowRun] = [slow_run(kind, HOUR, np.random.default_rng(4)) for kind in KINDS]
    for run in runs:
        assert run.largest_ns.size == HOUR
        assert run.level_ns > 50_000
    again = slow_run("daily", HOUR, np.random.default_rng(4))
    assert again.level_ns == runs[list(KINDS).index("daily")].level_ns
