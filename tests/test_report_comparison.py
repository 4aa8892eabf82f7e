# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from compared_runs import compared, figures, side
from history_cases import invalid, run, stepped
from test_contracts import complain

from rtproof import report
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison
from rtproof.compare.history import RunHistory, analyse_history
from rtproof.compare.run_metrics import RunFigures
from rtproof.report.blocks import Plot, Section, Table, Text
from rtproof.report.pages import comparison_figures, comparison_page
from rtproof.report.pages.comparison_page import (
    ComparisonContext,
    comparison_sections,
    comparison_title,
    single_side_sections,
)
from rtproof.report.pages.history_page import encode_history, history_sections, history_title

TOLD = ComparisonContext(("the new one", "the old one"), (), "rtproof compare a --against b")


def by_name(found: Comparison, told: ComparisonContext = TOLD, *, short: bool = False) -> dict[str, Section]:
    return {section.name: section for section in comparison_sections(found, told, short=short)}


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def words(section: Section) -> str:
    return " ".join(
        line for block in section.blocks if isinstance(block, Text) for line in (block.headline, *block.paragraphs)
    )


def plot_of(section: Section) -> Plot:
    (plot,) = (block for block in section.blocks if isinstance(block, Plot))
    return plot


def test_the_first_line_is_what_was_found_with_how_many_runs() -> None:
    found = compared()
    first = comparison_sections(found, TOLD)[0]
    text = first.blocks[0]
    assert isinstance(text, Text)
    assert text.headline == comparison_figures.outcome_sentence(comparison_figures.outcome_lines(found, "VERDICT")[0])
    assert "5" in text.headline
    assert text.kind == "good"
    sides = first.blocks[1]
    assert isinstance(sides, Text)
    assert sides.paragraphs == ("A: the new one, 5 runs. B: the old one, 5 runs.",)
    assert text.paragraphs[0].startswith("p50: A is better")
    assert comparison_title(found) == "rtproof: A against B, 5 runs against 5 - A is better"


def test_a_side_that_has_no_other_words_than_its_name_is_named_once() -> None:
    sides = comparison_sections(compared(), replace(TOLD, what=("A", "the old one")))[0].blocks[1]
    assert isinstance(sides, Text)
    assert sides.paragraphs == ("A: 5 runs. B: the old one, 5 runs.",)


@pytest.mark.parametrize(("n", "factor"), [(5, 1.0), (1, 2.0)])
def test_what_is_not_shown_is_a_doubt(n: int, factor: float) -> None:
    text = comparison_sections(compared(n, factor), TOLD)[0].blocks[0]
    assert isinstance(text, Text)
    assert text.kind == "doubt"


def test_every_sentence_of_the_comparison_stands_somewhere() -> None:
    found = compared(4, 2.0, load="cpu")
    page = report.render(
        "text", "t", comparison_sections(compare_sides(found.a.runs, found.b.runs, although=("load",)), TOLD)
    ).decode()
    flat = " ".join(page.split())
    for label in ("COMPARED", "SEEN", "CURVES", "CONDITIONS", "MAX"):
        for line in comparison_figures.outcome_lines(found, label):
            assert line.split(":")[0].split(",")[0] in flat


def test_the_table_of_metrics_begins_with_the_finding() -> None:
    found = compared()
    table = tables(by_name(found)["metrics"])[0]
    assert table.header[:2] == ("metric", "finding")
    rows = {row[0]: row for row in table.rows}
    effect = found.effects[0]
    assert rows[effect.label][1] == "A is better"
    assert float(rows[effect.label][2]) == pytest.approx(effect.ratio, abs=0.01)
    assert (
        rows[effect.label][3]
        == f"{comparison_figures.metric_ratio(effect.low)} to {comparison_figures.metric_ratio(effect.high)}"
    )
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_one_run_each_has_no_interval_no_p_and_says_so() -> None:
    table = tables(by_name(compared(1))["metrics"])[0]
    assert table.header == ("metric", "finding", "ratio", "A", "B", "equal up to")


@pytest.mark.parametrize(
    ("size", "text"), [(None, "none"), (0.5, "0.50"), (1234.5, "1,234"), (0.0123, "0.0123"), (32.14, "32.1")]
)
def test_ratios(size: float | None, text: str) -> None:
    assert comparison_figures.metric_ratio(size) == text


def test_curves_are_single_runs_thin_and_each_side_bold_in_its_colour() -> None:
    plot = plot_of(by_name(compared())["curves"])
    assert [(curve.role, curve.group) for curve in plot.curves] == [("part", 0)] * 5 + [("part", 1)] * 5 + [
        ("whole", 0),
        ("whole", 1),
    ]
    whole = plot.curves[-2]
    assert whole.y[-1] == 0
    assert list(whole.y) == sorted(whole.y, reverse=True)
    assert "100,000 activations of 5 runs" in plot.says


def test_values_beyond_the_scale_of_a_histogram_keep_the_curve_up() -> None:
    run = replace(figures(1), overflow=1_000, largest=None)
    (plot,) = comparison_figures.curve_blocks([("A", [run])], comparison_figures.curve_unit([("A", [run])]))
    assert isinstance(plot, Plot)
    assert plot.curves[-1].y[-1] == pytest.approx(1_000 / (run.counts.total + 1_000))
    assert "1,000 values beyond the scale" in plot.says


def test_of_many_runs_some_are_drawn_and_it_is_said() -> None:
    many = [replace(figures(1), name=str(at)) for at in range(30)]
    (plot,) = comparison_figures.curve_blocks([("A", many)], comparison_figures.curve_unit([("A", many)]))
    assert isinstance(plot, Plot)
    assert len(plot.curves) == comparison_figures.MOST + 1
    assert "Of 30 single runs of A the first 24 are drawn." in plot.says


def test_one_value_only_is_no_curve() -> None:
    run = figures(1)
    same = replace(run, counts=replace(run.counts, lo=run.counts.lo[:1], hi=run.counts.hi[:1], n=run.counts.n[:1]))
    (text,) = comparison_figures.curve_blocks([("A", [same])], comparison_figures.curve_unit([("A", [same])]))
    assert text == Text((comparison_figures.NOTHING,))


def test_the_shift_function_has_its_band_or_says_why_not() -> None:
    found = compared()
    section = by_name(found)["shift"]
    names = [curve.name for curve in plot_of(section).curves]
    assert names == ["difference", "band, low", "band, high"]
    assert "The band:" in words(section)
    one_each = by_name(compared(1))["shift"]
    assert [curve.name for curve in plot_of(one_each).curves] == ["difference"]
    assert "There is no band:" in words(one_each)


def test_a_crossing_is_marked_in_the_tails() -> None:
    body = [replace(figures(at, 1.0), name=f"a{at}") for at in range(5)]
    turned = [_turned(at) for at in range(5, 10)]
    found = compare_sides(body, turned)
    assert found.order.crossings
    markers = plot_of(by_name(found)["curves"]).markers
    assert [marker.name for marker in markers] == ["they cross"] * len(found.order.crossings)


def _turned(seed: int) -> RunFigures:
    """Lower in the body and higher in the tail."""
    run = figures(seed)
    lo = np.where(run.counts.lo < 20_000, run.counts.lo // 2, run.counts.lo * 2)
    return replace(run, counts=replace(run.counts, lo=lo, hi=lo), largest=int(lo[-1]))


def test_facts_are_listed_with_reasons_and_the_terminal_is_spared() -> None:
    facts = {f"config X{at}": "y" for at in range(30)} | {"governor": "powersave"}
    found = compare_sides(side(0, 5, 1.0, **{"governor": "performance", "config Z": "y"}), side(5, 5, 1.0, **facts))
    whole, short = (by_name(found, short=short)["differences"] for short in (False, True))
    first = tables(whole)[0]
    assert first.rows[0][:3] == ("governor", "performance", "powersave")
    assert [table.folded for table in tables(whole)] == [False, True]
    assert len(tables(short)[0].rows) == 8
    assert "more differences: on the page." in words(short)


def test_nothing_that_differs_is_said_too() -> None:
    assert "None of the facts that both sides record differs." in words(by_name(compared())["differences"])


def test_runs_left_out_are_named_with_the_reason() -> None:
    bad = replace(figures(99), invalid=("it stood still",))
    found = compare_sides([*side(0, 5), bad], side(5, 5))
    told = replace(TOLD, complaints=("c/run.rtrec is empty",))
    for short in (False, True):
        said = words(by_name(found, told, short=short)["runs"])
        assert "Left out of A: run-99: it stood still" in said
        assert "Not read: c/run.rtrec is empty" in said


def test_json_can_be_read_and_has_no_number_that_is_none() -> None:
    found = compared(1, load="none of ours")
    read = json.loads(comparison_page.encode_comparison(found, TOLD), parse_constant=pytest.fail)
    assert read["finding"] == "not judged"
    assert read["sides"][0]["values_count"] == 20_000
    assert [one["metric"] for one in read["metrics"]] == [one.metric for one in found.effects]
    assert read["shift"]["points"][0]["low_ns"] is None


@pytest.mark.parametrize("form", ["html", "markdown", "text", "json"])
def test_every_format_draws_the_page(form: str) -> None:
    drawn = report.render(form, "a title", comparison_sections(compared(), TOLD)).decode()
    assert "a title" in drawn
    assert "run-0" in drawn


def test_runs_of_one_thing_tell_what_they_differ_by() -> None:
    some = [figures(at, factor) for at, factor in enumerate((1.0, 1.5, 2.0))]
    some.append(replace(figures(9), invalid=("it stood still",)))
    first, tails = single_side_sections(some, ComparisonContext(("all the same",)))
    assert "3 runs: the largest latency is" in words(first)
    spread, each = tables(first)
    median = next(row for row in spread.rows if row[0] == "50 %")
    assert float(median[-1].removeprefix("x ")) == pytest.approx(1.42, abs=0.05)
    assert [row[0] for row in each.rows] == ["run-0", "run-1", "run-2", "run-9"]
    assert "Left out: run-9: it stood still" in words(first)
    assert plot_of(tails).curves


def test_a_single_run_has_no_spread() -> None:
    (first,) = single_side_sections(side(0, 1), ComparisonContext(("",)), short=True)
    assert {row[-1] for row in tables(first)[0].rows} == {"unknown: one run"}


TOLD_HISTORY = ComparisonContext((), ("runs/torn is not a record",), "rtproof history runs")


@cache
def changed() -> RunHistory:
    return analyse_history([*stepped(), invalid(run(90))])


def text(found: RunHistory, *, short: bool = True) -> str:
    return " ".join(
        report.render("text", history_title(found), history_sections(found, TOLD_HISTORY, short=short)).decode().split()
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
    plots = [
        block for part in history_sections(changed(), TOLD_HISTORY) for block in part.blocks if isinstance(block, Plot)
    ]
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
    parts = history_sections(changed(), TOLD_HISTORY)
    for part in parts:
        for block in part.blocks:
            complain(block)
    assert len({part.name for part in parts}) == len(parts)
    assert len(report.render(form, history_title(changed()), parts)) > 1_000


def test_json_has_the_same_figures() -> None:
    told: Any = json.loads(encode_history(changed(), TOLD_HISTORY))
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
