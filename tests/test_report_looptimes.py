# SPDX-License-Identifier: Apache-2.0
"""Loop times of several systems or threads in one plot."""

import numpy as np
from report_cases import application

from rtproof.report import stage_tables
from rtproof.summary.loops import DrawnPoints


def times(*lengths_us: int, width: int = 1) -> DrawnPoints:
    values = np.array(lengths_us, np.int64) * 1_000
    return DrawnPoints(width, np.arange(values.size, dtype=np.int64), values - 500 * (width > 1), values)


def test_the_one_that_varies_most_is_drawn_first_and_all_are_named_in_the_order_given() -> None:
    plot = stage_tables.loop_time_plot([("calm", times(4_999, 5_001)), ("wild", times(4_000, 6_000))])
    assert plot
    assert [curve.name for curve in plot.curves] == ["wild", "calm"]
    assert plot.says == (
        "The time from the top of each loop to the next. calm: 4,999 us to 5,001 us. wild: 4,000 us to 6,000 us."
    )
    assert plot.y_ends == (3_900.0, 6_100.0)


def test_of_many_loops_the_ends_are_drawn() -> None:
    plot = stage_tables.loop_time_plot([("run", times(5_000, 5_200, width=8))], "title", "And more.")
    assert plot
    assert plot.says == "The shortest and the longest of each 8 loops. run: 4,999.5 us to 5,200 us. And more."
    assert [(curve.name, curve.y) for curve in plot.curves] == [
        ("run longest", (5_000.0, 5_200.0)),
        ("run shortest", (4_999.5, 5_199.5)),
    ]


def test_nothing_makes_no_plot() -> None:
    assert stage_tables.loop_time_plot([]) is None


def test_threads_that_were_not_asked_for_are_left_out() -> None:
    record = application().record
    (only,) = stage_tables.loop_time_plots(record, {1: 10})
    assert only == 1
    assert stage_tables.loop_time_plots(record, {}) == {}
