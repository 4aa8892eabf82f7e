# SPDX-License-Identifier: Apache-2.0

import pytest
from report_cases import (
    CASES,
    all_equal,
    all_negative,
    missed,
    negative,
    no_limit,
    normal,
    nothing,
    one_sample,
    only_plot,
    plots,
    words,
)

from rtproof.report.sections import distribution

WITHOUT = {"nothing", "one_sample", "all_negative", "all_equal"}


@pytest.mark.parametrize("name", sorted(set(CASES) - WITHOUT))
def test_curves_fall_from_at_most_one_and_end_at_nothing(name: str) -> None:
    drawn = only_plot(distribution.ccdf_section(CASES[name]()))
    assert drawn.log_x
    assert drawn.log_y
    for curve in drawn.curves:
        assert list(curve.y) == sorted(curve.y, reverse=True)
        assert 0 < curve.y[0] <= 1
        assert curve.y[-1] == 0
        assert curve.y.count(0) == 1


def test_the_curve_ends_at_the_largest_value() -> None:
    analysis = normal()
    assert [curve.x[-1] * 1_000 for curve in only_plot(distribution.ccdf_section(analysis)).curves] == pytest.approx(
        [625_000, 1_250_000, 1_250_000]
    )


def test_missed_activations_bring_the_schedule() -> None:
    observed, schedule = only_plot(distribution.ccdf_section(missed())).curves
    assert (observed.role, schedule.role, schedule.name) == ("part", "other", "thread 0, schedule")
    at_100_ms = [
        max((y for x, y in zip(c.x, c.y, strict=True) if x >= 100_000), default=0) for c in (observed, schedule)
    ]
    assert at_100_ms[1] > 100 * at_100_ms[0]
    assert [curve.role for curve in only_plot(distribution.ccdf_section(normal())).curves] == ["part", "part", "whole"]


def test_the_sentence_says_what_the_curve_shows() -> None:
    assert only_plot(distribution.ccdf_section(missed())).says == (
        "Of those that ran, at most 50 % were later than 6 us; at most 0.1 % were later than 7 us; "
        "the largest of 3,012 activations is 400 ms."
    )


def test_values_that_a_logarithm_does_not_have_are_counted() -> None:
    assert only_plot(distribution.ccdf_section(negative())).says.endswith(
        "150 activations at or below zero lie left of the scale."
    )


@pytest.mark.parametrize("analysis", [one_sample, all_negative, all_equal])
def test_where_there_is_no_curve_it_is_said(analysis: object) -> None:
    assert callable(analysis)
    blocks = distribution.ccdf_section(analysis())
    assert plots(blocks) == []
    assert "no curve to draw" in words(blocks)


def test_the_limit_is_marked() -> None:
    assert [marker.name for marker in only_plot(distribution.ccdf_section(normal())).markers] == ["limit 500 us"]
    assert only_plot(distribution.ccdf_section(no_limit())).markers == ()
    assert distribution.ccdf_section(nothing()) == []
