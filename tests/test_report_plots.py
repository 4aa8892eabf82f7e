# SPDX-License-Identifier: Apache-2.0

import re

import numpy as np
import pytest
from analysis_records import MS, block, record
from hypothesis import given
from hypothesis import strategies as st
from report_cases import CASES, LIMIT, heat_maps, many_threads, missed, normal, only_plot, plots

from rtproof.core.phrases import value
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Int64Array, Seconds
from rtproof.record.requirement import Requirement
from rtproof.report import cumulative_curves, plot_data
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section
from rtproof.report.cumulative_curves import POINTS, NamedCounts, cumulative_plots
from rtproof.report.formats import svg
from rtproof.report.number_format import POOLED, US, limit_marker, plotted_streams
from rtproof.report.sections import distribution, timeline
from rtproof.summary import density
from rtproof.summary.counts import counts_of_values


def long_run(hours: int) -> Analysis:
    """Hours of seconds, of which one in the middle has the largest latency."""
    second = np.arange(hours * 3_600)
    largest = np.where(second == second.size // 2, 900_000, 5_000 + second % 7)
    ones = np.ones_like(second)
    whole = record([block([5_000])], seconds={0: Seconds(second, ones, ones * 0, largest)})
    return analyse(whole, LIMIT, 1)


@pytest.mark.parametrize("name", CASES)
def test_every_activation_is_in_the_map_once(name: str) -> None:
    analysis = CASES[name]()
    maps = heat_maps(timeline.timeline_section(analysis))
    assert len(maps) == (analysis.pooled.seconds.second.size > 1)
    assert all(sum(map(sum, each.rows)) == analysis.pooled.observed.count for each in maps)
    for each in maps:
        assert f"{analysis.pooled.observed.count:,} activations is " in each.says


def few_negative() -> Analysis:
    return analyse(record([block([-2_000, 0, 5_000, 5_001] * 500)]), LIMIT, 1)


def test_what_is_not_positive_is_the_lowest_row_of_a_logarithmic_axis() -> None:
    (heat,) = heat_maps(timeline.timeline_section(few_negative()))
    assert heat.log_y
    assert heat.rows[0] == (500, 500)
    assert heat.rows[1] == (500, 500)
    assert heat.y_edges == (2.304, 4.608, 5.12)
    assert heat.says.endswith("The lowest row holds 1,000 activations below 64 ns.")


def test_mostly_negative_latencies_are_mapped_on_a_linear_axis() -> None:
    (heat,) = heat_maps(timeline.timeline_section(analyse(record([block([-3_835, -2_000, -5] * 1_000)]), LIMIT, 1)))
    assert not heat.log_y
    assert "lowest row" not in heat.says
    assert heat.y_edges[0] <= -3.835 < -0.005 < heat.y_edges[-1]


def test_a_long_run_is_thinned_without_losing_its_largest() -> None:
    blocks = timeline.timeline_section(long_run(54))
    (heat,), (drawn,) = heat_maps(blocks), plots(blocks)
    assert len(heat.curves[0].x) <= density.COLUMNS
    assert len(drawn.curves[0].x) <= timeline.COLUMNS
    assert max(heat.curves[0].y) == max(drawn.curves[0].y) == 900.0
    assert drawn.bin_width == pytest.approx(500 / 3_600)
    assert drawn.x_label == heat.x_label == "time since measuring began [h]"


def test_a_plot_of_many_threads_keeps_the_worst_and_says_so() -> None:
    drawn, left_out = plotted_streams(many_threads(), 3)
    assert [stream.name for stream in drawn] == ["thread 17", "thread 18", "thread 19", POOLED]
    assert [stream.role for stream in drawn] == ["part", "part", "part", "whole"]
    assert left_out == "Of 20 threads the 3 with the largest maxima are drawn."
    assert plotted_streams(normal(), 3)[1] == ""


def test_every_limit_has_a_line_of_its_own_once() -> None:
    limits = (Requirement(MS), Requirement(5_000), Requirement(5_000, at_most_ns=MS))
    markers = limit_marker(analyse(record([block([10_000] * 10)]), limits, 1), "y", US)
    assert [(marker.axis, marker.at) for marker in markers] == [("y", 1000.0), ("y", 5.0)]


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


def test_a_limit_far_beyond_the_values_is_not_drawn() -> None:
    named = [NamedCounts("run", counts_of_values(gamma(1_000)))]
    near, far = (cumulative_plots(named, markers=(Marker("limit", "x", at),))[0].markers for at in (20.0, 1e6))
    assert (len(near), far) == (1, ())


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


def test_missed_activations_bring_the_schedule() -> None:
    observed, schedule = only_plot(distribution.ccdf_section(missed())).curves
    assert (observed.role, schedule.role, schedule.name) == ("part", "other", "thread 0, schedule")
    at_100_ms = [
        max((y for x, y in zip(c.x, c.y, strict=True) if x >= 100_000), default=0) for c in (observed, schedule)
    ]
    assert at_100_ms[1] > 100 * at_100_ms[0]
    assert [curve.role for curve in only_plot(distribution.ccdf_section(normal())).curves] == ["part", "part", "whole"]


def body_plot(blocks: list[Block]) -> Plot:
    """The histogram in equal bins, which is the last plot of its section."""
    return plots(blocks)[-1]


@pytest.mark.parametrize("name", [name for name in CASES if name != "nothing"])
def test_a_histogram_that_does_not_reach_far_enough_has_another_with_everything(name: str) -> None:
    analysis = CASES[name]()
    drawn = plots(distribution.histogram_section(analysis))
    body, counts = drawn[-1], analysis.pooled.observed_counts
    assert [plot.foremost for plot in drawn] == [True, False][: len(drawn)]
    assert len(drawn) == (1 if "No value lies beyond" in body.says or not (counts.lo > 0).any() else 2)
    if len(drawn) > 1:
        whole = drawn[0].curves[-1]
        assert sum(whole.y) == counts.n[counts.lo + (counts.hi - counts.lo) // 2 > 0].sum()
        assert list(whole.x) == sorted(set(whole.x))
        assert whole.y[-1] == 0
        assert drawn[0].markers[-1].name == f"largest {value(analysis.pooled.observed.max)}"
        assert whole.x[-1] > drawn[0].markers[-1].at


def test_bins_of_any_width_count_what_lies_between_their_edges() -> None:
    counts = counts_of_values(np.array([-5, 1, 1, 9, 10, 10, 99, 100]))
    assert counts.bins_between(np.array([1, 10, 100])).tolist() == [3, 3]


@pytest.mark.parametrize("finest", [1, 1_000])
def test_edges_of_growing_bins_reach_to_the_largest_number(finest: int) -> None:
    edges = plot_data.log_edges(finest, LARGEST_VALUE, finest)
    assert (np.diff(edges) > 0).all()
    assert edges[-1] == LARGEST_VALUE


@given(st.integers(1, 10**9), st.integers(0, 10**10), st.sampled_from([1, 1_000]))
def test_edges_of_growing_bins_hold_the_ends_and_increase(low: int, reach: int, finest: int) -> None:
    edges = plot_data.log_edges(low * finest, low * finest + reach, finest)
    assert (np.diff(edges) > 0).all()
    assert edges[0] == low * finest
    assert edges[-1] > low * finest + reach
    assert not (edges % finest).any()


@pytest.mark.parametrize("name", [name for name in CASES if name != "nothing"])
def test_every_activation_is_in_a_bin_or_said_to_lie_beyond(name: str) -> None:
    analysis = CASES[name]()
    drawn = body_plot(distribution.histogram_section(analysis))
    whole = drawn.curves[-1]
    said = re.search(r"([\d,]+) values? (?:lies|lie) beyond these bins", drawn.says)
    assert said or "No value lies beyond these bins" in drawn.says
    beyond = int(said[1].replace(",", "")) if said else 0
    assert sum(whole.y) + beyond == analysis.pooled.observed.count
    assert all(y > 0 for y in whole.y)
    assert drawn.log_y
    assert drawn.style == "bars"


def cells(n: int, threads: int = 1) -> dict[str, str]:
    summary = analyse(record([block([1_000] * (n - 2) + [2_000, 3_000])]), workers=1).pooled
    assert (summary.series.period_ns, len(summary.threads)) == (MS, threads)
    table = cumulative_curves.threshold_table("caption", [("task", summary)])
    return dict(zip(table.header, table.rows[0], strict=True))


@pytest.mark.parametrize(("n", "threshold"), [(99_999, "unknown: n below 100,000"), (100_000, "2.000")])
def test_the_threshold_needs_a_hundred_thousand_values(n: int, threshold: str) -> None:
    found = cells(n)
    assert found["99.999 % threshold [us]"] == threshold
    assert (found["maximum [us]"], found["one value exceeds it every"]) == ("3.000", "1 min 40 s")


def test_a_title_longer_than_a_line_is_whole_in_a_file() -> None:
    title = "Share of activations later than a latency: " + ", ".join(f"load {at} of the loads" for at in range(6))
    curves = (Curve("one", (1.0, 2.0), (1.0, 2.0)),)
    section = Section("plots", "Plots", (Plot(title, "says", "x", "y", curves),))
    pytest.importorskip("matplotlib", reason="there is no matplotlib")
    drawn = " ".join(re.findall(r">([^<>]+)</(?:text|tspan)>", svg.draw(title, [section]).decode()))
    assert "load 5 of the loads" in drawn
    assert "..." not in drawn
