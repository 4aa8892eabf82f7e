# SPDX-License-Identifier: Apache-2.0
"""Sections on the run over time: a heat map of latencies, maxima, missed activations, and those above levels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.episodes import LevelClusters, level_clusters
from rtproof.record.contents import Int64Array
from rtproof.report import number_format, plot_data
from rtproof.report.blocks import Block, Curve, HeatMap, Marker, Plot, Table, Text
from rtproof.report.number_format import (
    ReportStream,
    latency_unit,
    left_out_at_the_end,
    limit_marker,
    plotted_streams,
)
from rtproof.summary.density import LatencyDensity, latency_density
from rtproof.summary.imported_histogram import TimedLines
from rtproof.summary.summary_model import Summary

THREADS = 8
COLUMNS = 600
MAXIMA = "Largest latency"


@dataclass(frozen=True)
class Columns:
    """Equal columns of a time axis, in whole seconds, and the unit of the axis. edges: in s, one more than columns."""

    edges: Int64Array
    unit: number_format.PrintedUnit

    @property
    def label(self) -> str:
        return f"time since measuring began [{self.unit.name}]"

    @property
    def width(self) -> float:
        return self.x(int(self.edges[1] - self.edges[0]))

    @property
    def ends(self) -> tuple[float, float]:
        return self.x(int(self.edges[0])), self.x(int(self.edges[-1]))

    def x(self, second: int) -> float:
        return self.unit.scale(second * number_format.NS_PER_S)

    def of(self, second: Int64Array) -> Int64Array:
        """The number of the column in which each second lies."""
        return np.searchsorted(self.edges, second, side="right") - 1


def timeline_section(analysis: Analysis) -> list[Block]:
    """All latencies over time as a heat map, the largest per thread, and when activations were missed."""
    seconds = analysis.pooled.seconds
    blocks = left_out_at_the_end(analysis)
    if (seconds.obtained > 0).any():
        unit = latency_unit(analysis)
        found = latency_density(analysis.record, seconds)
        blocks += [_map(analysis, found, unit)] if found and found.time_edges_ns.size > 2 else []
        blocks.append(_maxima(analysis, unit))
    return [*blocks, _missed(analysis)] if seconds.missed.any() else blocks


def _map(analysis: Analysis, found: LatencyDensity, unit: number_format.PrintedUnit) -> HeatMap:
    time = _columns_at(found.time_edges_ns // number_format.NS_PER_S)
    y_edges, rows, log_y = _rows(found)
    return HeatMap(
        "All latencies",
        _says(analysis, found, time, log_y),
        time.label,
        f"latency [{unit.name}]",
        tuple(time.x(int(edge)) for edge in time.edges),
        tuple(unit.scale(int(edge)) for edge in y_edges),
        tuple(tuple(row) for row in rows.tolist()),
        limit_marker(analysis, "y", unit),
        log_y,
        (_curve("largest of all threads", analysis.pooled, time, unit, "whole"),),
    )


def _rows(found: LatencyDensity) -> tuple[Int64Array, Int64Array, bool]:
    """Edges in ns, counts, and whether the axis is logarithmic: it is unless most values are negative or zero.

    On a logarithmic axis the lowest row holds all values that are not positive. It begins at half of its upper edge.
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


def _says(analysis: Analysis, found: LatencyDensity, time: Columns, log_y: bool) -> str:
    second, largest = _ran(analysis.pooled)
    worst = int(largest.argmax())
    middle = round(float(np.median(largest)))
    said = (
        f"The largest of {quantity(int(found.counts.sum()), 'activation')} is {value(int(largest[worst]))}, between "
        f"{int(second[worst]):,} s and {int(second[worst]) + 1:,} s. The median of the one-second maxima "
        f"is {value(middle)}. The line is the largest per "
        f"{number_format.nice_steps(time.edges)}. The darker, the more activations."
    )
    return " ".join((said, *_notes(analysis, found, log_y)))


def _notes(analysis: Analysis, found: LatencyDensity, log_y: bool) -> list[str]:
    """Sentences on values that the map does not show, or shows at another place."""
    notes = []
    if found.what == "slices":
        length = duration(found.slice_ns)
        notes.append(f"The run kept summaries of about {length} each, so times are no finer than that.")
    low = int(found.counts[found.latency_edges[:-1] <= 0].sum())
    if low and log_y:
        notes.append(f"The lowest row holds {quantity(low, 'activation')} at or below zero.")
    if analysis.pooled.missed:
        notes.append(f"{quantity(analysis.pooled.missed, 'missed activation')} never ran and are not in the map.")
    return notes


def _maxima(analysis: Analysis, unit: number_format.PrintedUnit) -> Plot:
    drawn, left_out = plotted_streams(analysis, THREADS)
    threads = [stream for stream in drawn if not stream.pooled]
    return replace(
        maxima_plot(threads, limit_marker(analysis, "y", unit), unit, left_out), title=f"{MAXIMA} per thread"
    )


MOST_POINTS = 2_000


def lines_section(analysis: Analysis) -> list[Block]:
    """The figures that another tool printed of one stretch of time after the other; [] if it printed none."""
    imported = analysis.imported
    if imported is None or not imported.lines:
        return []
    unit = number_format.unit_for([int(ns) for each in imported.lines for ns in each.most_ns])
    time = number_format.unit_for([max(int(each.end_ns[-1]) for each in imported.lines)])
    return [_lines_plot(imported.lines, unit, time, limit_marker(analysis, "y", unit))]


def _lines_plot(
    lines: Sequence[TimedLines],
    unit: number_format.PrintedUnit,
    time: number_format.PrintedUnit,
    markers: tuple[Marker, ...],
) -> Plot:
    """The maximum of each line over time. Of many lines, several share a point: the largest of them."""
    drawn, left_out = lines[:THREADS], len(lines[THREADS:])
    worst = max(lines, key=lambda each: int(each.most_ns.max()))
    most = int(worst.most_ns.argmax())
    so_far = " so far" if worst.so_far else ""
    says = (
        f"The tool printed {quantity(sum(each.most_ns.size for each in lines), 'line')}, each with a maximum{so_far}. "
        f"The largest{f', of {worst.name},' if worst.name else ''} is {value(int(worst.most_ns[most]))}, in the line "
        f"printed {duration(int(worst.end_ns[most]))} after measuring began."
    )
    return Plot(
        f"Maximum{so_far} in each line that the tool printed",
        says if not left_out else f"{says} {quantity(left_out, 'more thread')} are not drawn.",
        f"time since measuring began [{time.name}]",
        f"latency [{unit.name}]",
        tuple(_line_curve(each, unit, time) for each in drawn),
        markers,
        foremost=True,
    )


def _line_curve(lines: TimedLines, unit: number_format.PrintedUnit, time: number_format.PrintedUnit) -> Curve:
    starts = np.arange(0, lines.most_ns.size, -(-lines.most_ns.size // MOST_POINTS))
    most = np.maximum.reduceat(lines.most_ns, starts)
    ends = lines.end_ns[np.append(starts[1:] - 1, lines.end_ns.size - 1)]
    return Curve(
        lines.name or "all values",
        tuple(time.scale(int(ns)) for ns in ends),
        tuple(unit.scale(int(ns)) for ns in most),
    )


def maxima_plot(
    drawn: Sequence[ReportStream], markers: tuple[Marker, ...], unit: number_format.PrintedUnit, left_out: str = ""
) -> Plot:
    """The largest latency of each over time. drawn: at least one of them has a second in which an activation ran."""
    some = [each for each in drawn if (each.summary.seconds.obtained > 0).any()]
    time = _columns([each.summary for each in some], COLUMNS)
    worst = max(some, key=lambda each: each.summary.observed.max)
    largest = f"The largest of all is {value(worst.summary.observed.max)}, of {worst.name}"
    says = f"The largest latency per {number_format.nice_steps(time.edges)}. {largest}. {left_out}"
    return Plot(
        MAXIMA,
        says.strip(),
        time.label,
        f"latency [{unit.name}]",
        tuple(_curve(each.name, each.summary, time, unit, each.role) for each in some),
        markers,
        log_y=_wide(some),
        style="bars",
        bin_width=time.width,
        x_ends=time.ends,
        foremost=True,
    )


def _wide(drawn: Sequence[ReportStream]) -> bool:
    values = np.concatenate([_ran(each.summary)[1] for each in drawn])
    least, most = int(values.min()), int(values.max())
    return 0 < 10 * least < most


def _missed(analysis: Analysis) -> Plot:
    seconds, time = analysis.pooled.seconds, _columns([analysis.pooled], COLUMNS)
    sums = np.zeros(time.edges.size - 1, np.int64)
    np.add.at(sums, time.of(seconds.second), seconds.missed)
    some = np.flatnonzero(sums)
    total, where = int(sums.sum()), quantity(int(np.count_nonzero(seconds.missed)), "second")
    return Plot(
        "Missed activations",
        f"{quantity(total, 'activation')} were due and never ran, in {where} of the run. The highest bar is "
        f"{number_format.count_text(int(sums.max()))} per {number_format.nice_steps(time.edges)}.",
        time.label,
        "missed activations",
        (Curve("missed", tuple(time.x(int(time.edges[at])) for at in some), tuple(map(float, sums[some])), "whole"),),
        style="bars",
        bin_width=time.width,
        x_ends=time.ends,
    )


def _ran(summary: Summary) -> tuple[Int64Array, Int64Array]:
    """The seconds in which an activation ran, and the largest latency of each in ns."""
    ran = summary.seconds.obtained > 0
    return summary.seconds.second[ran], summary.seconds.max[ran]


def _columns(summaries: Sequence[Summary], most: int) -> Columns:
    first = min(int(each.seconds.second[0]) for each in summaries)
    return _columns_at(plot_data.time_columns(first, max(int(each.seconds.second[-1]) for each in summaries), most))


def _columns_at(edges: Int64Array) -> Columns:
    return Columns(edges, number_format.axis_unit(int(edges[-1] - edges[0]) * number_format.NS_PER_S))


def _curve(name: str, summary: Summary, time: Columns, unit: number_format.PrintedUnit, role: str) -> Curve:
    """A curve of the largest latency in each column in which an activation ran."""
    second, largest = _ran(summary)
    best = np.full(time.edges.size - 1, np.iinfo(np.int64).min)
    np.maximum.at(best, time.of(second), largest)
    some = np.unique(time.of(second))
    return Curve(
        name, tuple(time.x(int(time.edges[at])) for at in some), tuple(unit.scale(int(best[at])) for at in some), role
    )


HEADER = (
    "thread", "CPU", "level [us]", "what it is", "seconds", "ran above", "missed above", "late seconds",
    "mean per late second", "dispersion",
)  # fmt: skip
WORDS = (
    "Dispersion: 1 by chance alone, more if late activations come in bursts. The first minute of the thread sets a "
    "learned level, which counts from then on."
)


def levels_section(analysis: Analysis) -> list[Block]:
    """The activations above limits and learned levels, counted by second: alone or in bursts."""
    found = level_clusters(analysis)
    caption = "Activations above each level, as the agent counted them"
    numbers = tuple(column for column, head in enumerate(HEADER) if head != "what it is")
    return [Table(caption, HEADER, tuple(map(_row, found)), numbers), Text((WORDS,))]


def _row(each: LevelClusters) -> tuple[str, ...]:
    level = each.level
    what = (
        f"{percent(1 - level.share)} of {number_format.count_text(level.taught)} values" if level.learned else "limit"
    )
    return (
        str(each.series.thread),
        str(each.series.cpu) if each.series.cpu >= 0 else "any",
        number_format.US.show(level.value),
        what,
        *map(number_format.count_text, (each.seconds, each.ran, each.missed, each.hit)),
        _ratio(each.size),
        _ratio(each.dispersion),
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
