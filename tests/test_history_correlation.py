# SPDX-License-Identifier: Apache-2.0
"""Runs that resemble their neighbours, and a pattern of the week, are no changes."""

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from history_cases import DAY, run

from rtproof import report
from rtproof.compare.change_points import (
    mean_changes,
    neighbour_correlation,
    stretch_contrast,
    visible_step,
    weekday,
    weekly_pattern,
    widened_error,
    without_weekly,
)
from rtproof.compare.history import analyse_history
from rtproof.compare.run_metrics import RunFigures
from rtproof.report.pages import history_page
from rtproof.report.pages.comparison_page import ComparisonContext
from rtproof.report.pages.history_page import history_sections, history_title

STARTS = [(20_000 + day) * DAY for day in range(80)]
WEEKEND = np.array([weekday(start) >= 5 for start in STARTS], float)
TOLD = ComparisonContext(())


def autoregressive(phi: float, seed: int, n: int = 80) -> list[float]:
    """Deviation 1."""
    series = np.random.default_rng(seed).standard_normal(n)
    for at in range(1, n):
        series[at] = phi * series[at - 1] + np.sqrt(1 - phi * phi) * series[at]
    return [float(one) for one in series]


def histories(phi: float, times: int = 40) -> Iterator[list[float]]:
    return (autoregressive(phi, 1_000 + seed) for seed in range(times))


@pytest.mark.parametrize("phi", [0.6, 0.8])
def test_correlated_runs_are_hardly_ever_a_change(phi: float) -> None:
    before = sum(bool(mean_changes(one)) for one in histories(phi))
    now = sum(bool(mean_changes(one, correlation=neighbour_correlation(one))) for one in histories(phi))
    assert before >= 8, "else there is nothing to correct"
    assert now <= before // 3


def test_the_correlation_is_known_roughly_also_across_a_step() -> None:
    for phi in (0.0, 0.6, 0.8):
        for step in (0.0, 3.0, 20.0):
            shifted = [np.array(one) + step * (np.arange(80) >= 33) for one in histories(phi)]
            found = np.mean([neighbour_correlation(one.tolist()) for one in shifted])
            assert abs(found - phi) < 0.2, (phi, step)


def test_constant_and_few_values_have_none() -> None:
    assert neighbour_correlation([1.0] * 30) == 0
    assert neighbour_correlation([1.0, 2.0] * 3) == 0
    assert neighbour_correlation([1.0, 2.0] * 30) == 0, "alternating runs make a test err towards no change"


def test_what_a_difference_of_two_means_varies_by() -> None:
    """Against simulation, and the long form against the exact one."""
    random = np.random.default_rng(4)
    drawn = np.array([autoregressive(0.7, int(seed), 30) for seed in random.integers(0, 10**9, 4_000)])
    apart = drawn[:, 12:].mean(axis=1) - drawn[:, :12].mean(axis=1)
    inside = 11 * drawn[:, :12].var(axis=1, ddof=1) + 17 * drawn[:, 12:].var(axis=1, ddof=1)
    found = stretch_contrast(12, 18, 0.7)
    # The process of the test begins in its stationary distribution.
    assert found.variance == pytest.approx(apart.var(), rel=0.1)
    assert found.squares == pytest.approx(inside.mean(), rel=0.05)
    assert found.freedom == pytest.approx(2 * inside.mean() ** 2 / inside.var(), rel=0.15)
    exact, long = stretch_contrast(140, 160, 0.6), stretch_contrast(140, 161, 0.6)
    assert long.variance == pytest.approx(exact.variance, rel=0.05)
    assert long.squares == pytest.approx(exact.squares, rel=0.05)
    assert long.freedom == pytest.approx(exact.freedom, rel=0.05)


def test_independent_runs_are_weighed_as_before() -> None:
    assert stretch_contrast(5, 7, 0.0).freedom == 10
    assert widened_error(5, 7, 0.0) == pytest.approx(1)
    assert visible_step(80) < visible_step(80, 0.5) < visible_step(80, 0.8)


def test_a_large_step_of_correlated_runs_is_still_found() -> None:
    found = 0
    for one in histories(0.6):
        shifted = [value + 8 * (at >= 40) for at, value in enumerate(one)]
        found += any(
            abs(change.at - 40) <= 3 for change in mean_changes(shifted, correlation=neighbour_correlation(shifted))
        )
    assert found >= 28


def test_a_weekly_pattern_is_named_and_taken_out() -> None:
    values = (np.array(autoregressive(0.3, 7)) - 2.5 * WEEKEND).tolist()
    found = weekly_pattern(values, STARTS)
    assert found is not None
    assert {found.smallest} <= {5, 6}
    assert sum(found.by_day) == pytest.approx(0)
    assert found.p <= 0.001
    cleaned = np.array(without_weekly(values, STARTS, found))
    assert abs(cleaned[WEEKEND == 1].mean() - cleaned[WEEKEND == 0].mean()) < 0.8


def test_neither_a_step_nor_correlated_runs_are_a_weekly_pattern() -> None:
    for phi in (0.0, 0.8):
        named = [
            weekly_pattern((np.array(one) + 3.0 * (np.arange(80) > 41)).tolist(), STARTS) for one in histories(phi, 30)
        ]
        assert sum(one is not None for one in named) <= 2


def test_without_four_weeks_nothing_is_said_of_the_week() -> None:
    values = (np.array(autoregressive(0.0, 7)) - 5 * WEEKEND).tolist()
    assert weekly_pattern(values[:27], STARTS[:27]) is None
    sundays = [(20_001 + 7 * week) * DAY for week in range(80)]
    assert weekly_pattern(values, sundays) is None


def weekend_runs() -> list[RunFigures]:
    """Two runs a day, at weekends a third faster."""
    made = (run(n, 0.67 if WEEKEND[n // 2] else 1.0) for n in range(140))
    return [replace(one, started_ns=STARTS[n // 2] + n % 2 * DAY // 2) for n, one in enumerate(made)]


def test_a_history_names_the_pattern_and_calls_it_no_change() -> None:
    found = analyse_history(weekend_runs())
    (sequence,) = found.sequences
    assert sequence.places == ()
    median = sequence.metrics[0]
    assert median.weekly is not None
    text = " ".join(report.render("text", history_title(found), history_sections(found, TOLD)).decode().split())
    assert "a weekly pattern in" in text
    assert "A pattern that comes back each week is not called a change." in text
    plain = json.loads(history_page.encode_history(found, TOLD))
    days = plain["sequences"][0]["metrics"][0]["weekly"]["days"]
    assert len(days) == 7
    assert max(days[5:]) < min(days[:5])


def test_a_history_of_correlated_runs_says_so() -> None:
    factors = np.exp(0.2 * np.array(autoregressive(0.8, 3, 60)))
    found = analyse_history([run(n, float(factor)) for n, factor in enumerate(factors)])
    text = " ".join(report.render("text", history_title(found), history_sections(found, TOLD)).decode().split())
    assert "Correlation of neighbouring runs: 50 % 0." in text
    assert json.loads(history_page.encode_history(found, TOLD))["sequences"][0]["metrics"][0]["correlation_ratio"] > 0.3
