# SPDX-License-Identifier: Apache-2.0

from analysis_records import MS, block, record
from report_cases import hostile, many_threads, negative, no_limit, normal, nothing, one_sample

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement
from rtproof.report import number_format
from rtproof.report.number_format import POOLED, latency_unit, limit_marker, plotted_streams, report_streams


def test_the_pool_comes_last_and_only_where_it_says_something_new() -> None:
    assert [stream.name for stream in report_streams(normal())] == ["thread 0", "thread 1", POOLED]
    assert [stream.name for stream in report_streams(one_sample())] == ["thread 0"]
    assert [stream.name for stream in report_streams(nothing())] == [POOLED]


def test_a_plot_of_many_threads_keeps_the_worst_and_says_so() -> None:
    drawn, left_out = plotted_streams(many_threads(), 3)
    assert [stream.name for stream in drawn] == ["thread 17", "thread 18", "thread 19", POOLED]
    assert [stream.role for stream in drawn] == ["part", "part", "part", "whole"]
    assert left_out == "Of 20 threads the 3 with the largest maxima are drawn."
    assert plotted_streams(normal(), 3)[1] == ""


def test_fields_are_named_where_there_are_several() -> None:
    names = [stream.name for stream in report_streams(hostile())]
    assert all(name.startswith(("thread 0 ", "thread 1 ", POOLED)) for name in names)
    assert len(set(names)) == 3


def test_the_limit_is_a_marker_in_the_unit_of_the_plot() -> None:
    (marker,) = limit_marker(normal(), "x", number_format.US)
    assert (marker.name, marker.axis, marker.at) == ("limit 500 us", "x", 500.0)
    assert limit_marker(no_limit(), "x", number_format.US) == ()


def test_every_limit_has_a_line_of_its_own_once() -> None:
    limits = (Requirement(MS), Requirement(5_000), Requirement(5_000, at_most_ns=MS))
    markers = limit_marker(analyse(record([block([10_000] * 10)]), limits, 1), "y", number_format.US)
    assert [(marker.axis, marker.at) for marker in markers] == [("y", 1000.0), ("y", 5.0)]


def test_one_unit_suits_all_latencies() -> None:
    assert latency_unit(normal()) == number_format.US
    assert latency_unit(negative()) == number_format.US
    assert latency_unit(nothing()) == number_format.NS
