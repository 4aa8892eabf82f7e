# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from export_cases import small_analysis, summary_analysis
from stage_records import staged

from rtproof.core.errors import UserError
from rtproof.exporters import bins
from rtproof.judge.analyse import analyse


def rows(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()]


def test_what_lies_off_the_scale_has_its_own_rows(tmp_path: Path) -> None:
    sentence = bins.export(small_analysis(), tmp_path / "a", {"width": "1us", "count": "2"})
    assert rows(tmp_path / "a") == [
        ["from_ns", "to_ns", "thread0", "thread1"],
        ["", "0", "1", "0"],
        ["0", "1000", "1", "3"],
        ["1000", "2000", "1", "0"],
        ["2000", "", "3", "0"],
    ]
    assert sentence.endswith("2 bins of 1us, observed view")


def test_the_scale_may_begin_below_zero(tmp_path: Path) -> None:
    bins.export(small_analysis(), tmp_path / "a", {"width": "500ns", "count": "1", "start": "-500ns"})
    assert rows(tmp_path / "a")[1:] == [["", "-500", "0", "0"], ["-500", "0", "1", "0"], ["0", "", "5", "3"]]


def test_the_schedule_view_has_the_missed_ones(tmp_path: Path) -> None:
    bins.export(small_analysis(), tmp_path / "a", {"width": "1s", "count": "1", "start": "-1s", "view": "schedule"})
    assert [row[2:] for row in rows(tmp_path / "a")[1:]] == [["0", "0"], ["1", "0"], ["9", "3"]]


@pytest.mark.parametrize(("width", "count"), [("2us", 2500), ("500ns", 2000), ("1us", 10_000), ("1us", 400)])
def test_the_scales_of_the_articles(tmp_path: Path, width: str, count: int) -> None:
    bins.export(small_analysis(), tmp_path / "a", {"width": width, "count": str(count)})
    found = rows(tmp_path / "a")
    assert len(found) == 1 + 1 + count + 1
    assert [sum(int(row[column]) for row in found[1:]) for column in (2, 3)] == [6, 3]


def test_one_field_of_several(tmp_path: Path) -> None:
    several = analyse(staged({"irq": [1_000, 2_500], "task": [7_000, 9_000]}))
    sentence = bins.export(several, tmp_path / "a", {"width": "1us", "count": "2", "field": "task"})
    assert rows(tmp_path / "a")[0] == ["from_ns", "to_ns", "thread0.task"]
    assert "2 bins" in sentence
    with pytest.raises(UserError, match="field=moon is none of: irq, task"):
        bins.export(several, tmp_path / "b", {"field": "moon"})


def test_a_summary_serves_with_a_note(tmp_path: Path) -> None:
    sentence = bins.export(summary_analysis(), tmp_path / "a", {"width": "10us", "count": "10"})
    assert [row[2] for row in rows(tmp_path / "a")[1:]] == ["0", "2", "0", "0", "0", "0", "0", "0", "1", "0", "0", "0"]
    assert "known to one part in 1024" in sentence


@pytest.mark.parametrize(
    "options",
    [
        {"width": "0us"},
        {"width": "2"},
        {"width": "-1us"},
        {"count": "0"},
        {"count": "many"},
        {"count": "1e6"},
        {"count": "99999999999"},
        {"start": "5"},
        {"view": "both"},
        {"width": "1000d", "count": "10000000"},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(UserError):
        bins.export(small_analysis(), tmp_path / "a", options)
    assert list(tmp_path.iterdir()) == []
