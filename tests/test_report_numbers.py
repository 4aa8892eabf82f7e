# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence

from analysis_records import MS, block, record
from report_cases import (
    many_threads,
    normal,
    nothing,
    off_the_grid,
    one_sample,
    row,
    tables,
    words,
)

from rtproof.judge.analyse import analyse
from rtproof.record.requirement import Requirement
from rtproof.report import number_format
from rtproof.report.blocks import Table
from rtproof.report.number_format import POOLED, limit_marker, plotted_streams
from rtproof.report.sections import numbers

DUE = "Activations"
OBSERVED = "Observed"
SCHEDULE = "Schedule"


def test_offset_and_jitter_are_apart_and_drift_is_named_off_the_grid() -> None:
    assert "drift [ppm]" not in tables(numbers.numbers_section(normal()))[OBSERVED].header
    thread = row(tables(numbers.numbers_section(off_the_grid()))[OBSERVED], "thread 0")
    assert float(thread["drift [ppm]"].replace(",", "")) > 0
    assert float(thread["offset [us]"]) > 3


def main_table(blocks: Sequence[object]) -> Table:
    assert isinstance(blocks[0], Table)
    return blocks[0]


def test_what_n_does_not_carry_is_unknown() -> None:
    table = main_table(list(numbers.percentiles_section(normal())))
    assert row(table, "99.9 %")["observed [us]"] != "unknown"
    assert row(table, "99.99 %")["observed [us]"] == "unknown"
    assert row(table, "99.99 %")["95 % interval"].endswith(" to unknown")
    assert {each[1] for each in main_table(list(numbers.percentiles_section(one_sample()))).rows} == {"unknown"}
    assert {each[2] for each in main_table(list(numbers.percentiles_section(nothing()))).rows} == {"unknown"}
    assert "the run has too few values for this percentile" in words(numbers.percentiles_section(normal()))


def test_a_plot_of_many_threads_keeps_the_worst_and_says_so() -> None:
    drawn, left_out = plotted_streams(many_threads(), 3)
    assert [stream.name for stream in drawn] == ["thread 17", "thread 18", "thread 19", POOLED]
    assert [stream.role for stream in drawn] == ["part", "part", "part", "whole"]
    assert left_out == "Of 20 threads the 3 with the largest maxima are drawn."
    assert plotted_streams(normal(), 3)[1] == ""


def test_every_limit_has_a_line_of_its_own_once() -> None:
    limits = (Requirement(MS), Requirement(5_000), Requirement(5_000, at_most_ns=MS))
    markers = limit_marker(analyse(record([block([10_000] * 10)]), limits, 1), "y", number_format.US)
    assert [(marker.axis, marker.at) for marker in markers] == [("y", 1000.0), ("y", 5.0)]
