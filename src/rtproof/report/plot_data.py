# SPDX-License-Identifier: Apache-2.0
"""Turns plots into data for the page's script and into tables, and chooses the points to draw."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import instant
from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Int64Array
from rtproof.report.blocks import Curve, HeatMap, Plot, Table
from rtproof.report.number_format import count_text, number_text
from rtproof.summary.counts import Counts

SIGNIFICANT = 7
"""Significant digits of a place on the x axis: enough for a time axis of months in seconds."""
SIGNIFICANT_Y = 5
"""Significant digits of a place on the y axis: finer than a pixel."""
SIGNIFICANT_DATE = 13
"""Significant digits of a date in seconds since 1970: milliseconds."""
SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The shades of a heat map's cells, from one value to the most in any cell, in steps of the count's logarithm."""
NO_SHADE = "."


def aligned_points(curves: tuple[Curve, ...]) -> tuple[list[float], list[list[float | None]]]:
    """Every x of any curve, increasing, and for each curve its y at each x, or None."""
    xs = sorted({x for curve in curves for x in curve.x})
    columns = [dict(zip(curve.x, curve.y, strict=True)) for curve in curves]
    return xs, [[column.get(x) for x in xs] for column in columns]


def plot_script_data(plot: Plot | HeatMap) -> dict[str, object]:
    """The data that report.js draws, with the keys that it reads; ``kind`` is "plot" or "heat"."""
    xs, columns = aligned_points(plot.curves)
    common: dict[str, object] = {
        "title": plot.title,
        "xLabel": plot.x_label,
        "yLabel": plot.y_label,
        "logY": plot.log_y,
        "x": _short(xs, SIGNIFICANT_DATE if isinstance(plot, Plot) and plot.x_dates else SIGNIFICANT),
        "curves": [
            {"name": curve.name, "role": curve.role, "group": curve.group, "y": _short(column, SIGNIFICANT_Y)}
            for curve, column in zip(plot.curves, columns, strict=True)
        ],
        "markers": [
            {"name": marker.name, "axis": marker.axis, "at": marker.at, "role": marker.role} for marker in plot.markers
        ],
    }
    if isinstance(plot, Plot):
        return common | {
            "kind": "plot",
            "style": plot.style,
            "logX": plot.log_x,
            "binWidth": plot.bin_width,
            "xEnds": plot.x_ends,
            "yEnds": plot.y_ends,
            "yWords": plot.y_words,
            **({"xDates": True} if plot.x_dates else {}),
        }
    most = max((n for row in plot.rows for n in row), default=0)
    cells = {"most": most, "shades": [heat_shades(row, most) for row in plot.rows]}
    edges = {"xEdges": _short(list(plot.x_edges)), "yEdges": _short(list(plot.y_edges))}
    width = plot.x_edges[1] - plot.x_edges[0] if len(plot.x_edges) > 1 else 1.0
    names = [(middle, name) for name, middle, _ in plot.named_rows]
    axis = {"style": "step", "rowNames": names} if names else {"style": "bars"}
    return common | edges | cells | {"kind": "heat", **axis, "logX": False, "binWidth": width}


def heat_shades(row: Sequence[int], most: int) -> str:
    """A row of a heat map with one character per cell, whatever the size of the counts. most: the largest of all."""
    step = (len(SHADES) - 1) / math.log(most) if most > 1 else 0.0
    return "".join(NO_SHADE if not n else SHADES[round(math.log(n) * step)] if step else SHADES[-1] for n in row)


MINUTE = len("2026-02-19 03:00")
MOST_ROWS = 100


def plot_table(plot: Plot | HeatMap) -> Table:
    """A table with the points of a plot, or with a row for each column of a heat map.

    Of many points of a line or a step curve, only some are listed, evenly spread, and the caption says so. Bars are all
    listed, because a bin that is left out would be counts that are left out.
    """
    if isinstance(plot, HeatMap):
        return _named_rows_table(plot) if plot.row_names else _filled_columns_table(plot)
    curves = tuple(curve for curve in plot.curves if not curve.thin)
    xs, columns = aligned_points(curves)
    header = (plot.x_label, *(curve.name for curve in curves))
    places = list(range(len(xs)))
    thinned = ""
    if plot.style != "bars" and len(xs) > MOST_ROWS:
        places = sorted({round(at) for at in np.linspace(0, len(xs) - 1, MOST_ROWS)})
        thinned = f", {len(places)} of {len(xs):,} points"
    rows = tuple(
        (
            instant(round(xs[at] * 1e9), 0)[:MINUTE] if plot.x_dates else _figure(xs[at]),
            *(_figure(column[at]) for column in columns),
        )
        for at in places
    )
    return Table(f"{plot.title}: {plot.y_label}{thinned}", header, rows, tuple(range(len(header))))


def _short(values: list[float] | list[float | None], digits: int = SIGNIFICANT) -> list[int | float | None]:
    """The values with few digits; whole numbers without a point, because a page has thousands of them."""
    short = (None if value is None else float(f"{value:.{digits}g}") for value in values)
    return [int(value) if value is not None and value.is_integer() and abs(value) < 1e15 else value for value in short]


def _named_rows_table(heat: HeatMap) -> Table:
    """The counts of each row with a name, the highest first, for each column in which they change."""
    names, rows = zip(*((name, row) for name, _, row in reversed(list(heat.named_rows))), strict=True)
    columns = list(zip(*rows, strict=True))
    changed = [at for at, column in enumerate(columns) if at == 0 or column != columns[at - 1]]
    table = tuple((_figure(heat.x_edges[at]), *map(count_text, columns[at])) for at in changed)
    header = (heat.x_label, *names)
    return Table(f"{heat.title}: {heat.y_label}", header, table, tuple(range(len(header))))


def _filled_columns_table(heat: HeatMap) -> Table:
    header = (heat.x_label, "values", f"lowest cell begins at, {heat.y_label}", f"highest cell ends at, {heat.y_label}")
    rows = []
    for at, edge in enumerate(heat.x_edges[:-1]):
        filled = [r for r, row in enumerate(heat.rows) if row[at]]
        if filled:
            total = sum(row[at] for row in heat.rows)
            ends = (heat.y_edges[filled[0]], heat.y_edges[filled[-1] + 1])
            rows.append((_figure(edge), count_text(total), *map(_figure, ends)))
    return Table(heat.title, header, tuple(rows), tuple(range(4)))


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else number_text(value, 5)


BINS = 300
POINTS = 400
BODY = 0.99
FAR = 3
"""A histogram reaches this many times as far as the body of the distribution. The plot of the tail shows the rest."""


def nice_width(width: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that is not below ``width``."""
    decade = int(10 ** max(0, math.floor(math.log10(max(width, 1)))))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= width)


def bin_scale(counts: Counts, finest_ns: int = 1) -> tuple[int, int, int]:
    """Start, width (both in ns) and number of bins that show the body of a distribution of at least one value.

    finest_ns: the width is a multiple of this, so that no bin is finer than the values are known.
    """
    low, high = int(counts.lo[0]), int(counts.hi[-1])
    body = counts.value_at_rank(math.ceil(counts.total * BODY))[1]
    end = min(high, low + FAR * (body - low)) if body > low else high
    width = -(-nice_width((end - low + 1) / BINS) // finest_ns) * finest_ns
    start = low // width * width
    return start, width, (end - start) // width + 1


BINS_PER_DECADE = 40


def log_edges(low: int, high: int, finest_ns: int = 1) -> Int64Array:
    """Edges of bins in ns, increasing by equal factors from ``low`` > 0 to beyond ``high``, in steps of finest_ns."""
    decades = max(math.log10((high + finest_ns) / low), 0.1)
    raw = np.geomspace(low, high + finest_ns, math.ceil(decades * BINS_PER_DECADE) + 1)[:-1]
    edges = np.round(raw / finest_ns).astype(np.int64) * finest_ns
    last = min(high // finest_ns * finest_ns + finest_ns, LARGEST_VALUE)
    return np.unique(np.append(edges[edges < last], last))


def survival_grid(counts: list[Counts]) -> Int64Array:
    """Positive values, increasing, at which the tail is drawn.

    Few values are all taken. Of many, the grid has even steps in the logarithm of the value and in that of the share.
    """
    values = np.unique(np.concatenate([each.hi for each in counts]))
    values = values[values > 0]
    if values.size <= POINTS:
        return values
    total = sum(exceeding_counts(each, values) * each.total for each in counts)
    depth = -np.log10(np.maximum(total, 0.1))
    steps = [
        np.searchsorted(values, np.geomspace(values[0], values[-1], POINTS // 2)),
        np.searchsorted(depth, np.linspace(depth[0], depth[-1], POINTS // 2)),
        np.searchsorted(values, [each.hi[-1] for each in counts]),
    ]
    return values[np.unique(np.clip(np.concatenate(steps), 0, values.size - 1))]


def exceeding_counts(counts: Counts, values: Int64Array) -> NDArray[np.float64]:
    """The share of the counts above each value, from 0 to 1. A bin that holds the value counts as above it."""
    ends, shares = counts.ccdf()
    from_the_least = np.concatenate(([1.0 if counts.total else 0.0], shares))
    return from_the_least[np.searchsorted(ends, values, side="right")]


def survival_points(counts: Counts, grid: Int64Array) -> tuple[Int64Array, NDArray[np.float64]]:
    """Latencies of the grid and the share above each, up to the first latency that nothing exceeds."""
    shares = exceeding_counts(counts, grid)
    points = min(int(np.count_nonzero(shares)) + 1, grid.size)
    return grid[:points], shares[:points]


def time_columns(first: int, last: int, most: int) -> Int64Array:
    """The edges of equal columns, at most so many, that cover ``first`` to ``last`` in steps of ``nice_width``."""
    step = nice_width((last - first + 1) / most)
    return np.arange(first, last + 1 + step, step, dtype=np.int64)
