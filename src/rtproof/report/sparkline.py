# SPDX-License-Identifier: Apache-2.0
"""A curve as one line of text: what a plot shows, for a terminal."""

import math

from rtproof.report.blocks import Curve, HeatMap, Plot
from rtproof.report.figures import number
from rtproof.report.words import clean

CELLS = 60
LEVELS = "▁▂▃▄▅▆▇█"
MOST_CURVES = 8


def sparklines(plot: Plot | HeatMap) -> list[str]:
    """A line per curve over one common x axis, and a line that names the axis; nothing for a plot without points."""
    log_x = isinstance(plot, Plot) and plot.log_x
    curves = [curve for curve in plot.curves if curve.x][:MOST_CURVES]
    positions = [_place(x, log_x) for curve in curves for x in curve.x]
    heights = [_place(y, plot.log_y) for curve in curves for y in curve.y]
    if not heights:
        return []
    name_width = max(len(clean(curve.name)) for curve in curves)
    x_range, y_range = (min(positions), max(positions)), (min(heights), max(heights))
    lines = [
        f"{clean(curve.name):{name_width}} |{_line(curve, x_range, y_range, log_x, plot.log_y)}|" for curve in curves
    ]
    xs = [x for curve in curves for x in curve.x]
    ends = f"{number(min(xs))} to {number(max(xs))}"
    return [*lines, f"{'':{name_width}}  {clean(plot.x_label)}: {ends}{' (log)' if log_x else ''}"]


def _place(value: float, log: bool) -> float:
    return math.log10(max(value, 1e-300)) if log else value


def _line(curve: Curve, x_range: tuple[float, float], y_range: tuple[float, float], log_x: bool, log_y: bool) -> str:
    """In each cell the largest value that falls into it."""
    best: dict[int, float] = {}
    for x, y in zip(curve.x, curve.y, strict=True):
        cell = round(_share(_place(x, log_x), x_range) * (CELLS - 1))
        best[cell] = max(best.get(cell, -math.inf), _share(_place(y, log_y), y_range))
    return "".join(LEVELS[round(best[cell] * (len(LEVELS) - 1))] if cell in best else " " for cell in range(CELLS))


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high > low else 1.0
