# SPDX-License-Identifier: Apache-2.0
"""A curve as one line of text: what a plot shows, for a terminal."""

import math
from dataclasses import dataclass

from rtproof.report.blocks import Curve, HeatMap, Plot
from rtproof.report.figures import number
from rtproof.report.plotdata import shades
from rtproof.report.words import clean

CELLS = 60
"""At most; a plot of fewer bins gets one cell for each."""
LEVELS = "▁▂▃▄▅▆▇█"
MAP_LINES = 8
"""At most, for a heat map."""
MOST_CURVES = 10
LONGEST_NAME = 36


@dataclass(frozen=True)
class _Canvas:
    """Common axes of the curves of a plot."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    log_x: bool
    log_y: bool
    hold: bool
    cells: int

    def line(self, curve: Curve) -> str:
        """In each cell the largest value that falls into it; a step holds until the next."""
        best: dict[int, float] = {}
        for x, y in zip(curve.x, curve.y, strict=True):
            cell = round(_share(_place(x, self.log_x), self.x_range) * (self.cells - 1))
            best[cell] = max(best.get(cell, 0.0), _share(_place(y, self.log_y), self.y_range))
        drawn, last = "", " "
        for cell in range(self.cells):
            level = LEVELS[round(best[cell] * (len(LEVELS) - 1))] if cell in best else " "
            last = last if self.hold and level == " " and cell <= max(best, default=0) else level
            drawn += last
        return drawn


def sparklines(plot: Plot | HeatMap) -> list[str]:
    """A line per curve over one common x axis, and a line that names the axis; nothing for a plot without points."""
    curves = [_drawable(curve, plot.log_y) for curve in plot.curves][:MOST_CURVES]
    xs = [x for curve in plot.curves for x in curve.x]
    if not any(curve.x for curve in curves):
        return []
    canvas = _canvas(plot, curves)
    named = [(clean(curve.name)[:LONGEST_NAME], canvas.line(curve)) for curve in curves]
    named += _map_lines(plot, canvas.cells) if isinstance(plot, HeatMap) else []
    width = max(len(name) for name, _ in named)
    lines = [f"{name:{width}} |{line}|" for name, line in named]
    ends = f"{number(min(xs))} to {number(max(xs))}{' (log)' if canvas.log_x else ''}"
    return [*lines, f"{'':{width}}  {clean(plot.x_label)}: {ends}"]


def _map_lines(heat: HeatMap, cells: int) -> list[tuple[str, str]]:
    """The counts of a heat map in a few lines, the highest first, each with the lowest value that it holds."""
    together = math.ceil(len(heat.rows) / MAP_LINES)
    starts = range(0, len(heat.rows), together)
    columns = len(heat.x_edges) - 1
    place = [round(at / max(columns - 1, 1) * (cells - 1)) for at in range(columns)]
    sums = {start: [0] * cells for start in starts}
    for r, row in enumerate(heat.rows):
        for at, n in zip(place, row, strict=True):
            sums[r - r % together][at] += n
    most = max(max(line) for line in sums.values())
    unit = clean(heat.y_label)
    return [
        (f"{unit} from {number(heat.y_edges[start])}"[-LONGEST_NAME:], shades(sums[start], most, LEVELS, " "))
        for start in reversed(starts)
    ]


def _canvas(plot: Plot | HeatMap, curves: list[Curve]) -> _Canvas:
    log_x, hold, bin_width = _x_axis(plot)
    x = {_place(x, log_x) for curve in plot.curves for x in curve.x}
    y = {_place(y, plot.log_y) for curve in curves for y in curve.y}
    bins = round((max(x) - min(x)) / bin_width) + 1 if bin_width else CELLS
    return _Canvas((min(x), max(x)), (min(y), max(y)), log_x, plot.log_y, hold, min(CELLS, bins))


def _x_axis(plot: Plot | HeatMap) -> tuple[bool, bool, float]:
    """Whether x is logarithmic, whether a level holds until the next, and the width of a bin (0: no bins)."""
    if isinstance(plot, Plot):
        return plot.log_x, plot.style == "step", plot.bin_width
    return False, False, plot.x_edges[1] - plot.x_edges[0] if len(plot.x_edges) > 1 else 0.0


def _drawable(curve: Curve, log_y: bool) -> Curve:
    points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y > 0 or not log_y]
    return Curve(curve.name, tuple(x for x, _ in points), tuple(y for _, y in points))


def _place(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high > low else 1.0
