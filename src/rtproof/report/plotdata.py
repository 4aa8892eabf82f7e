# SPDX-License-Identifier: Apache-2.0
"""Plots as data: for the page's script, compact and on one x axis; and as the table that says the same in figures."""

import math
from collections.abc import Sequence

from rtproof.report import figures
from rtproof.report.blocks import Curve, HeatMap, Plot, Table

SIGNIFICANT = 7
"""Digits kept of a coordinate: far below one pixel, and enough for a time axis of months in seconds."""
SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Of a cell of a heat map, from a single value to the most in any cell; steps in the logarithm of the count."""
NO_SHADE = "."


def aligned(curves: tuple[Curve, ...]) -> tuple[list[float], list[list[float | None]]]:
    """Every x that a curve has, increasing, and per curve its y there or None."""
    xs = sorted({x for curve in curves for x in curve.x})
    columns = [dict(zip(curve.x, curve.y, strict=True)) for curve in curves]
    return xs, [[column.get(x) for x in xs] for column in columns]


def script_data(plot: Plot | HeatMap) -> dict[str, object]:
    """What report.js draws; ``kind`` is plot or heat."""
    xs, columns = aligned(plot.curves)
    common: dict[str, object] = {
        "title": plot.title,
        "xLabel": plot.x_label,
        "yLabel": plot.y_label,
        "logY": plot.log_y,
        "x": _short(xs),
        "curves": [
            {"name": curve.name, "role": curve.role, "group": curve.group, "y": _short(column)}
            for curve, column in zip(plot.curves, columns, strict=True)
        ],
        "markers": [{"name": marker.name, "axis": marker.axis, "at": marker.at} for marker in plot.markers],
    }
    if isinstance(plot, Plot):
        return common | {
            "kind": "plot",
            "style": plot.style,
            "logX": plot.log_x,
            "binWidth": plot.bin_width,
            "xEnds": plot.x_ends,
            "yEnds": plot.y_ends,
        }
    most = max((n for row in plot.rows for n in row), default=0)
    cells = {"most": most, "shades": [shades(row, most) for row in plot.rows]}
    edges = {"xEdges": _short(list(plot.x_edges)), "yEdges": _short(list(plot.y_edges))}
    width = plot.x_edges[1] - plot.x_edges[0] if len(plot.x_edges) > 1 else 1.0
    return common | edges | cells | {"kind": "heat", "style": "bars", "logX": False, "binWidth": width}


def shades(row: Sequence[int], most: int, scale: str = SHADES, empty: str = NO_SHADE) -> str:
    """A row of a heat map with a character per cell: a byte each, however large the counts are."""
    step = (len(scale) - 1) / math.log(most) if most > 1 else 0.0
    return "".join(empty if not n else scale[round(math.log(n) * step)] if step else scale[-1] for n in row)


def table_of(plot: Plot | HeatMap) -> Table:
    """The points of a plot, or of a heat map one row per column of cells."""
    return _plot_table(plot) if isinstance(plot, Plot) else _heat_table(plot)


def _short(values: list[float] | list[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{SIGNIFICANT}g}") for value in values]


def _plot_table(plot: Plot) -> Table:
    curves = tuple(curve for curve in plot.curves if not curve.thin)
    xs, columns = aligned(curves)
    header = (plot.x_label, *(curve.name for curve in curves))
    rows = tuple((_figure(x), *(_figure(column[at]) for column in columns)) for at, x in enumerate(xs))
    return Table(f"{plot.title}: {plot.y_label}", header, rows, tuple(range(len(header))))


def _heat_table(heat: HeatMap) -> Table:
    header = (heat.x_label, "values", f"lowest cell begins at, {heat.y_label}", f"highest cell ends at, {heat.y_label}")
    rows = []
    for at, edge in enumerate(heat.x_edges[:-1]):
        filled = [r for r, row in enumerate(heat.rows) if row[at]]
        if filled:
            total = sum(row[at] for row in heat.rows)
            ends = (heat.y_edges[filled[0]], heat.y_edges[filled[-1] + 1])
            rows.append((_figure(edge), figures.count(total), *map(_figure, ends)))
    return Table(heat.title, header, tuple(rows), tuple(range(4)))


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return figures.count(int(value)) if value == int(value) and abs(value) < 1e15 else figures.number(value, 5)
