# SPDX-License-Identifier: Apache-2.0

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from analysis_records import MS, block, record
from report_cases import (
    many_threads,
    missed,
    negative,
    normal,
    nothing,
    off_the_grid,
    one_sample,
    row,
    tables,
    words,
)
from test_episodes import LIMIT_CLUSTERS, analysed

from rtproof import articles
from rtproof.judge.analyse import analyse
from rtproof.judge.requirement import Requirement
from rtproof.report import number_format
from rtproof.report.blocks import Table
from rtproof.report.number_format import POOLED, limit_marker, plotted_streams
from rtproof.report.pages import campaign_page
from rtproof.report.sections import numbers, timeline
from rtproof.report.sections.numbers import Outlier, outliers_together
from rtproof.schema.published import analysis_dict

DUE = "Activations"
OBSERVED = "Observed"
SCHEDULE = "Schedule"
SPREAD = "Offset"


def test_threads_and_their_pool_are_counted() -> None:
    due = tables(numbers.numbers_section(normal()))[DUE]
    assert [each[0] for each in due.rows] == ["thread 0", "thread 1", "all threads"]
    assert row(due, "thread 1")["CPU"] == "1"
    pooled = row(due, "all threads")
    assert (pooled["due"], pooled["ran"], pooled["missed"], pooled["missed of due"]) == ("6,000", "6,000", "0", "0 %")


def test_missed_activations_bring_the_schedule_view() -> None:
    found = tables(numbers.numbers_section(missed()))
    thread = row(found[DUE], "thread 0")
    assert (thread["due"], thread["ran"], thread["missed"], thread["missed of due"]) == (
        "3,810",
        "3,012",
        "798",
        "20.94 %",
    )
    assert row(found[OBSERVED], "thread 0")["n"] == "3,012"
    assert row(found[SCHEDULE], "thread 0")["n"] == "3,810"
    assert row(found[SCHEDULE], "thread 0")["max [us]"] == "400,000.000"


def test_values_before_their_time_stay_negative() -> None:
    thread = row(tables(numbers.numbers_section(negative()))[OBSERVED], "thread 0")
    assert (thread["min [us]"], thread["max [us]"]) == ("-3.835", "9.000")


def test_offset_and_jitter_are_apart_and_drift_is_named_off_the_grid() -> None:
    assert "drift [ppm]" not in tables(numbers.numbers_section(normal()))[SPREAD].header
    thread = row(tables(numbers.numbers_section(off_the_grid()))[SPREAD], "thread 0")
    assert float(thread["drift [ppm]"].replace(",", "")) > 0
    assert float(thread["offset [us]"]) > 3


SHARES = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"]
MAIN = "Latency not exceeded by this share of the activations, "


def main_table(blocks: Sequence[object]) -> Table:
    assert isinstance(blocks[0], Table)
    return blocks[0]


def test_seven_shares_with_their_intervals() -> None:
    table = main_table(list(numbers.percentiles_section(normal())))
    assert table.caption == f"{MAIN}all threads (n = 6,000 observed)"
    assert [each[0] for each in table.rows] == SHARES
    middle = row(table, "50 %")
    low, high = map(float, re.findall(r"[0-9.]+", middle["95 % interval"]))
    assert low <= float(middle["observed [us]"]) <= high


def test_what_n_does_not_carry_is_unknown() -> None:
    table = main_table(list(numbers.percentiles_section(normal())))
    assert row(table, "99.9 %")["observed [us]"] != "unknown"
    assert row(table, "99.99 %")["observed [us]"] == "unknown"
    assert row(table, "99.99 %")["95 % interval"].endswith(" to unknown")
    assert {each[1] for each in main_table(list(numbers.percentiles_section(one_sample()))).rows} == {"unknown"}
    assert {each[2] for each in main_table(list(numbers.percentiles_section(nothing()))).rows} == {"unknown"}
    assert "the run has too few values for this percentile" in words(numbers.percentiles_section(normal()))


def test_missed_activations_show_in_the_schedule_only() -> None:
    table = main_table(list(numbers.percentiles_section(missed())))
    assert table.caption.endswith("thread 0 (n = 3,012 observed, n = 3,810 schedule)")
    high = row(table, "99 %")
    assert (high["observed [us]"], high["schedule [us]"]) == ("6.000", "381,000.000")


def outlier(due_ms: float, late_ms: float, thread: str = "thread 0") -> Outlier:
    return Outlier(thread, "0", 0, int(due_ms * MS), int(late_ms * MS))


def test_the_largest_come_first_with_time_thread_and_cpu() -> None:
    table = tables(numbers.outliers_section(normal()))["The largest of 6,000 activations that ran; due at"]
    assert len(table.rows) == numbers.SHOWN
    first = dict(zip(table.header, table.rows[0], strict=True))
    assert first["latency [us]"] == "1,250.000"
    assert (first["thread"], first["CPU"], first["activation"]) == ("thread 1", "1", "1,500")
    assert (first["due at [s]"], first["date and time (UTC)"]) == ("1.500250", "2023-11-14 22:13:21.500")
    latencies = [float(each[1].replace(",", "")) for each in table.rows]
    assert latencies == sorted(latencies, reverse=True)


def test_outliers_that_were_late_at_the_same_time_share_a_letter() -> None:
    a, b, c = outlier(10, 5), outlier(12, 1, "thread 1"), outlier(14.5, 3, "thread 2")
    alone, touching = outlier(30, 1), outlier(31, 2)
    d, e = outlier(50, 2), outlier(51, 2)
    assert outliers_together([a, e, b, alone, touching, c, d]) == {a: "A", b: "A", c: "A", d: "B", e: "B"}


def test_letters_do_not_run_out() -> None:
    pairs = [outlier(at * 10 + shift, 5) for at in range(28) for shift in (0, 1)]
    letters = sorted(set(outliers_together(pairs).values()), key=lambda letter: (len(letter), letter))
    assert letters[0] == "A"
    assert letters[25:] == ["Z", "AA", "AB"]


def test_a_maximum_that_is_a_lower_bound_only_is_worth_nothing() -> None:
    told = campaign_page.article_evidence_rows(articles.load("bootlin"), {"gpio-g45-rt", "gpio-g45-plain"})
    assert {label for label, _, _ in told} == {"GPIO, SAM9M10-G45, RT"}


CAPTION = "Activations above each level, as the agent counted them"


def test_a_row_for_each_level(tmp_path: Path) -> None:
    values = np.random.default_rng(2).gamma(4.0, 5_000.0, 100_000).astype(np.int64)
    values[70_000:70_004] = LIMIT_CLUSTERS + 1_000_000
    analysis = analysed(tmp_path / "a", values)
    rows = tables(timeline.levels_section(analysis))[CAPTION].rows
    assert [row[3] for row in rows] == ["limit", "99.9 % of 60,000 values", "99.99 % of 60,000 values"]
    assert rows[0][:3] == ("0", "2", "100.000")
    assert (rows[0][4], rows[0][7]) == ("100", "1")
    told = analysis_dict(analysis)["levels"]
    assert [each["learned"] for each in told] == [False, True, True]
    assert told[0]["above_observed_count"] == told[0]["listed_count"] == int(rows[0][5]) == 4
    assert [f"{each['dispersion_ratio']:,.2f}" for each in told] == [row[9] for row in rows]


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
