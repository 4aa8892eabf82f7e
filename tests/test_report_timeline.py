# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import SECOND, SERIES, Counted, block, record, slice_of
from report_cases import CASES, LIMIT, all_negative, heat_maps, missed, no_limit, normal, nothing, one_sample, plots

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Seconds, View
from rtproof.report.sections import timeline
from rtproof.summary import density


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
        assert f"{analysis.pooled.observed.count:,} activations by due time and latency" in each.says


def test_the_line_is_the_largest_of_all_threads() -> None:
    analysis = normal()
    (heat,) = heat_maps(timeline.timeline_section(analysis))
    assert [y * 1_000 for y in heat.curves[0].y] == pytest.approx(analysis.pooled.seconds.max.tolist())
    assert "the largest of all is 1,250 us, in second 1." in heat.says
    assert [(marker.axis, marker.at) for marker in heat.markers] == [("y", 500.0)]
    assert heat.log_y
    assert heat.y_edges[-1] == pytest.approx(1_310.72)


def test_the_largest_of_each_column_lies_in_its_highest_filled_cell() -> None:
    (heat,) = heat_maps(timeline.timeline_section(normal()))
    for at, largest in enumerate(heat.curves[0].y):
        highest = max(r for r, row in enumerate(heat.rows) if row[at])
        assert heat.y_edges[highest] <= largest < heat.y_edges[highest + 1]


def few_negative() -> Analysis:
    return analyse(record([block([-2_000, 0, 5_000, 5_001] * 500)]), LIMIT, 1)


def test_what_is_not_positive_is_the_lowest_row_of_a_logarithmic_axis() -> None:
    (heat,) = heat_maps(timeline.timeline_section(few_negative()))
    assert heat.log_y
    assert heat.rows[0] == (500, 500)
    assert heat.rows[1] == (500, 500)
    assert heat.y_edges == (2.304, 4.608, 5.12)
    assert heat.says.endswith("The lowest row holds 1,000 activations at or below zero.")


def test_mostly_negative_latencies_are_mapped_on_a_linear_axis() -> None:
    (heat,) = heat_maps(timeline.timeline_section(analyse(record([block([-3_835, -2_000, -5] * 1_000)]), LIMIT, 1)))
    assert not heat.log_y
    assert "lowest row" not in heat.says
    assert heat.y_edges[0] <= -3.835 < -0.005 < heat.y_edges[-1]


def test_the_map_says_that_missed_activations_are_not_in_it() -> None:
    (heat,) = heat_maps(timeline.timeline_section(missed()))
    assert heat.says.endswith("798 missed activations never ran and are not in the map.")


def test_the_map_says_when_it_is_made_of_summaries() -> None:
    ten_seconds = np.arange(10_000)
    dues = [(ten_seconds + 10_000 * number) * SERIES.period_ns for number in range(3)]
    counted = Counted()
    parts = tuple(slice_of(SERIES, View.OBSERVED, [5_000] * 10_000, due.tolist(), counted) for due in dues)
    seconds = Seconds(np.arange(30), np.full(30, 1_000), np.zeros(30, np.int64), np.full(30, 5_000))
    whole = record([], (replace(SERIES, has_samples=False),), slices=parts, seconds={0: seconds})
    (heat,) = heat_maps(timeline.timeline_section(analyse(whole, LIMIT, 1)))
    assert heat.rows == ((10_000, 10_000, 10_000),)
    assert heat.says.endswith("from summaries of about 10.0 s each, which stand where their middle lies.")


def test_threads_have_their_own_maxima() -> None:
    analysis = normal()
    (drawn,) = plots(timeline.timeline_section(analysis))
    assert [curve.name for curve in drawn.curves] == ["thread 0", "thread 1"]
    assert [max(curve.y) for curve in drawn.curves] == [625.0, 1_250.0]
    assert drawn.x_ends == (0.0, 3.0)
    assert drawn.says == "The largest latency in each 1 second per thread; thread 1 has the largest, 1,250 us."


def test_missed_activations_are_shown_when_they_were_due() -> None:
    largest, lost = plots(timeline.timeline_section(missed()))
    assert (lost.title, lost.curves[0].x, lost.curves[0].y) == ("Missed activations", (1.0, 3.0), (399.0, 399.0))
    assert lost.says.startswith("798 activations due never ran, in 2 seconds;")
    assert lost.x_ends == largest.x_ends


def test_a_long_run_is_thinned_without_losing_its_largest() -> None:
    blocks = timeline.timeline_section(long_run(54))
    (heat,), (drawn,) = heat_maps(blocks), plots(blocks)
    assert len(heat.curves[0].x) <= density.COLUMNS
    assert len(drawn.curves[0].x) <= timeline.COLUMNS
    assert max(heat.curves[0].y) == max(drawn.curves[0].y) == 900.0
    assert drawn.bin_width == pytest.approx(500 / 3_600)
    assert drawn.x_label == heat.x_label == "time since measuring began [h]"


def test_negative_maxima_are_drawn_on_a_linear_axis() -> None:
    (drawn,) = plots(timeline.timeline_section(all_negative()))
    assert not drawn.log_y
    assert max(drawn.curves[0].y) == pytest.approx(-0.005)


def test_short_runs_and_no_limit() -> None:
    assert heat_maps(timeline.timeline_section(one_sample())) == []
    assert plots(timeline.timeline_section(one_sample()))[0].curves[0].y == (4.321,)
    assert plots(timeline.timeline_section(no_limit()))[0].markers == ()
    assert timeline.timeline_section(nothing()) == []
    assert SECOND == 10**9
