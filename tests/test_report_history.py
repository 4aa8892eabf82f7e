# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from history_cases import invalid, run, stepped
from test_contracts import complain

from rtproof import report
from rtproof.compare.history import RunHistory, analyse_history
from rtproof.report.blocks import Plot
from rtproof.report.pages.comparison_page import ComparisonContext
from rtproof.report.pages.history_page import encode_history, history_sections, history_title

TOLD = ComparisonContext((), ("runs/torn is not a record",), "rtproof history runs")


@cache
def changed() -> RunHistory:
    return analyse_history([*stepped(), invalid(run(90))])


def text(found: RunHistory, *, short: bool = True) -> str:
    return " ".join(
        report.render("text", history_title(found), history_sections(found, TOLD, short=short)).decode().split()
    )


def test_the_change_comes_first_with_its_ratio_and_the_fact() -> None:
    shown = text(changed())
    assert shown.startswith("rtproof: history of 40 runs - 1 change")
    for words in (
        "40 runs: 1 change",
        "50 % x1.5",
        "with it changed kernel release: 6.1 to 6.12",
        "need not be the reason",
        "found 9 times of 10",
        "last 2 runs cannot be seen yet",
        "Left out: run 90: INVALID: the load was dead",
        "Not read: runs/torn is not a record",
    ):
        assert words in shown, words
    for forbidden in ("worst case is", "guaranteed", "safe"):
        assert forbidden not in shown


def test_every_figure_has_a_plot_with_the_change_marked_and_the_levels() -> None:
    plots = [block for part in history_sections(changed(), TOLD) for block in part.blocks if isinstance(block, Plot)]
    (middle,) = (plot for plot in plots if plot.title.startswith("50 %"))
    assert [marker.name for marker in middle.markers] == ["change at run 26"]
    assert middle.markers[0].at == 25.5
    runs, means = middle.curves
    assert len(runs.x) == 40
    assert means.x == (1.0, 25.0, 26.0, 40.0)
    assert means.y[2] / means.y[1] == pytest.approx(1.5, rel=0.1)
    assert "at run 26 by x1.5" in middle.says


def test_fewer_runs_have_the_sentence_and_the_table_that_remains() -> None:
    shown = text(analyse_history(stepped(count=9, at=4)))
    assert "9 runs: too few to tell a change" in shown
    assert "No statement on changes is possible: 20 runs are needed" in shown
    assert "run 08" in shown


def test_many_runs_in_virtual_time_are_not_called_too_few() -> None:
    found = analyse_history([replace(each, facts={**each.facts, "virtual time": "QEMU"}) for each in stepped()])
    shown = text(found)
    assert history_title(found) == "rtproof: history of 40 runs - virtual time, no change is tested"
    assert "40 runs: no change is tested in virtual time" in shown
    assert "no number of further runs would tell more" in shown
    assert "too few" not in shown
    assert "runs are needed" not in shown


def test_without_a_change_none_is_claimed() -> None:
    shown = text(analyse_history([run(n) for n in range(25)]))
    assert "25 runs: no change shown" in shown
    assert "No change is shown, which is not the same as none." in shown
    assert "no change is shown" in text(analyse_history([run(n) for n in range(25)]), short=False)


def test_change_without_a_recorded_fact_says_so() -> None:
    same = [replace(each, facts={**each.facts, "kernel release": "6.1"}) for each in stepped()]
    assert "no recorded fact changed with it" in text(analyse_history(same))


def test_sequences_are_told_apart() -> None:
    runs = [run(n, facts={"period": "1ms" if n % 2 else "2ms"}) for n in range(12)]
    shown = text(analyse_history(runs))
    assert "6 runs (period 1ms)" in shown
    assert "6 runs (period 2ms)" in shown


def test_no_run_left() -> None:
    assert "No run is left" in text(analyse_history([invalid(run(1))]))


@pytest.mark.parametrize("form", ["html", "markdown", "json", "text"])
def test_every_form_draws_it(form: str) -> None:
    parts = history_sections(changed(), TOLD)
    for part in parts:
        for block in part.blocks:
            complain(block)
    assert len({part.name for part in parts}) == len(parts)
    assert len(report.render(form, history_title(changed()), parts)) > 1_000


def test_json_has_the_same_figures() -> None:
    told: Any = json.loads(encode_history(changed(), TOLD))
    assert (told["schema"], told["version"], told["fewest_runs"]) == ("rtproof.history", 1, 20)
    (sequence,) = told["sequences"]
    (change,) = sequence["changes"]
    assert change["run"] == 25
    assert change["facts"][0]["fact"] == "kernel release"
    (middle,) = (one for one in change["metrics"] if one["metric"] == "p50")
    assert middle["ratio"] == pytest.approx(1.5, rel=0.1)
    assert len(sequence["metrics"][0]["values"]) == len(sequence["runs"]) == 40
    assert told["left_out"][0]["run"] == "run 90"


def test_files_without_time_order_are_put_by_name_and_what_they_do_not_tell_is_told() -> None:
    runs = [replace(run(n), started_ns=None, unclear=("its unit is taken for granted",)) for n in range(21)]
    shown = text(analyse_history(runs, by_name=True), short=False)
    assert "run, in order of their names" in shown
    assert "1 is the oldest" not in shown
    assert "21 runs of 21: its unit is taken for granted" in shown
    assert "run, in order of their start (1 is the oldest)" in text(changed(), short=False)


def test_what_is_in_no_figure_has_a_heading_only_if_there_is_any() -> None:
    found = analyse_history([run(n) for n in range(3)])
    told = ComparisonContext((), (), "rtproof history runs")
    assert "left-out" not in [part.name for part in history_sections(found, told)]
    assert "Made by: rtproof history runs" in report.render("text", "", history_sections(found, told)).decode()
