# SPDX-License-Identifier: Apache-2.0
"""Article 2's loop: which cells its scenarios are, and what is said of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import SERIES, block, record
from lab_cases import PLAIN, RT, keys_not_in_docs

from rtproof import report
from rtproof.analysis.cycles import cycles
from rtproof.analysis.model import Cycles
from rtproof.lab import ten_ms, ten_ms_page
from rtproof.lab.cells import Cost
from rtproof.lab.comparison import VIRTUAL_TIME
from rtproof.lab.matrix import Ran, Result
from rtproof.lab.page import Making
from rtproof.lab.ten_ms import PERIOD_NS, SCENARIOS, Found

MAKING = Making("rtproof lab ten-ms", "0.1.0", {"x86_64": "QEMU 7.2"}, {"x86_64": "a" * 64})
LOOP = replace(SERIES, period_ns=PERIOD_NS, probe="kernel", method="loop", field="task")
MS = 1_000_000


def measured(values: list[int]) -> Cycles:
    return cycles(record([block(values, series=LOOP)], (LOOP,)))


def found(values: list[int], place: int = 1, **more: object) -> Found:
    scenario = SCENARIOS[place]
    cell = ten_ms.cell(scenario, RT if scenario.rt else PLAIN, Path("agent"), 100)
    return replace(Found(scenario, cell, measured(values), "", ()), **more)  # type: ignore[arg-type]


def test_the_scenarios_are_the_articles() -> None:
    assert [(scenario.rt, scenario.load.name) for scenario in SCENARIOS] == [
        (False, "idle"),
        (False, "cpu+dd+timers"),
        (True, "cpu+dd+timers"),
        (True, "cpu+dd+timers+net"),
    ]
    assert [scenario.article.short for scenario in SCENARIOS] == [0, 2_948, 0, 0]


def test_a_scenario_is_the_modules_loop_with_the_policy_of_its_kernel() -> None:
    plain, rt = (ten_ms.cell(SCENARIOS[at], PLAIN, Path("agent"), 11_000) for at in (1, 2))
    words = plain.setting.arguments(plain.load, 0)
    assert words[:8] == ("--probe", "kernel", "--period", "10ms", "--duration", "120010ms", "--warmup", "0ns")
    assert words[8:12] == ("--method", "loop", "--policy", "other")
    assert words[12:] == ("--load", "cpu", "--load", "dd", "--load", "timers")
    assert rt.setting.more == ("--method", "loop", "--policy", "fifo", "--priority", "99")


@pytest.mark.parametrize(("counted", "whole"), [(11_000, 12_000), (9_000, 10_000), (900, 1_000), (1, 2)])
def test_as_many_cycles_are_counted_as_asked_for(counted: int, whole: int) -> None:
    assert ten_ms.in_all(counted) == whole
    assert measured([0] * (whole + 1)).counted >= counted


def test_cycles_are_counted_outside_of_the_band() -> None:
    values = [0] * 1_000
    values[500] = 5 * MS
    row = ten_ms_page.table([found(values)]).rows[0]
    assert row == ("plain kernel, stress", "here", "900", "1", "1", "15.000", "5.000", "no")


def test_the_articles_figures_stand_below() -> None:
    rows = ten_ms_page.table([found([0] * 1_000)]).rows
    assert rows[1] == ("", "article", "11,011", "2,948", "1,396", "33.45", "0.02", "no")


def test_a_loop_that_stands_still_is_stalled() -> None:
    values = [0] * 1_000
    values[500:] = [3_000 * MS - at * PERIOD_NS for at in range(300)] + [0] * 200
    row = ten_ms_page.table([found(values)]).rows[0]
    assert row[5] == "3,010.000"
    assert row[-1].startswith("STALLED 3.0")


def test_failed_and_invalid_scenarios_are_sentences() -> None:
    failed = found([], cycles=None, failure="the guest never spoke")
    invalid = found([0] * 1_000, 2, invalid=("policy other",))
    rows = ten_ms_page.table([failed, invalid]).rows
    assert rows[0][:3] == ("plain kernel, stress", "here", "failed")
    assert rows[2][0] == "PREEMPT_RT, stress (INVALID)"
    text = report.render("text", "t", ten_ms_page.sections([failed, invalid])).decode()
    assert "! plain kernel, stress: the guest never spoke" in text
    assert "? PREEMPT_RT, stress: policy other" in text
    assert ten_ms.exit_code([failed, invalid]) == 2
    assert ten_ms.exit_code([invalid]) == 3
    assert ten_ms.exit_code([found([0] * 1_000)]) == 0


def test_a_failed_cell_is_a_scenario_without_cycles() -> None:
    cells = [ten_ms.cell(scenario, PLAIN, Path("agent"), 100) for scenario in SCENARIOS]
    ran = Ran(tuple(Result(cell, failure="no") for cell in cells), 1.0)
    assert [each.failure for each in ten_ms.found(ran)] == ["no"] * 4
    assert ran.cost == Cost(0, 0)


def test_every_form_has_the_label_and_the_note() -> None:
    results = [found([0] * 1_000)]
    ran = Ran((Result(results[0].cell, failure="no"),), 1.0)
    pages = ten_ms_page.page_sections(results, ran, MAKING)
    for form, sections in (("text", ten_ms_page.sections(results)), ("markdown", pages), ("html", pages)):
        words = " ".join(report.render(form, "t", sections).decode().replace("&#x27;", "'").split())
        assert VIRTUAL_TIME in words
        assert "a guest has no network" in words


def test_json_has_both_in_nanoseconds() -> None:
    values = [0] * 1_000
    values[500] = 5 * MS
    told = json.loads(ten_ms_page.encode([found(values), found([], cycles=None, failure="no")], MAKING))
    assert VIRTUAL_TIME in told["notes"]
    first, second = told["scenarios"]
    assert first["here"]["max_ns"] == 15 * MS
    assert (first["here"]["ignored_count"], first["here"]["cycles_count"]) == (99, 900)
    assert first["article"]["max_ns"] == 33_450_000
    assert (second["here"], second["failure"]) == (None, "no")


def test_every_key_of_the_json_is_on_the_page_about_it() -> None:
    told = json.loads(ten_ms_page.encode([found([0] * 1_000)], MAKING))
    assert keys_not_in_docs({**told, "qemu": {}, "agents_sha256": {}}) == set()
