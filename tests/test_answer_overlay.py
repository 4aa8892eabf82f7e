# SPDX-License-Identifier: Apache-2.0
"""The picture of all answers to edges: each answer is in it once, in the column of its time."""

import json
from bisect import bisect_right
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from report_cases import heat_maps
from stage_records import stimuli

from rtproof.judge.analyse import analyse
from rtproof.report import plot_data
from rtproof.report.blocks import HeatMap
from rtproof.report.number_format import NS, US
from rtproof.report.sections import answers
from rtproof.report.sections.answers import COLUMNS, FARTHEST, TITLE, Answers, overlay
from rtproof.summary.counts import Counts, counts_of_values

MS = 1_000_000


def picture(values: list[int], **more: Any) -> HeatMap:
    """In nanoseconds, so that the edges of columns are whole numbers."""
    found = overlay(Answers(counts_of_values(np.array(values, np.int64)), **more), NS, (), TITLE)
    assert found is not None
    return found


def rows(found: HeatMap) -> dict[str, tuple[int, ...]]:
    return {name: row for name, _, row in found.named_rows}


def column(found: HeatMap, ns: int) -> int:
    return bisect_right(found.x_edges, ns) - 1


DELAYS = st.lists(st.integers(-1_000, 1 << 62), min_size=2, max_size=60)


@given(DELAYS, st.integers(0, 3), st.integers(0, 1 << 62))
def test_every_answer_is_in_the_column_of_its_time(values: list[int], unanswered: int, apart_ns: int) -> None:
    found = picture(values, unanswered=unanswered, apart_ns=apart_ns)
    drawn = np.zeros(len(found.x_edges) - 1, np.int64)
    np.add.at(drawn, [column(found, ns) for ns in values], 1)
    assert rows(found)["answers"] == tuple(drawn.tolist())
    assert len(found.x_edges) < 3 * COLUMNS


@given(DELAYS, st.integers(0, 3))
def test_a_trace_has_the_old_level_until_its_answer_and_the_new_one_from_then_on(
    values: list[int], unanswered: int
) -> None:
    told = rows(picture(values, unanswered=unanswered))
    edges, answered = len(values) + unanswered, told["answers"]
    assert [old + new for old, new in zip(told["output old"], told["output new"], strict=True)] == [
        edges + n for n in answered
    ]
    assert (told["output old"][0], told["output new"][-1]) == (edges, len(values))
    assert list(told["output new"]) == np.cumsum(answered).tolist()


def test_the_input_changes_where_the_time_is_0() -> None:
    found = picture([300, 700])
    told = rows(found)
    at = found.x_edges.index(0)
    assert told["input edge"] == tuple(2 if each == at else 0 for each in range(len(found.x_edges) - 1))
    assert told["input old"] == tuple(2 if each <= at else 0 for each in range(len(found.x_edges) - 1))
    assert told["input new"] == tuple(2 if each >= at else 0 for each in range(len(found.x_edges) - 1))


def test_a_planted_delay_is_alone_in_its_column_and_the_latest_trace_changes_there() -> None:
    found = picture([300_000] * 100_000 + [618_000])
    at = column(found, 618_000)
    assert rows(found)["answers"][at] == 1
    assert rows(found)["output old"][at] == 1
    (latest,) = found.curves
    assert latest.name == "the latest answer, 618 us"
    assert [latest.y[at - 1], latest.y[at]] == [0.0, 100.0]
    assert "All 100,001 answers, in columns of 2 us: the fastest took 300 us, half of them at most 300 us" in found.says


def test_the_size_does_not_grow_with_the_answers() -> None:
    few, many = (
        len(json.dumps(plot_data.plot_script_data(picture(list(range(300, 300 + n)) * (n // 100), unanswered=1))))
        for n in (200, 2_000)
    )
    assert many < 1.5 * few
    assert many < 20_000


def test_an_edge_without_an_answer_keeps_the_old_level_and_reaches_the_next_edge() -> None:
    """As in article 1 without PREEMPT: all that is known is >30 ms."""
    found = picture([MS, 20 * MS], unanswered=3, apart_ns=30 * MS)
    assert found.x_edges[-1] >= 30 * MS
    assert rows(found)["output old"][-1] == 3
    (marker,) = found.markers
    assert (marker.name, marker.at, marker.role) == ("3 without answer: >30 ms", 30 * MS, "note")
    assert "3 edges had no answer (>30 ms): their output keeps the old level." in found.says


def test_an_edge_that_waited_far_longer_does_not_squeeze_the_answers() -> None:
    """The script names the marker at the edge of the plot."""
    found = picture([MS, 2 * MS], unanswered=1, apart_ns=(2 * FARTHEST + 1) * MS)
    assert found.x_edges[-1] < 3 * MS
    assert found.markers[0].at > found.x_edges[-1]


def test_answers_later_than_a_period_are_told_apart_from_none() -> None:
    found = picture([MS, 31 * MS, 45 * MS], apart_ns=30 * MS)
    assert [marker.name for marker in found.markers] == ["period 30 ms"]
    assert "2 answers came later than a period (>30 ms)." in found.says
    assert picture([MS, 2 * MS], apart_ns=30 * MS).markers == ()


def test_lost_answers_and_wide_bins_are_told() -> None:
    wide = Counts(np.array([0, 100]), np.array([0, 899]), np.array([1, 5]))
    found = overlay(Answers(wide, lost=7), NS, (), TITLE)
    assert found is not None
    assert "The times of 7 answers were lost, so these are not in it." in found.says
    assert "5 answers may belong to a neighbouring column, because the record's bins are wider." in found.says


def test_one_answer_lies_over_no_other() -> None:
    assert overlay(Answers(counts_of_values(np.array([5]))), US, (), TITLE) is None
    one = analyse(stimuli([(0, 20_000, 33_000)]))
    assert heat_maps(answers.response_section(one)) == []
