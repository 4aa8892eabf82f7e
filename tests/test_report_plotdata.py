# SPDX-License-Identifier: Apache-2.0

import json
import math
from dataclasses import replace

from rtproof.report import plot_data
from rtproof.report.blocks import Curve, HeatMap, Marker, Plot

ONE = Curve("one", (1.0, 2.0), (10.0, 20.123456789))
OTHER = Curve("other", (2.0, 3.0), (5.0, 1e-6), "other")
PLOT = Plot("Title", "says", "x [us]", "share", (ONE, OTHER), (Marker("limit", "x", 2.5),), log_y=True, style="step")
HEAT = HeatMap(
    "Map", "says", "t [s]", "y [us]", (0.0, 1.0, 2.0, 3.0), (1.0, 2.0, 4.0), ((0, 2, 0), (1, 3, 0)), curves=(ONE,)
)


def test_curves_are_put_on_one_axis() -> None:
    data = plot_data.plot_script_data(PLOT)
    assert data["x"] == [1.0, 2.0, 3.0]
    assert data["curves"] == [
        {"name": "one", "role": "part", "group": None, "y": [10.0, 20.12346, None]},
        {"name": "other", "role": "other", "group": None, "y": [None, 5.0, 1e-6]},
    ]
    assert data["markers"] == [{"name": "limit", "axis": "x", "at": 2.5}]
    assert (data["kind"], data["style"], data["logX"], data["logY"]) == ("plot", "step", False, True)


def test_the_table_has_every_point() -> None:
    table = plot_data.plot_table(PLOT)
    assert table.header == ("x [us]", "one", "other")
    assert table.rows == (("1", "10", ""), ("2", "20.123", "5"), ("3", "", "1.0000e-06"))


def test_a_heat_map_is_a_shade_for_every_filled_cell() -> None:
    data = plot_data.plot_script_data(HEAT)
    strong, weak = plot_data.SHADES[-1], plot_data.SHADES[0]
    assert data["most"] == 3
    assert data["shades"] == [f".{plot_data.SHADES[round(61 * math.log(2) / math.log(3))]}.", f"{weak}{strong}."]
    assert (data["xEdges"], data["yEdges"], data["binWidth"]) == ([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 4.0], 1.0)


def test_shades_are_even_steps_of_the_logarithm() -> None:
    assert plot_data.heat_shades((0, 1, 10, 100, 1_000), 1_000, "abcd", " ") == " abcd"
    assert plot_data.heat_shades((0, 1), 1, "abcd", " ") == " d"
    assert plot_data.heat_shades((0, 0), 0) == ".."


def test_a_large_map_is_embedded_in_little_space() -> None:
    row = tuple(range(10**9, 10**9 + 300))
    edges = tuple(float(at) for at in range(301))
    large = HeatMap("Map", "says", "t", "y", edges, edges[1:122], (row,) * 120)
    assert len(json.dumps(plot_data.plot_script_data(large))) < 100_000


def test_the_table_of_a_heat_map_has_a_row_for_every_column_with_anything_in_it() -> None:
    assert plot_data.plot_table(HEAT).rows == (("0", "1", "2", "4"), ("1", "5", "1", "4"))


def test_a_plot_without_curves_has_no_rows() -> None:
    assert plot_data.plot_table(Plot("Empty", "says", "x", "y", ())).rows == ()


def test_thin_curves_of_a_group_are_drawn_but_not_in_the_table() -> None:
    behind = Curve("run 1", (1.0,), (2.0,), "part", 0)
    together = Curve("A", (1.0,), (3.0,), "whole", 0)
    plot = replace(PLOT, curves=(behind, together))
    assert [curve["group"] for curve in plot_data.plot_script_data(plot)["curves"]] == [0, 0]  # type: ignore[attr-defined]
    assert plot_data.plot_table(plot).header[1:] == ("A",)
