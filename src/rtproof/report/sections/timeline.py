# SPDX-License-Identifier: Apache-2.0
"""Sections on the run over time: a heat map of latencies, maxima, and missed activations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Int64Array
from rtproof.report import plot_data
from rtproof.report.blocks import Block, Curve, HeatMap, Marker, Plot
from rtproof.report.number_format import (
    NS_PER_S,
    PrintedUnit,
    ReportStream,
    axis_unit,
    count_text,
    latency_unit,
    left_out_at_the_end,
    limit_marker,
    nice_steps,
    plotted_streams,
    unit_for,
)
from rtproof.summary.density import LatencyDensity, latency_density
from rtproof.summary.imported_histogram import TimedLines
from rtproof.summary.summary_model import Summary

THREADS = 8
COLUMNS = 600
MAXIMA = "Largest latency"


def _time_axis(edges: Int64Array) -> tuple[str, tuple[float, ...]]:
    """The label of an axis with columns between these seconds, and the edges in its unit."""
    unit = axis_unit(int(edges[-1] - edges[0]) * NS_PER_S)
    label = f"time since measuring began [{unit.name}]"
    return label, tuple(unit.scale(int(edge) * NS_PER_S) for edge in edges)


def timeline_section(analysis: Analysis) -> list[Block]:
    """All latencies over time as a heat map, the largest per thread, and when activations were missed."""
    seconds = analysis.pooled.seconds
    blocks = left_out_at_the_end(analysis)
    if (seconds.obtained > 0).any():
        unit = latency_unit(analysis)
        found = latency_density(analysis.record, seconds)
        blocks += [_map(analysis, found, unit)] if found and found.time_edges_ns.size > 2 else []
        drawn, left_out = plotted_streams(analysis, THREADS)
        threads = [stream for stream in drawn if not stream.pooled]
        maxima = maxima_plot(threads, limit_marker(analysis, "y", unit), unit, left_out)
        blocks.append(replace(maxima, title=f"{MAXIMA} per thread"))
    return [*blocks, _missed(analysis)] if seconds.missed.any() else blocks


def _map(analysis: Analysis, found: LatencyDensity, unit: PrintedUnit) -> HeatMap:
    edges = found.time_edges_ns // NS_PER_S
    label, xs = _time_axis(edges)
    y_edges, rows, log_y = _rows(found)
    return HeatMap(
        "All latencies",
        " ".join(_says(analysis, found, nice_steps(edges), log_y)),
        label,
        f"latency [{unit.name}]",
        xs,
        tuple(unit.scale(int(edge)) for edge in y_edges),
        tuple(tuple(row) for row in rows.tolist()),
        limit_marker(analysis, "y", unit),
        log_y,
        (_curve("largest of all threads", analysis.pooled, edges, unit, "whole"),),
    )


def _rows(found: LatencyDensity) -> tuple[Int64Array, Int64Array, bool]:
    """Edges in ns, counts, and whether the axis is logarithmic: unless most values lie in the rows at or below zero.

    On a logarithmic axis the lowest row holds all of these. It begins at half of its upper edge.
    """
    edges, counts = found.latency_edges, found.counts
    below = int(np.searchsorted(edges[:-1], 0, side="right"))
    if 2 * int(counts[:below].sum()) > int(counts.sum()):
        return edges, counts, False
    if not below:
        return edges, counts, True
    first = below + int(np.flatnonzero(counts[below:].any(axis=1))[0])
    lowest = counts[:below].sum(axis=0, keepdims=True)
    floor = np.array([max(int(edges[first]) // 2, 1)], np.int64)
    return np.concatenate((floor, edges[first:])), np.concatenate((lowest, counts[first:])), True


def _says(analysis: Analysis, found: LatencyDensity, step: str, log_y: bool) -> Iterator[str]:
    """What the map shows, and sentences on values that it does not show, or shows at another place."""
    second, largest = _ran(analysis.pooled)
    worst = int(largest.argmax())
    middle = round(float(np.median(largest)))
    yield (
        f"The largest of {quantity(int(found.counts.sum()), 'activation')} is {value(int(largest[worst]))}, between "
        f"{int(second[worst]):,} s and {int(second[worst]) + 1:,} s. The median of the one-second maxima "
        f"is {value(middle)}. The line is the largest per {step}. The darker, the more activations."
    )
    if found.what == "slices":
        yield f"The run kept summaries of about {duration(found.slice_ns)} each, so times are no finer than that."
    below = int(np.searchsorted(found.latency_edges[:-1], 0, side="right"))
    low = int(found.counts[:below].sum())
    if low and log_y:
        yield f"The lowest row holds {quantity(low, 'activation')} below {value(int(found.latency_edges[below]))}."
    if analysis.pooled.missed:
        yield f"{quantity(analysis.pooled.missed, 'missed activation')} never ran and are not in the map."


MOST_POINTS = 2_000


def lines_section(analysis: Analysis) -> list[Block]:
    """The figures that another tool printed of one stretch of time after the other; [] if it printed none."""
    imported = analysis.imported
    if imported is None or not imported.lines:
        return []
    unit = unit_for([int(ns) for each in imported.lines for ns in each.most_ns])
    time = unit_for([max(int(each.end_ns[-1]) for each in imported.lines)])
    return [_lines_plot(imported.lines, unit, time, limit_marker(analysis, "y", unit))]


def _lines_plot(lines: Sequence[TimedLines], unit: PrintedUnit, time: PrintedUnit, markers: tuple[Marker, ...]) -> Plot:
    """The maximum of each line over time. Of many lines, several share a point: the largest of them."""
    worst = max(lines, key=lambda each: int(each.most_ns.max()))
    most = int(worst.most_ns.argmax())
    so_far = " so far" if worst.so_far else ""
    says = (
        f"The tool printed {quantity(sum(each.most_ns.size for each in lines), 'line')}, each with a maximum{so_far}. "
        f"The largest{f', of {worst.name},' if worst.name else ''} is {value(int(worst.most_ns[most]))}, in the line "
        f"printed {duration(int(worst.end_ns[most]))} after measuring began."
    )
    curves = []
    for each in lines[:THREADS]:
        starts = np.arange(0, each.most_ns.size, -(-each.most_ns.size // MOST_POINTS))
        ends = each.end_ns[np.append(starts[1:] - 1, each.end_ns.size - 1)].tolist()
        largest = np.maximum.reduceat(each.most_ns, starts).tolist()
        curves.append(Curve(each.name or "all values", tuple(map(time.scale, ends)), tuple(map(unit.scale, largest))))
    left_out = len(lines) - len(curves)
    return Plot(
        f"Maximum{so_far} in each line that the tool printed",
        f"{says} {quantity(left_out, 'more thread')} are not drawn." if left_out else says,
        f"time since measuring began [{time.name}]",
        f"latency [{unit.name}]",
        tuple(curves),
        markers,
        foremost=True,
    )


def maxima_plot(
    drawn: Sequence[ReportStream], markers: tuple[Marker, ...], unit: PrintedUnit, left_out: str = ""
) -> Plot:
    """The largest latency of each over time. drawn: at least one of them has a second in which an activation ran."""
    some = [each for each in drawn if (each.summary.seconds.obtained > 0).any()]
    edges, values = _edges([each.summary for each in some]), np.concatenate([_ran(each.summary)[1] for each in some])
    label, xs = _time_axis(edges)
    worst = max(some, key=lambda each: each.summary.observed.max)
    says = (
        f"The largest latency per {nice_steps(edges)}. The largest of all is "
        f"{value(worst.summary.observed.max)}, of {worst.name}. {left_out}"
    )
    return Plot(
        MAXIMA,
        says.strip(),
        label,
        f"latency [{unit.name}]",
        tuple(_curve(each.name, each.summary, edges, unit, each.role) for each in some),
        markers,
        log_y=0 < 10 * int(values.min()) < int(values.max()),
        style="bars",
        bin_width=xs[1] - xs[0],
        x_ends=(xs[0], xs[-1]),
        foremost=True,
    )


def _missed(analysis: Analysis) -> Plot:
    seconds, edges = analysis.pooled.seconds, _edges([analysis.pooled])
    label, xs = _time_axis(edges)
    sums = np.zeros(edges.size - 1, np.int64)
    np.add.at(sums, _column_of(edges, seconds.second), seconds.missed)
    some = np.flatnonzero(sums)
    total, where = int(sums.sum()), quantity(int(np.count_nonzero(seconds.missed)), "second")
    return Plot(
        "Missed activations",
        f"{quantity(total, 'activation')} were due and never ran, in {where} of the run. The highest bar is "
        f"{count_text(int(sums.max()))} per {nice_steps(edges)}.",
        label,
        "missed activations",
        (Curve("missed", tuple(xs[at] for at in some), tuple(map(float, sums[some])), "whole"),),
        style="bars",
        bin_width=xs[1] - xs[0],
        x_ends=(xs[0], xs[-1]),
    )


def _ran(summary: Summary) -> tuple[Int64Array, Int64Array]:
    """The seconds in which an activation ran, and the largest latency of each in ns."""
    ran = summary.seconds.obtained > 0
    return summary.seconds.second[ran], summary.seconds.max[ran]


def _edges(summaries: Sequence[Summary]) -> Int64Array:
    """The edges of equal columns of whole seconds, one more than columns."""
    first = min(int(each.seconds.second[0]) for each in summaries)
    last = max(int(each.seconds.second[-1]) for each in summaries)
    return plot_data.time_columns(first, last, COLUMNS)


def _column_of(edges: Int64Array, second: Int64Array) -> Int64Array:
    return np.searchsorted(edges, second, side="right") - 1


def _curve(name: str, summary: Summary, edges: Int64Array, unit: PrintedUnit, role: str) -> Curve:
    """A curve of the largest latency in each column in which an activation ran."""
    second, largest = _ran(summary)
    best, (_, xs), place = np.full(edges.size - 1, np.iinfo(np.int64).min), _time_axis(edges), _column_of(edges, second)
    np.maximum.at(best, place, largest)
    some = np.unique(place)
    return Curve(name, tuple(xs[at] for at in some), tuple(unit.scale(int(best[at])) for at in some), role)
