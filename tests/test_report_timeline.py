# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from analysis_records import SECOND, block, record
from report_cases import CASES, LIMIT, all_negative, heat_maps, missed, no_limit, normal, nothing, one_sample, plots

from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Analysis
from rtproof.record import Seconds
from rtproof.report.sections import timeline


def long_run(hours: int) -> Analysis:
    """Hours of seconds, of which one in the middle has the largest latency."""
    second = np.arange(hours * 3_600)
    largest = np.where(second == second.size // 2, 900_000, 5_000 + second % 7)
    ones = np.ones_like(second)
    whole = record([block([5_000])], seconds={0: Seconds(second, ones, ones * 0, largest)})
    return analyse(whole, LIMIT, 1)


@pytest.mark.parametrize("name", CASES)
def test_every_thread_and_second_is_in_the_map_once(name: str) -> None:
    analysis = CASES[name]()
    expected = sum(int((each.seconds.obtained > 0).sum()) for each in analysis.summaries)
    maps = heat_maps(timeline.render(analysis))
    assert len(maps) == (analysis.pooled.seconds.second.size > 1)
    assert all(sum(map(sum, each.rows)) == expected for each in maps)


def test_the_line_is_the_largest_of_all_threads() -> None:
    analysis = normal()
    (heat,) = heat_maps(timeline.render(analysis))
    assert [y * 1_000 for y in heat.curves[0].y] == pytest.approx(analysis.pooled.seconds.max.tolist())
    assert "the largest of all is 1,250 us, in second 1." in heat.says
    assert [(marker.axis, marker.at) for marker in heat.markers] == [("y", 500.0)]


def test_threads_have_their_own_maxima() -> None:
    analysis = normal()
    (drawn,) = plots(timeline.render(analysis))
    assert [curve.name for curve in drawn.curves] == ["thread 0", "thread 1"]
    assert [max(curve.y) for curve in drawn.curves] == [625.0, 1_250.0]
    assert drawn.x_ends == (0.0, 3.0)
    assert drawn.says == "The largest latency in each 1 second per thread; thread 1 has the largest, 1,250 us."


def test_missed_activations_are_shown_when_they_were_due() -> None:
    largest, lost = plots(timeline.render(missed()))
    assert (lost.title, lost.curves[0].x, lost.curves[0].y) == ("Missed activations", (1.0, 3.0), (399.0, 399.0))
    assert lost.says.startswith("798 activations due never ran, in 2 seconds;")
    assert lost.x_ends == largest.x_ends


def test_a_long_run_is_thinned_without_losing_its_largest() -> None:
    blocks = timeline.render(long_run(54))
    (heat,), (drawn,) = heat_maps(blocks), plots(blocks)
    assert len(heat.curves[0].x) <= timeline.MAP_COLUMNS
    assert len(drawn.curves[0].x) <= timeline.COLUMNS
    assert max(heat.curves[0].y) == max(drawn.curves[0].y) == 900.0
    assert drawn.bin_width == pytest.approx(500 / 3_600)
    assert drawn.x_label == heat.x_label == "time since measuring began [h]"


def test_negative_maxima_are_drawn_on_a_linear_axis() -> None:
    (drawn,) = plots(timeline.render(all_negative()))
    assert not drawn.log_y
    assert max(drawn.curves[0].y) == pytest.approx(-0.005)


def test_short_runs_and_no_limit() -> None:
    assert heat_maps(timeline.render(one_sample())) == []
    assert plots(timeline.render(one_sample()))[0].curves[0].y == (4.321,)
    assert plots(timeline.render(no_limit()))[0].markers == ()
    assert timeline.render(nothing()) == []
    assert SECOND == 10**9
