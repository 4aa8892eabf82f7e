# SPDX-License-Identifier: Apache-2.0
"""Article 1's matrix of boards and kernels, put together from the results of several profiles."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import campaign_cases
import pytest
import report_cases

from rtproof import articles
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_outcomes, matrix_page
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.report.pages.campaign_outcomes import CellOutcome


def result(name: str, outcomes: Sequence[CellOutcome]) -> dict[str, Any]:
    profile = campaign_cases.shortened(name)
    told: dict[str, Any] = json.loads(
        encode_campaign(profile, outcomes, articles.load(profile.article), campaign_outcomes.CampaignExtras())
    )
    return told


def gpio_together(case: Any = report_cases.response) -> dict[str, Any]:
    profile = campaign_cases.shortened("bootlin-gpio")
    return result("bootlin-gpio", [campaign_cases.outcome(profile, "loaded", case(), "rt")])


def xenomai_together() -> dict[str, Any]:
    """The stages of the kernel by way of its tracer, of which each row shows its own; nothing of user space."""
    profile = campaign_cases.shortened("bootlin-xenomai")
    told = [campaign_cases.outcome(profile, "irq", report_cases.several_fields(), "rt", way=1)]
    failed = replace(campaign_cases.outcome(profile, "user", None, "rt"), failure="there is no module")
    return result("bootlin-xenomai", [*told, failed])


def tables(*told: dict[str, Any]) -> list[Table]:
    runs = [run for each in told for run in matrix_page.read_matrix_run(each)]
    return [
        block for section in matrix_page.matrix_sections(runs) for block in section.blocks if isinstance(block, Table)
    ]


def test_all_tests_of_the_article_are_columns_and_own_boards_come_first() -> None:
    timer = result("bootlin-timer", campaign_cases.bootlin())
    matrix, _ = tables(gpio_together(), timer, xenomai_together())
    methods = ("clock_nanosleep", "nanosleep", "setitimer", "POSIX timer")
    assert matrix.header == ("board", "kernel", "answer to an edge", *methods, "timer interrupt", "task of user space")
    assert [row[0] for row in matrix.rows[:3]] == ["rt", "plain", "article: AT91SAM9M10-G45-EK"]
    told = dict(zip(matrix.header, matrix.rows[0], strict=True))
    assert told["answer to an edge"] == "> 30,000.000"
    interrupt = report_cases.several_fields().stages[0].observed.max
    assert told["timer interrupt"] == f"{interrupt / 1_000:.3f}"
    assert told["task of user space"] == "not measured"
    published = {(row[0], row[1]): row[2:] for row in matrix.rows}
    assert published["article: AT91SAM9M10-G45-EK", "3.0.10-rt27 without PREEMPT"][0] == "> 30,000"
    assert published["article: AT91SAM9G20-EK", "2.6.38.8-ipipe+ (Xenomai 2.6)"][5:] == ("21.240", "106.589")


def test_each_figure_has_its_n_length_and_command() -> None:
    _, runs = tables(gpio_together(), xenomai_together())
    told = {(row[0], row[1]): row[2:] for row in runs.rows}
    assert told["answer to an edge", "rt"][1] == "99"
    assert "--probe gpio" in told["answer to an edge", "rt"][3]
    assert told["task of user space", "rt"][3].endswith("there is no module")
    assert told["timer interrupt", "article: AT91SAM9G20-EK"] == (
        *("21.240", "35,999,845", "10 h 00 min"),
        "latency -h -H10000 -t2 -P99 -T36000 -q",
    )


def test_a_cell_that_was_measured_twice_has_both_figures() -> None:
    matrix, _ = tables(gpio_together(), gpio_together())
    assert matrix.rows[0][2] == "> 30,000.000; > 30,000.000"


def test_cells_of_one_name_are_told_apart_by_their_profiles() -> None:
    first, second = gpio_together(), gpio_together()
    second["profile"]["name"] = "mine"
    matrix, _ = tables(first, second)
    assert matrix.header[2:] == ("answer to an edge (bootlin-gpio)", "answer to an edge (mine)")


def test_an_answer_beyond_the_next_edge_that_was_seen_is_no_bound() -> None:
    told = gpio_together()
    analysis = told["cells"][0]["results"][0]["analysis"]
    analysis["pooled"]["observed"]["max_ns"] = 40_000_000
    analysis["stages"] = []
    matrix, _ = tables(told)
    assert matrix.rows[0][2].startswith("40,000.000")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([], "no result of a profile"),
        ({"schema": "rtproof.analysis"}, "no result of a profile"),
        ({"schema": "rtproof.campaign", "version": 1}, "is of version 1, which is not 2"),
        ({"schema": "rtproof.campaign", "version": 2}, "no whole result of a profile"),
        ({"schema": "rtproof.campaign", "version": 2, "cells": [1], "profile": {"name": "x"}}, "no whole result"),
    ],
)
def test_what_is_no_result_is_refused(told: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        matrix_page.read_matrix_run(told)


def test_lengths_of_cycles_are_no_latencies() -> None:
    with pytest.raises(UserError, match="lengths of cycles"):
        matrix_page.read_matrix_run(result("ten-ms", campaign_cases.ten_ms()))


# ``rtproof matrix`` from the command line.


@pytest.fixture
def results(tmp_path: Path) -> list[str]:
    for name, told in (("gpio", gpio_together()), ("xenomai", xenomai_together())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(told))
    return [str(tmp_path / "gpio"), str(tmp_path / "xenomai" / "result.json")]


def test_folders_and_files_become_one_table(results: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matrix", *results]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Largest latency of each board with each kernel [us]" in out
    assert "> 30,000.000" in out


@pytest.mark.parametrize(
    ("form", "start"), [("html", "<!doctype html>"), ("markdown", "# rtproof: boards and kernels")]
)
def test_it_is_written_in_every_form(results: list[str], tmp_path: Path, form: str, start: str) -> None:
    page = tmp_path / "page"
    assert main(["matrix", *results, "--format", form, "--output", str(page)]) == 0
    assert page.read_text().startswith(start)
    assert main(["matrix", *results, "--output", str(page)]) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "result.json: no such file"),
        (b"\xff{", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"{}", "result.json is no result of a profile"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "result.json").write_bytes(content)
    assert main(["matrix", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
