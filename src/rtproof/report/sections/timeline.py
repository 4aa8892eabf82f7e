# SPDX-License-Identifier: Apache-2.0
"""The run over time: the largest latency of each second as a heat map and per thread, and what was missed when."""

import numpy as np

from rtproof.analysis.model import Analysis, Summary
from rtproof.analysis.phrases import quantity, value
from rtproof.record import Int64Array
from rtproof.report import binning, figures
from rtproof.report.blocks import Block, Curve, HeatMap, Plot
from rtproof.report.streams import Stream, for_plots, latency_unit, limit_marker, streams

ORDER = 70
TITLE = "Over time"

THREADS = 8
COLUMNS = 600
MAP_COLUMNS = 150
MAP_ROWS = 60
X_LABEL = "time since measuring began [s]"


def render(analysis: Analysis) -> list[Block]:
    seconds = analysis.pooled.seconds
    blocks: list[Block] = []
    if (seconds.obtained > 0).any():
        unit = latency_unit(analysis)
        blocks += [_map(analysis, unit)] if seconds.second.size > 1 else []
        blocks.append(_maxima(analysis, unit))
    return [*blocks, _missed(analysis)] if seconds.missed.any() else blocks


def _map(analysis: Analysis, unit: figures.Unit) -> HeatMap:
    threads = [stream.summary for stream in streams(analysis) if not stream.pooled]
    second = np.concatenate([_ran(summary)[0] for summary in threads])
    largest = np.concatenate([_ran(summary)[1] for summary in threads])
    x_edges = binning.columns(int(second.min()), int(second.max()), MAP_COLUMNS)
    y_edges, log_y = binning.value_edges(largest, MAP_ROWS)
    cells = np.histogram2d(largest, second, bins=(y_edges, x_edges))[0].astype(np.int64)
    worst = _per_column(analysis.pooled, x_edges)
    return HeatMap(
        "Largest latency of each second",
        _says(analysis, x_edges),
        X_LABEL,
        f"latency [{unit.name}]",
        tuple(map(float, x_edges)),
        tuple(unit.scale(float(edge)) for edge in y_edges),
        tuple(tuple(map(int, row)) for row in cells),
        limit_marker(analysis, "y", unit),
        log_y,
        (_curve("largest of all threads", worst, unit, "whole"),),
    )


def _says(analysis: Analysis, x_edges: Int64Array) -> str:
    second, largest = _ran(analysis.pooled)
    worst = int(largest.argmax())
    shade = "The stronger the colour of a cell, the more threads and seconds had their largest latency there"
    line = f"the line is the largest of all in each column of {figures.steps(x_edges)}"
    middle = round(float(np.median(largest)))
    return (
        f"{shade}; {line}. Over {quantity(int(second.size), 'second')} the median of the largest per second is "
        f"{value(middle)}; the largest of all is {value(int(largest[worst]))}, in second {int(second[worst]):,}."
    )


def _maxima(analysis: Analysis, unit: figures.Unit) -> Plot:
    drawn, left_out = for_plots(analysis, THREADS)
    threads = [stream for stream in drawn if not stream.pooled]
    edges = _edges(analysis)
    some = [stream for stream in threads if stream.summary.observed.count]
    worst = max(some, key=lambda stream: stream.summary.observed.max)
    says = f"{_each(edges)} per thread; {worst.name} has the largest, {value(worst.summary.observed.max)}. {left_out}"
    return Plot(
        "Largest latency per thread",
        says.strip(),
        X_LABEL,
        f"latency [{unit.name}]",
        tuple(_curve(stream.name, _per_column(stream.summary, edges), unit, stream.role) for stream in some),
        limit_marker(analysis, "y", unit),
        log_y=_wide(some),
        style="bars",
        bin_width=float(edges[1] - edges[0]),
        x_ends=(float(edges[0]), float(edges[-1])),
    )


def _each(edges: Int64Array) -> str:
    return f"The largest latency in each {figures.steps(edges)}"


def _wide(threads: list[Stream]) -> bool:
    values = np.concatenate([_ran(stream.summary)[1] for stream in threads])
    return bool(values.min() > 0 and values.max() > 10 * values.min())


def _missed(analysis: Analysis) -> Plot:
    seconds, edges = analysis.pooled.seconds, _edges(analysis)
    sums = np.zeros(edges.size - 1, np.int64)
    np.add.at(sums, np.searchsorted(edges, seconds.second, side="right") - 1, seconds.missed)
    some = np.flatnonzero(sums)
    total, where = int(sums.sum()), quantity(int(np.count_nonzero(seconds.missed)), "second")
    return Plot(
        "Missed activations",
        f"{quantity(total, 'activation')} due never ran, in {where}; most in one column of {figures.steps(edges)}: "
        f"{figures.count(int(sums.max()))}.",
        X_LABEL,
        "missed activations",
        (Curve("missed", tuple(map(float, edges[some])), tuple(map(float, sums[some])), "whole"),),
        style="bars",
        bin_width=float(edges[1] - edges[0]),
        x_ends=(float(edges[0]), float(edges[-1])),
    )


def _ran(summary: Summary) -> tuple[Int64Array, Int64Array]:
    """Seconds in which anything ran, and the largest latency of each."""
    ran = summary.seconds.obtained > 0
    return summary.seconds.second[ran], summary.seconds.max[ran]


def _edges(analysis: Analysis) -> Int64Array:
    second = analysis.pooled.seconds.second
    return binning.columns(int(second[0]), int(second[-1]), COLUMNS)


def _per_column(summary: Summary, edges: Int64Array) -> list[tuple[int, int]]:
    """Left edge and largest latency of every column in which anything ran."""
    second, largest = _ran(summary)
    column = np.searchsorted(edges, second, side="right") - 1
    best = np.full(edges.size - 1, np.iinfo(np.int64).min)
    np.maximum.at(best, column, largest)
    return [(int(edges[at]), int(best[at])) for at in np.unique(column)]


def _curve(name: str, points: list[tuple[int, int]], unit: figures.Unit, role: str) -> Curve:
    return Curve(name, tuple(float(x) for x, _ in points), tuple(unit.scale(y) for _, y in points), role)
