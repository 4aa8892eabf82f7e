# SPDX-License-Identifier: Apache-2.0
"""Cumulative curves: every point of them is true, the zooms show the top, and too few values make no curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import CASES, all_equal, several_fields

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array
from rtproof.report import plot_data
from rtproof.report.blocks import Marker, Plot, Table, Text
from rtproof.report.cumulative_curves import POINTS, NamedCounts, cumulative_plots, left_out_of_plot
from rtproof.report.number_format import US
from rtproof.report.sections import distribution
from rtproof.summary.counts import counts_of_values


def gamma(n: int, seed: int = 1) -> Int64Array:
    return np.random.default_rng(seed).gamma(2, 3_000, n).astype(np.int64) + 1_000


@given(st.lists(st.integers(-(10**6), 10**7), min_size=2, max_size=300))
def test_every_point_is_the_percentage_that_is_not_later(values: list[int]) -> None:
    drawn = cumulative_plots([NamedCounts("run", counts_of_values(np.array(values, np.int64)))], unit=US)
    assert bool(drawn) == (len(set(values)) > 1)
    for plot in drawn:
        (curve,) = plot.curves
        for x, y in zip(curve.x, curve.y, strict=True):
            at_most = sum(value <= round(x * 1_000) for value in values)
            assert y == pytest.approx(100 * at_most / len(values))
        assert curve.y[-1] == pytest.approx(100)


def test_the_zooms_are_those_of_the_article_and_show_the_top() -> None:
    drawn = cumulative_plots(
        [NamedCounts("a", counts_of_values(gamma(50_000))), NamedCounts("b", counts_of_values(gamma(50_000, 2)))]
    )
    assert [plot.title for plot in drawn] == [
        "Cumulative percentage",
        *(f"Cumulative percentage, the top {top} %" for top in (20, 3, 2)),
    ]
    assert [plot.y_ends[0] for plot in drawn if plot.y_ends] == pytest.approx([0, 80, 97, 98])
    for plot in drawn:
        assert [curve.name for curve in plot.curves] == ["a", "b"]
        assert plot.y_ends is not None
        assert all(plot.y_ends[0] <= y <= plot.y_ends[1] for curve in plot.curves for y in curve.y)


def test_a_curve_of_many_values_keeps_its_ends_and_stays_small() -> None:
    values = gamma(400_000)
    for plot in cumulative_plots([NamedCounts("a", counts_of_values(values))]):
        (curve,) = plot.curves
        assert len(curve.x) <= 2 * POINTS + 2
        assert curve.x[-1] == values.max() / 1_000
        assert all(after > before for before, after in zip(curve.y[:-1], curve.y[1:], strict=True))


def test_a_zoom_into_too_few_values_is_left_out() -> None:
    drawn = cumulative_plots(
        [NamedCounts("few", counts_of_values(gamma(400))), NamedCounts("many", counts_of_values(gamma(4_000)))]
    )
    assert [[curve.name for curve in plot.curves] for plot in drawn] == [["few", "many"]] * 3 + [["many"]]


def test_what_it_shows_is_said() -> None:
    values = np.concatenate((np.full(97, 5_000), np.full(3, 90_000)))
    (whole, top) = cumulative_plots([NamedCounts("run", counts_of_values(values))], zooms=(0.1,))
    assert whole.says == "run: half of 100 values are at most 5.000 us, all at most 90.000 us."
    assert "90 %" in top.says


def test_a_limit_far_beyond_the_values_is_not_drawn() -> None:
    named = [NamedCounts("run", counts_of_values(gamma(1_000)))]
    near, far = (cumulative_plots(named, markers=(Marker("limit", "x", at),))[0].markers for at in (20.0, 1e6))
    assert (len(near), far) == (1, ())


def test_nothing_makes_no_plot() -> None:
    assert cumulative_plots([]) == []
    assert distribution.cumulative_section(analyse(CASES["normal"]().record, workers=1))
    assert cumulative_plots([NamedCounts("same", counts_of_values(np.full(50, 7)))]) == []


def test_the_section_has_a_curve_and_a_row_for_each_stage() -> None:
    table, meaning, *drawn = distribution.cumulative_section(several_fields())
    assert isinstance(table, Table)
    assert isinstance(meaning, Text)
    assert "at 100 values a second is one every 17 min" in meaning.paragraphs[0]
    assert [row[0] for row in table.rows] == ["irq", "task"]
    assert len(drawn) == 4
    assert all(isinstance(plot, Plot) and [curve.name for curve in plot.curves] == ["irq", "task"] for plot in drawn)


def test_of_equal_values_only_the_table_is_left() -> None:
    assert not any(isinstance(block, Plot) for block in distribution.cumulative_section(all_equal()))


def test_curves_that_are_not_drawn_are_named() -> None:
    named = [NamedCounts("few", counts_of_values(gamma(400))), NamedCounts("many", counts_of_values(gamma(4_000)))]
    assert left_out_of_plot(named) == "Fewer than 10 values are in the top 2 % of few (n = 400): not drawn."
    assert left_out_of_plot(named[1:]) == ""


def test_the_page_is_told_what_the_axis_shows() -> None:
    drawn = cumulative_plots([NamedCounts("run", counts_of_values(gamma(1_000)))])[1]
    assert plot_data.plot_script_data(drawn)["yEnds"] == drawn.y_ends
