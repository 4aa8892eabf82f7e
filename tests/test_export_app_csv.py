# SPDX-License-Identifier: Apache-2.0

import csv
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import fact
from app_cases import APP, TABLE, app_record
from export_cases import small_analysis
from stage_records import VIRTUAL, staged

from rtproof.core.errors import UserError
from rtproof.exporters import app_csv
from rtproof.judge.analyse import analyse

EXPECTED = """"one and two"
thread,loop,target_us,top_us,top_error_us,work_start_us,work_end_us,work_duration_us,loop_time_us,slept,slack_us
0,0,0.000,40.000,40.000,50.000,1050.000,1000.000,6271.000,1,3950.000
0,1,5000.000,6311.000,1311.000,6320.000,7100.000,780.000,3727.000,1,2900.000
0,2,10000.000,10038.000,38.000,10048.000,15000.000,4952.000,5001.000,0,0.000
0,3,15000.000,15039.000,39.000,15040.000,20000.001,4960.001,5000.999,0,-0.001
0,4,20000.000,20039.999,39.999,20041.000,20041.500,0.500,,,

statistic,work_duration_us,loop_time_us,top_error_us
minimum,0.500,3727.000,38.000
maximum,4960.001,6271.000,1311.000
average,2338.500,5000.000,293.600
standard_deviation,2418.129,1038.584,568.745
count,5,4,5
loops_that_could_sleep,4
loops_without_sleep,2
smallest_slack_us,-0.001
sum_of_loop_times_us,19999.999
first_to_last_top_us,19999.999
"""
FIELDS = {
    "top": [40_000, 1_311_000, 38_000, 39_000, 39_999],
    "start": [50_000, 1_320_000, 48_000, 40_000, 41_000],
    "end": [1_050_000, 2_100_000, 5_000_000, 5_000_001, 41_500],
}


def lines(path: Path, comment: str = "words") -> list[str]:
    app_csv.export(analyse(app_record(TABLE, TABLE[:3], comment=comment)), path, {})
    return path.read_text().splitlines()


def test_the_comment_the_loops_and_the_statistics(tmp_path: Path) -> None:
    made = replace(staged(FIELDS, series=APP), facts=(fact("probe_options", "work=none,comment=one and two"),))
    sentence = app_csv.export(analyse(made), tmp_path / "a.csv", {})
    assert (tmp_path / "a.csv").read_text() == EXPECTED
    assert sentence == f"{tmp_path / 'a.csv'}: 15 samples, three for each loop"


def test_statistics_are_those_of_the_rows_of_all_threads(tmp_path: Path) -> None:
    made = lines(tmp_path / "a.csv")
    empty = made.index("")
    rows = list(csv.DictReader(made[1:empty]))
    told = {row[0]: row[1:] for row in csv.reader(made[empty + 1 :])}
    assert [row["thread"] for row in rows] == ["0"] * 5 + ["1"] * 3
    for at, column in enumerate(("work_duration_us", "loop_time_us", "top_error_us")):
        values = [float(row[column]) for row in rows if row[column]]
        numbers = [min(values), max(values), statistics.mean(values), statistics.stdev(values), len(values)]
        names = ("minimum", "maximum", "average", "standard_deviation", "count")
        assert [float(told[name][at]) for name in names] == pytest.approx(numbers, abs=0.0006)
    total = sum(float(row["loop_time_us"]) for row in rows if row["loop_time_us"])
    assert float(told["sum_of_loop_times_us"][0]) == pytest.approx(total)
    assert told["loops_without_sleep"] == [str([row["slept"] for row in rows].count("0"))]


@pytest.mark.parametrize(
    ("comment", "first"),
    [
        ('a "b"', '"a ""b"""'),
        ("=1+1", '" =1+1"'),
        ("@cell", '" @cell"'),
        ("one\ntwo\x1b[0m", '"one two [0m"'),
        ("grün", '"gr\\xfcn"'),
        ("", '"rtproof on x86_64 6.1.0-rt"'),
    ],
)
def test_a_comment_is_one_harmless_cell(tmp_path: Path, comment: str, first: str) -> None:
    assert lines(tmp_path / "a.csv", comment)[0] == first


def test_a_comment_may_be_given_afterwards_and_have_commas(tmp_path: Path) -> None:
    made = analyse(app_record(TABLE, comment="words"))
    for at, comment in enumerate(("one, two", "")):
        app_csv.export(made, tmp_path / str(at), {"comment": comment})
    assert [(tmp_path / str(at)).read_text().splitlines()[0] for at in (0, 1)] == ['"one, two"', '"words"']


def test_what_is_no_time_is_said(tmp_path: Path) -> None:
    made = app_record(TABLE)
    virtual = replace(made, facts=(*made.facts, VIRTUAL))
    said = [app_csv.export(analyse(one), tmp_path / str(at), {}) for at, one in enumerate((made, virtual))]
    assert ["virtual time" in sentence for sentence in said] == [False, True]


def test_a_loop_behind_a_hole_has_no_time(tmp_path: Path) -> None:
    app_csv.export(analyse(app_record(TABLE, gaps={1: 2})), tmp_path / "a.csv", {})
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()[1:7]))
    assert [(row["loop"], row["loop_time_us"] != "") for row in rows] == [
        *(("0", True), ("1", False), ("4", True), ("5", True), ("6", False)),
    ]


def test_other_probes_and_summaries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="app-csv needs a run of the probe app, whose fields are top, start, end"):
        app_csv.export(small_analysis(), tmp_path / "a.csv", {})
    made = app_record(TABLE)
    bare = replace(made, series=tuple(replace(each, has_samples=False) for each in made.series))
    with pytest.raises(UserError, match="kept only a summary"):
        app_csv.export(replace(small_analysis(), record=bare), tmp_path / "a.csv", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000"), (-1, "-0.001"), (-1_999, "-1.999"), (2**62, "4611686018427387.904")]
)
def test_microseconds_are_exact(ns: int, text: str) -> None:
    assert app_csv.us(ns) == text
