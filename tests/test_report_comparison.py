# SPDX-License-Identifier: Apache-2.0

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from compared_runs import compared, figures
from history_cases import invalid, run, stepped

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison
from rtproof.compare.history import RunHistory, analyse_history
from rtproof.compare.run_metrics import RunFigures
from rtproof.report.blocks import Plot, Section, Table, Text
from rtproof.report.pages import comparison_figures, comparison_page
from rtproof.report.pages.comparison_page import (
    ComparisonContext,
    comparison_sections,
    single_side_sections,
)
from rtproof.report.pages.history_page import encode_history, history_sections

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


@pytest.mark.parametrize(("n", "factor"), [(5, 1.0), (1, 2.0)])
def test_what_is_not_shown_is_a_doubt(n: int, factor: float) -> None:
    text = comparison_sections(compared(n, factor), TOLD)[0].blocks[0]
    assert isinstance(text, Text)
    assert text.kind == "doubt"


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


def test_json_can_be_read_and_has_no_number_that_is_none() -> None:
    found = compared(1, load="none of ours")
    read = json.loads(comparison_page.encode_comparison(found, TOLD), parse_constant=pytest.fail)
    assert read["finding"] == "not judged"
    assert read["sides"][0]["values_count"] == 20_000
    assert [one["metric"] for one in read["metrics"]] == [one.metric for one in found.effects]
    assert read["shift"]["points"][0]["low_ns"] is None


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


TOLD_HISTORY = ComparisonContext((), ("runs/torn is not a record",), "rtproof history runs")


@cache
def changed() -> RunHistory:
    return analyse_history([*stepped(), invalid(run(90))])


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
