# SPDX-License-Identifier: Apache-2.0

import pytest
import report_cases as cases
from report_cases import CASES, only_plot

from rtproof.report.sections import distribution


@pytest.mark.parametrize("name", [name for name in CASES if name != "nothing"])
def test_every_activation_is_in_a_bin_or_said_to_lie_beyond(name: str) -> None:
    analysis = CASES[name]()
    drawn = only_plot(distribution.histogram_section(analysis))
    whole = drawn.curves[-1]
    beyond = 0 if "None lies beyond" in drawn.says else int(drawn.says.split("Beyond lie ")[1].split(",")[0])
    assert sum(whole.y) + beyond == analysis.pooled.observed.count
    assert all(y > 0 for y in whole.y)
    assert drawn.log_y
    assert drawn.style == "bars"


def test_threads_and_their_pool_add_up_bin_by_bin() -> None:
    one, other, pool = only_plot(distribution.histogram_section(cases.normal())).curves
    sums = dict.fromkeys(pool.x, 0.0)
    for curve in (one, other):
        for x, y in zip(curve.x, curve.y, strict=True):
            sums[x] += y
    assert tuple(sums.values()) == pool.y
    assert pool.role == "whole"


def test_what_lies_beyond_is_said_with_the_largest() -> None:
    assert (
        "Beyond lie 2, the largest at 400,000.000 us." in only_plot(distribution.histogram_section(cases.missed())).says
    )
    assert max(only_plot(distribution.histogram_section(cases.missed())).curves[0].x) < 10


def test_latencies_before_their_time_have_bins() -> None:
    assert min(only_plot(distribution.histogram_section(cases.negative())).curves[0].x) == pytest.approx(-3.85)


def test_a_single_value_is_one_bin() -> None:
    assert only_plot(distribution.histogram_section(cases.one_sample())).curves[0].y == (1.0,)
    assert only_plot(distribution.histogram_section(cases.all_equal())).curves[0].y == (3_000.0,)


def test_the_limit_is_marked_where_there_is_one() -> None:
    assert [marker.at for marker in only_plot(distribution.histogram_section(cases.normal())).markers] == [500.0]
    assert only_plot(distribution.histogram_section(cases.no_limit())).markers == ()


def test_many_threads_are_thinned_out() -> None:
    assert len(only_plot(distribution.histogram_section(cases.many_threads())).curves) == distribution.THREADS + 1
    assert (
        "Of 20 threads the 8 with the largest maxima are drawn."
        in only_plot(distribution.histogram_section(cases.many_threads())).says
    )


def test_bins_of_a_summary_that_an_edge_cuts_are_named() -> None:
    assert sum(only_plot(distribution.histogram_section(cases.summary_only())).curves[0].y) == 3


def test_nothing_has_no_histogram() -> None:
    assert distribution.histogram_section(cases.nothing()) == []
