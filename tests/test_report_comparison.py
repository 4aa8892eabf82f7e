# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from compared_runs import compared, figures
from history_cases import run, stepped
from report_cases import tables_of as tables

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison
from rtproof.compare.history import RunHistory, analyse_history
from rtproof.compare.run_metrics import RunFigures
from rtproof.report.blocks import Curve, Plot, Section, Table, Text
from rtproof.report.pages import comparison_figures
from rtproof.report.pages.comparison_figures import in_own_colours
from rtproof.report.pages.comparison_page import comparison_sections, single_side_sections
from rtproof.report.pages.history_page import history_sections, history_title

WHAT = ("the new one", "the old one")


def by_name(found: Comparison) -> dict[str, Section]:
    return {section.name: section for section in comparison_sections(found, WHAT)}


def words(section: Section) -> str:
    return " ".join(
        line for block in section.blocks if isinstance(block, Text) for line in (block.headline, *block.paragraphs)
    )


def plot_of(section: Section) -> Plot:
    (plot,) = (block for block in section.blocks if isinstance(block, Plot))
    return plot


@pytest.mark.parametrize(("n", "factor"), [(5, 1.0), (1, 2.0)])
def test_what_is_not_shown_is_a_doubt(n: int, factor: float) -> None:
    text = comparison_sections(compared(n, factor), WHAT)[0].blocks[0]
    assert isinstance(text, Text)
    assert text.kind == "doubt"


def test_values_beyond_the_scale_of_a_histogram_keep_the_curve_up() -> None:
    run = replace(figures(1), overflow=1_000, largest=None)
    (plot,) = comparison_figures.curve_blocks([("A", [run])], comparison_figures.curve_unit([("A", [run])]))
    assert isinstance(plot, Plot)
    assert plot.curves[-1].y[-1] == pytest.approx(1_000 / (run.counts.total + 1_000))
    assert "1,000 values beyond the scale" in plot.says


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


def test_runs_of_one_thing_tell_what_they_differ_by() -> None:
    some = [figures(at, factor) for at, factor in enumerate((1.0, 1.5, 2.0))]
    some.append(replace(figures(9), invalid=("it stood still",)))
    first, tails = single_side_sections(some)
    assert "3 runs: the largest latency is" in words(first)
    spread, each = tables(first)
    median = next(row for row in spread.rows if row[0] == "50 %")
    assert float(median[-1].removeprefix("x ")) == pytest.approx(1.42, abs=0.05)
    assert [row[0] for row in each.rows] == ["run-0", "run-1", "run-2", "run-9"]
    assert "Left out: run-9: it stood still" in words(first)
    assert plot_of(tails).curves


def test_a_name_has_one_colour_in_all_plots_and_single_runs_have_that_of_their_side() -> None:
    points = ((1.0,), (1.0,))
    curves = (Curve("run-0", *points, group=5), Curve("rt", *points, "whole", 5), Curve("x", *points, "other"))
    (plot,) = in_own_colours([Plot("", "", "", "", curves)], ["stock", "rt"])
    assert isinstance(plot, Plot)
    assert [(each.name, each.role, each.group) for each in plot.curves] == [
        ("run-0", "part", 1),
        ("rt", "whole", 1),
        ("x", "other", None),
    ]


def history_plots(found: RunHistory) -> list[Plot]:
    parts = history_sections(found)
    return [block for part in parts for block in part.blocks if isinstance(block, Plot)]


@cache
def nights() -> RunHistory:
    """Fifty nights, nine of them with another policy, which are a sequence of their own; the limit is 100 us."""
    runs = [run(n, facts={"policy": "other" if 20 <= n < 29 else "fifo"}) for n in range(50)]
    return analyse_history([replace(one, limits_ns=(100_000,)) for one in runs])


def test_nights_with_another_policy_are_seen() -> None:
    (table,) = (b for b in history_sections(nights())[0].blocks if isinstance(b, Table))
    assert [row[:4] for row in table.rows] == [
        ("2024-10-24", "policy", "fifo", "other"),
        ("2024-11-02", "policy", "other", "fifo"),
    ]
    assert history_title(nights()).endswith("0 changes of latency, conditions changed at 2 runs")
    for plot in history_plots(nights()):
        assert [curve.name for curve in plot.curves] == ["policy fifo", "policy other"]
        assert [len(curve.x) for curve in plot.curves] == [41, 9]
        assert [(one.name, one.role) for one in plot.markers[:2]] == [("policy other", "note"), ("policy fifo", "note")]


def test_the_limit_is_a_line_in_plots_of_latencies_and_in_no_other() -> None:
    assert {plot.y_label: [one.at for one in plot.markers if one.axis == "y"] for plot in history_plots(nights())} == {
        "50 % [us]": [100.0],
        "99 % [us]": [100.0],
        "99.9 % [us]": [100.0],
        "maximum of a second [us]": [100.0],
    }


def test_only_judged_figures_are_drawn() -> None:
    """Some runs are too short for 99.9 %, so that this figure is not judged."""
    runs = [run(n, values=4_000 if n < 10 else 900) for n in range(30)]
    titles = [plot.title for plot in history_plots(analyse_history(runs))]
    assert titles == ["50 % of each run", "99 % of each run", "maximum of a second of each run"]
    few = [plot.title for plot in history_plots(analyse_history(runs[:12]))]
    assert "99.9 % of each run" in few, "where nothing is judged, everything is drawn"


def test_a_condition_that_changes_all_the_time_has_rows_and_no_marks() -> None:
    found = analyse_history([run(n, facts={"governor": "ab"[n % 2]}) for n in range(24)])
    assert history_plots(found)[0].markers == ()
    (table,) = (b for b in history_sections(found)[0].blocks if isinstance(b, Table))
    assert len(table.rows) == 23


def test_in_order_of_names_the_axis_has_numbers() -> None:
    plot = history_plots(analyse_history(stepped(), by_name=True))[0]
    assert not plot.x_dates
    assert plot.curves[0].x == tuple(map(float, range(1, 41)))
