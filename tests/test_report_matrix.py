# SPDX-License-Identifier: Apache-2.0
"""Article 1's matrix of boards and kernels, put together from the results of several profiles."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import campaign_cases
import numpy as np
import pytest
import report_cases
from run_folders import latencies, write_run

from rtproof import articles
from rtproof.cli.main import main
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.errors import UserError
from rtproof.report.blocks import Plot, Table
from rtproof.report.pages import campaign_cells, matrix_page
from rtproof.report.pages.campaign_cells import CellOutcome
from rtproof.report.pages.campaign_json import encode_campaign
from rtproof.summary.counts import counts_of_values


def result(name: str, outcomes: Sequence[CellOutcome]) -> dict[str, Any]:
    profile = campaign_cases.shortened(name)
    told: dict[str, Any] = json.loads(
        encode_campaign(campaign_cells.MeasuredCampaign(profile, outcomes, articles.load(profile.article)))
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


def test_a_cell_that_was_measured_twice_has_both_figures() -> None:
    matrix, _ = tables(gpio_together(), gpio_together())
    assert matrix.rows[0][2] == "> 30,000.000; > 30,000.000"


def test_an_answer_beyond_the_next_edge_that_was_seen_is_no_bound() -> None:
    told = gpio_together()
    analysis = told["cells"][0]["results"][0]["analysis"]
    analysis["pooled"]["observed"]["max_ns"] = 40_000_000
    analysis["stages"] = []
    matrix, _ = tables(told)
    assert matrix.rows[0][2].startswith("40,000.000")


def test_loops_stand_beside_latencies_with_their_longest() -> None:
    matrix, _ = tables(
        gpio_together(),
        result("ten-ms", campaign_cases.ten_ms()),
        result("simple-rt-app", campaign_cases.simple_rt_app()),
    )
    longest = [name for name in matrix.header if name.endswith(", longest loop")]
    assert len(longest) == 2
    own = {column: cell for row in matrix.rows[:2] for column, cell in zip(matrix.header, row, strict=True) if cell}
    cycles = report_cases.loop().cycles
    assert cycles
    assert cycles.max_ns
    assert own[longest[0]] == f"{cycles.max_ns / 1_000:,.3f} (INVALID)"
    assert own[longest[1]] == "6,000.000 (INVALID)"
    row = articles.load("simple-rt-app").row("rt")
    assert row
    assert row.figures["loop.max"].text.split()[0] in str(matrix.rows).replace(",", "")


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no run in the folder"),
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


def figures(name: str, largest_ns: int, **facts: str) -> RunFigures:
    values = np.append(np.full(999, 5_000), largest_ns)
    told = {"machine": "arm", "kernel release": "6.1", "preemption model": "full", "load": "none of ours", **facts}
    return RunFigures(name, told, counts_of_values(values), largest_ns, span_ns=1_000_000_000)


def test_runs_have_a_row_for_each_kernel_and_curves_of_all_kernels_under_a_load() -> None:
    stock = {"kernel release": "6.2", "preemption model": "none"}
    runs = [figures("a", 90_000), figures("b", 80_000), figures("c", 4_000_000, **stock)]
    loaded = [figures("d", 70_000, load="mmap"), figures("e", 50_000, **stock, load="mmap")]
    sections = {each.name: each for each in matrix_page.matrix_sections((), [*runs, *loaded])}
    (table,) = (block for block in sections["matrix"].blocks if isinstance(block, Table))
    assert table.header == ("board", "kernel", "no load", "load mmap")
    assert table.rows == (
        ("arm", "6.1 (preempt=full)", "90.000; 80.000", "70.000"),
        ("arm", "6.2 (preempt=none)", "4,000.000", "50.000"),
    )
    plots = [block for block in sections["curves"].blocks if isinstance(block, Plot)]
    assert [(plot.title.split(": ")[1], plot.foremost) for plot in plots] == [("load mmap", True), ("no load", True)]
    systems = [curve.name for curve in plots[1].curves if curve.role == "whole"]
    assert systems == ["6.1 (preempt=full)", "6.2 (preempt=none)"]
    assert plots[0].x_ends == plots[1].x_ends == (5.0, 4_000.0)
    assert plots[0].y_ends == plots[1].y_ends is not None
    assert "published" not in report_cases.words(list(sections["matrix"].blocks))


def test_invalid_runs_and_runs_without_values_are_rows_without_curves() -> None:
    runs = [
        replace(figures("a", 9_000), invalid=("a load died",)),
        replace(figures("b", 0), counts=counts_of_values(np.empty(0, np.int64)), largest=None),
    ]
    sections = {each.name: each for each in matrix_page.matrix_sections((), runs)}
    assert "curves" not in sections
    (table,) = (block for block in sections["matrix"].blocks if isinstance(block, Table))
    assert table.rows == (("arm", "6.1 (preempt=full)", "9.000 (INVALID); unknown"),)


def test_the_command_takes_runs_and_profiles_and_tells_of_what_it_could_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a", latencies(1, 1_000))
    (tmp_path / "b.rtrec").write_bytes(b"RTPROOF\0")
    (tmp_path / "profile").mkdir()
    content = json.dumps(result("bootlin-timer", campaign_cases.bootlin()), indent=2)
    (tmp_path / "profile" / "result.json").write_text(content)
    (tmp_path / "renamed").write_text(content)
    assert main(["matrix", str(tmp_path / "renamed")]) == 0
    assert "clock_nanosleep" in capsys.readouterr().out
    assert main(["matrix", str(run), str(tmp_path / "profile"), str(tmp_path / "b.rtrec")]) == 2
    out = capsys.readouterr().out
    assert "clock_nanosleep" in out
    assert "1 run could not be read" in out
    assert main(["matrix", str(run), "--format", "html"]) == 0
    assert "Share of activations later than a latency" in capsys.readouterr().out
    assert main(["matrix", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
