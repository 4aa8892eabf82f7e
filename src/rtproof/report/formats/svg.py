# SPDX-License-Identifier: Apache-2.0
"""The plots as one SVG for papers and slides, white and without the rest of the report; needs matplotlib.

Of one section all plots are drawn, of a whole report those of a page's first screen, one below the other, under the
report's title, so that the verdict and virtual time are not lost. The same run gives the same bytes with the same
matplotlib. Text stays text, so that a paper can set it in its own font.
"""

import importlib
import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.report.blocks import Curve, HeatMap, Marker, Plot, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIX = ".svg"
ONLY_PLOTS = True

WIDTH_IN, HEIGHT_IN = 7.0, 3.4
"""Size of each plot in inches: two columns of a paper wide."""
TITLE_IN = 0.4
LINE = 100
"""The most characters in a line of the report's title, ..."""
MOST_LINES, MOST_NAME_LINES, LINE_IN = 5, 2, 0.16
"""... and the most lines of a title and of a name, and their height. Words of a hostile file are cut there."""
MOST_IN_LEGEND = 12
MOST_PLOTS = 20
LONGEST = 70
"""The most characters in a line of a plot's title or a name."""
LONGEST_Y = 45
"""The same beside a plot."""
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "rtproof",
}
INK, LIMIT, NOTE = "#1b2430", "#a61b1b", "#56616f"


def draw(title: str, sections: list[Section]) -> bytes:
    """The plots as an SVG document. UserError without matplotlib, or if there is no plot to draw."""
    return figure_file(title, sections, "svg", {"Date": None, "Creator": "rtproof", "Title": clean(title)})


def figure_file(title: str, sections: Sequence[Section], kind: str, metadata: dict[str, Any]) -> bytes:
    """The plots in a file of a kind that matplotlib writes."""
    plots = chosen_plots(sections)
    if not plots:
        raise UserError(f"there is no plot to draw as {kind.upper()}: {clean(title)}")
    require(kind)
    from matplotlib import figure, rc_context

    with rc_context(STYLE):
        heading, names = _lines(title, LINE), "".join(_lines(plot.title) for plot in plots)
        high_in = HEIGHT_IN * len(plots) + TITLE_IN + (heading.count("\n") + names.count("\n")) * LINE_IN
        page = figure.Figure(figsize=(WIDTH_IN, high_in), layout="constrained")
        page.suptitle(heading, x=0.01, ha="left", fontsize=9)
        for axes, plot in zip(np.ravel(page.subplots(len(plots), 1, squeeze=False)), plots, strict=True):
            _draw(axes, plot)
        written = io.BytesIO()
        page.savefig(written, format=kind, dpi=200, metadata=metadata)
    return written.getvalue()


def require(kind: str) -> None:
    """UserError if matplotlib cannot be loaded."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise UserError(f"the format {kind} needs matplotlib: pip install 'rtproof[plot]'") from None


def chosen_plots(sections: Sequence[Section]) -> list[Plot | HeatMap]:
    """All plots of a single section; of several sections the ones of the first screen, if there are any.

    Plots without points are left out, and what comes after the first twenty.
    """
    plots = (block for section in sections for block in section.blocks if isinstance(block, Plot | HeatMap))
    filled = [plot for plot in plots if any(curve.x for curve in plot.curves)]
    foremost = [plot for plot in filled if isinstance(plot, Plot) and plot.foremost]
    if foremost and len(sections) > 1:
        return list(foremost)
    return filled[:MOST_PLOTS]


def _lines(words: str, in_line: int = LONGEST, most: int = MOST_LINES) -> str:
    """The words in as many lines as they need. Endless ones are cut, because they would leave no room for the plot."""
    return textwrap.fill(clean(words), in_line, max_lines=most, placeholder=" ...")


def _draw(axes: "Axes", plot: Plot | HeatMap) -> None:
    if isinstance(plot, Plot) and plot.x_dates:
        plot = _in_days(axes, plot)
    axes.set_title(_lines(plot.title), loc="left", fontsize="medium", fontweight="bold")
    axes.set_xlabel(_lines(plot.x_label))
    axes.set_ylabel(_lines(plot.y_label, LONGEST_Y))
    axes.set_axisbelow(True)
    if isinstance(plot, HeatMap):
        cells = np.ma.masked_equal(np.array(plot.rows, dtype=np.float64), 0)
        look: dict[str, Any] = {"norm": "log", "vmin": 1.0, "cmap": "Blues", "rasterized": True}
        axes.pcolormesh(plot.x_edges, plot.y_edges, cells, vmax=max(float(cells.max() or 0), 2.0), **look)
    elif plot.log_x:
        axes.set_xscale("log", nonpositive="clip")
    if plot.log_y:
        axes.set_yscale("log", nonpositive="clip")
    for number, curve in enumerate(plot.curves):
        if curve.x:  # a thread may have no sample
            _draw_curve(axes, plot, curve, number)
    if isinstance(plot, Plot):
        _set_ends(axes, plot)
    below_a_limit = any(marker.axis == "y" for marker in plot.markers)
    for row, marker in enumerate(plot.markers, 1 if below_a_limit else 0):
        _draw_marker(axes, marker, row)
    _label(axes)
    if isinstance(plot, HeatMap) and plot.row_names:
        axes.set_yticks(*zip(*((middle, _lines(name)) for name, middle, _ in plot.named_rows), strict=True))


def _label(axes: "Axes") -> None:
    """Numbers at the decades of logarithmic axes, and the legend."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            _label_decades(axis)
    drawn, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        axes.legend(drawn[:MOST_IN_LEGEND], names[:MOST_IN_LEGEND], fontsize="small", framealpha=0.85)


FEW_DECADES = 3


def _label_decades(axis: Any) -> None:
    """Plain numbers at each decade, and at 2 and 5 between few: matplotlib's labels need its mathematics, off here."""
    ticker: Any = importlib.import_module("matplotlib.ticker")
    low, high = axis.get_view_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high < 10**FEW_DECADES * low else (1.0,)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


DAY_S = 86_400.0


def _in_days(axes: "Axes", plot: Plot) -> Plot:
    """The plot with x in days since 1970, as matplotlib counts dates, and an axis that shows dates."""
    dates: Any = importlib.import_module("matplotlib.dates")
    locator = dates.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    curves = tuple(replace(curve, x=tuple(x / DAY_S for x in curve.x)) for curve in plot.curves)
    markers = tuple(replace(one, at=one.at / DAY_S) if one.axis == "x" else one for one in plot.markers)
    return replace(plot, curves=curves, markers=markers)


def _set_ends(axes: "Axes", plot: Plot) -> None:
    if plot.x_ends:
        axes.set_xlim(*plot.x_ends)
    if plot.y_ends:
        axes.set_ylim(*plot.y_ends)
    elif plot.style == "bars":
        axes.set_ylim(bottom=_floor(plot))
    below, above = plot.y_words
    place: dict[str, Any] = {"transform": axes.transAxes, "color": NOTE, "in_layout": False}
    if below:
        axes.text(0.01, 0.02, f"↓ {_lines(below)}", va="bottom", **place)
    if above:
        axes.text(0.01, 0.98, f"↑ {_lines(above)}", va="top", **place)


def _floor(plot: Plot) -> float:
    """Where bars begin: on a logarithmic axis of counts below 1, so that a single one can be seen."""
    values = [y for curve in plot.curves for y in curve.y if y > 0]
    if not plot.log_y or not values:
        return 0.0
    whole = all(y == int(y) for y in values)
    return 0.6 * (1.0 if whole else min(values))


def _draw_curve(axes: "Axes", plot: Plot | HeatMap, curve: Curve, number: int) -> None:
    look = _look(curve, number)
    if isinstance(plot, HeatMap):
        axes.step((*curve.x, plot.x_edges[-1]), (*curve.y, curve.y[-1]), where="post", **look)
    elif plot.style == "bars":
        edges, values = _bins(curve, plot.bin_width)
        axes.stairs(values, edges, baseline=None, **look)
    elif plot.style == "dots" and curve.role == "part":
        axes.plot(curve.x, curve.y, **{**look, "linestyle": "none", "marker": "o", "markersize": 3.0})
    elif plot.style in ("step", "dots"):
        axes.step(curve.x, curve.y, where="post", **look)
    else:
        axes.plot(curve.x, curve.y, **look)


WHOLE = {"linewidth": 1.6}
THIN = {"linewidth": 0.5, "alpha": 0.5}
PART = {"linewidth": 1.0}


def _look(curve: Curve, number: int) -> dict[str, Any]:
    """How a line is drawn. The curves of a group share a colour, and only one of its thin ones would be named."""
    colour = f"C{number if curve.group is None else curve.group}"
    if curve.role == "whole" and curve.group is None:
        colour = INK
    width = THIN if curve.thin else WHOLE if curve.role == "whole" else PART
    name = None if curve.thin else _lines(curve.name, most=MOST_NAME_LINES)
    return {**width, "color": colour, "linestyle": "--" if curve.role == "other" else "-", "label": name}


def _bins(curve: Curve, width: float) -> tuple[list[float], list[float]]:
    """Edges and values of all bins, with the empty ones between those that the curve lists."""
    if not width:
        return list(curve.x), list(curve.y[:-1])
    edges: list[float] = []
    values: list[float] = []
    for x, y in zip(curve.x, curve.y, strict=True):
        if edges and x - edges[-1] > width / 2:
            edges.append(x)
            values.append(0.0)
        if not edges:
            edges.append(x)
        edges.append(x + width)
        values.append(y)
    return edges, values


def _draw_marker(axes: "Axes", marker: Marker, row: int) -> None:
    colour = LIMIT if marker.role == "limit" else NOTE
    line: dict[str, Any] = {"color": colour, "linewidth": 1.0, "linestyle": (0, (6, 3))}
    name = _lines(marker.name, most=MOST_NAME_LINES)
    vertical = marker.axis == "x"
    (axes.axvline if vertical else axes.axhline)(marker.at, **line)
    x, y = (marker.at, 0.98 - 0.08 * row) if vertical else (0.99, marker.at)
    axes.text(
        x,
        y,
        f" {name} " if vertical else name,
        transform=axes.get_xaxis_transform() if vertical else axes.get_yaxis_transform(),
        va="top" if vertical else "bottom",
        ha="right",
        color=colour,
        in_layout=False,
    )
