# SPDX-License-Identifier: Apache-2.0

from rtproof.report.blocks import Curve, HeatMap, Plot
from rtproof.report.plot_data import CELLS, MOST_CURVES, sparklines


def plot(*curves: Curve, **options: object) -> Plot:
    return Plot("title", "says", "x [us]", "y", curves, **options)  # type: ignore[arg-type]


def test_bins_stand_where_they_are() -> None:
    curve = Curve("thread 0", (0.0, 1.0, 5.0), (1.0, 1000.0, 31.0))
    assert sparklines(plot(curve, style="bars", bin_width=1.0, log_y=True)) == [
        "thread 0 |▁█   ▄|",
        "          x [us]: 0 to 5.000",
    ]


def test_a_step_holds_until_the_next() -> None:
    line = sparklines(plot(Curve("a", (1.0, 10.0, 100.0), (1.0, 0.5, 0.0)), style="step", log_x=True, log_y=True))[0]
    assert line == "a |" + "█" * 30 + "▁" + " " * 29 + "|"
    assert len(line) == CELLS + 4


def test_curves_share_their_axes() -> None:
    high, low = Curve("high", (0.0, 1.0), (9.0, 9.0)), Curve("low", (0.0,), (0.0,))
    first, second, _ = sparklines(plot(high, low, style="bars", bin_width=1.0))
    assert (first, second) == ("high |██|", "low  |▁ |")


def test_a_heat_map_shows_its_curves() -> None:
    curve = Curve("largest", (0.0, 1.0), (2.0, 4.0))
    heat = HeatMap("t", "s", "time [s]", "y", (0.0, 1.0, 2.0), (1.0, 10.0), ((1, 1),), curves=(curve,))
    assert sparklines(heat)[:2] == ["largest      |▁█|", "y from 1.000 |██|"]


def test_a_large_heat_map_is_a_few_lines_the_highest_first() -> None:
    edges = tuple(float(at) for at in range(1, 22))
    rows = tuple(((100, 1, 0) * 40) if r < 3 else ((0,) * 120) for r in range(20))
    curve = Curve("largest", (0.0, 119.0), (2.0, 4.0))
    heat = HeatMap("t", "s", "time [s]", "y", tuple(map(float, range(121))), edges, rows, curves=(curve,))
    lines = sparklines(heat)[1:-1]
    begin = [float(line.partition("|")[0].removeprefix("y from ")) for line in lines]
    assert begin == [19.0, 16.0, 13.0, 10.0, 7.0, 4.0, 1.0]
    assert all(line.endswith("|" + " " * CELLS + "|") for line in lines[:-1])
    assert len(lines[-1].partition("|")[2]) == CELLS + 1
    assert "█" in lines[-1]


def test_nothing_is_drawn_of_nothing_and_not_more_than_a_few() -> None:
    assert sparklines(plot()) == []
    assert sparklines(plot(Curve("zero", (1.0,), (0.0,)), log_y=True)) == []
    many = [Curve(f"thread {at}", (1.0,), (1.0,)) for at in range(20)]
    assert len(sparklines(plot(*many))) == MOST_CURVES + 1
