# SPDX-License-Identifier: Apache-2.0
"""All answers to edges laid over each other at the input's edge, as an oscilloscope with persistence shows them.

The picture is made of counts, so it has the same size for a hundred answers and for a hundred million.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.activations import LARGEST_VALUE
from rtproof.report.blocks import Curve, HeatMap, Marker
from rtproof.report.number_format import PrintedUnit, count_text, latency_unit, limit_marker
from rtproof.report.plot_data import nice_width
from rtproof.summary.counts import Counts, FixedBins

TITLE = "All answers laid over each other"
COLUMNS = 500
"""About so many columns, so that one is about two pixels wide."""
MARGIN = 0.05
"""What is shown before the edge and behind the latest answer, as a share of the time between them."""
FARTHEST = 100
"""The axis reaches the next edge of an unanswered one, unless that is so many times further than the latest answer."""

OLD, NEW = 0.0, 100.0
"""The levels of the output on the y axis."""
ROWS = (
    ("output old", -6.0),
    ("answers", 6.0),
    ("output new", 94.0),
    ("", 106.0),
    ("input old", 140.0),
    ("input edge", 152.0),
    ("input new", 208.0),
    ("", 220.0),
)
"""The name of each row, and where it begins on the y axis. Levels are narrow, edges between them high.

The highest row is empty: the names of markers stand there.
"""
TOP = 250.0

ORIGINS = {"respond_sysfs": "task", "wire": "output", "wire_sysfs": "output"}
"""Where a method's time begins if not at the edge: the method does not know the edge's time, or drives it itself."""


def origin(analysis: Analysis) -> str:
    """What the times of the answers of a run begin with."""
    return ORIGINS.get(analysis.pooled.series.method, "edge")


@dataclass(frozen=True)
class Answers:
    """The answers to edges, of a run or of one of its boards. All times are nanoseconds.

    counts: the time from the edge to each answer. unanswered: edges without one. lost: answers whose time was lost.
    apart_ns: from one edge to the next, so the least time that an unanswered edge waited; None if that is not known.
    origin: what the times begin with.
    """

    counts: Counts
    unanswered: int = 0
    lost: int = 0
    apart_ns: int | None = None
    origin: str = "edge"

    @property
    def edges(self) -> int:
        """How many traces the picture has."""
        return self.counts.total + self.unanswered

    @property
    def latest_ns(self) -> int:
        return int(self.counts.hi[-1])


def overlay_of_run(analysis: Analysis, of: str = "") -> HeatMap | None:
    """The picture of the answers that a run measured; None for fewer than two. of: what is added to its title."""
    whole, unit = analysis.pooled, latency_unit(analysis)
    apart_ns = whole.next_due_ns or None
    answers = Answers(whole.observed_counts, whole.never_ran, whole.lost, apart_ns, origin(analysis))
    return overlay(answers, unit, limit_marker(analysis, "x", unit), f"{TITLE}{of}")


def overlay(answers: Answers, unit: PrintedUnit, markers: tuple[Marker, ...], title: str) -> HeatMap | None:
    """The picture; None for fewer than two answers, which nothing lies over."""
    if answers.counts.total < 2:
        return None
    bins = _columns(answers)
    starts = [bins.start + bins.width * at for at in range(bins.counts.size + 1)]
    x_edges = tuple(unit.scale(ns) for ns in starts)
    at = (answers.latest_ns - bins.start) // bins.width
    levels = (OLD,) * at + (NEW,) * (len(x_edges) - 1 - at)
    # The map alone shows the trace of the latest answer faintly.
    latest = Curve(f"the latest answer, {value(answers.latest_ns)}", x_edges[:-1], levels, "whole")
    return HeatMap(
        title,
        " ".join(_says(answers, bins)),
        f"time since the {answers.origin} [{unit.name}]",
        "traces in the column",
        x_edges,
        (*(begin for _, begin in ROWS), TOP),
        _rows(answers, bins),
        (*markers, *_next_edge(answers, starts[-1], unit)),
        log_y=False,
        curves=(latest,),
        row_names=tuple(name for name, _ in ROWS),
    )


def _columns(answers: Answers) -> FixedBins:
    """Every answer in columns of equal width, one of which begins at the edge."""
    least, end = int(answers.counts.lo[0]), max(answers.latest_ns, 1)
    apart_ns = answers.apart_ns if answers.unanswered else None
    if apart_ns and end < apart_ns <= FARTHEST * end:
        end = apart_ns
    width = nice_width((end - min(least, 0)) / COLUMNS)
    margin = -(-int(end * MARGIN) // width) * width
    start = max(min(least // width * width, 0) - margin, -LARGEST_VALUE // width * width)
    return answers.counts.fixed_bins(start, width, (min(end + margin, LARGEST_VALUE) - start) // width + 1)


def _rows(answers: Answers, bins: FixedBins) -> tuple[tuple[int, ...], ...]:
    """The traces in each row of ROWS: how many have the level somewhere in the column, or change it there.

    An unanswered edge leaves the output at its old level.
    """
    answered = np.cumsum(bins.counts)
    size, at_edge, edges = bins.counts.size, -bins.start // bins.width, answers.edges
    column = np.arange(size)
    rows = (
        edges - (answered - bins.counts),
        bins.counts,
        answered,
        np.zeros(size, np.int64),
        np.where(column <= at_edge, edges, 0),
        np.where(column == at_edge, edges, 0),
        np.where(column >= at_edge, edges, 0),
        np.zeros(size, np.int64),
    )
    return tuple(tuple(row.tolist()) for row in rows)


def _next_edge(answers: Answers, end_ns: int, unit: PrintedUnit) -> tuple[Marker, ...]:
    """Where the next edge is due, if the picture reaches it, or if an edge waited for its answer until then."""
    apart_ns = answers.apart_ns
    if apart_ns is None or (apart_ns > end_ns and not answers.unanswered):
        return ()
    waited = f"{count_text(answers.unanswered)} without answer: >{duration(apart_ns)}"
    name = waited if answers.unanswered else f"period {duration(apart_ns)}"
    return (Marker(name, "x", unit.scale(apart_ns), "note"),)


def _says(answers: Answers, bins: FixedBins) -> Iterator[str]:
    counts, latest_ns, apart_ns = answers.counts, answers.latest_ns, answers.apart_ns
    median_ns = counts.value_at_rank(-(-counts.total // 2))[1]
    fastest, half = (value(ns, latest_ns) for ns in (int(counts.lo[0]), median_ns))
    yield (
        f"All {quantity(counts.total, 'answer')}, in columns of {value(bins.width)}: the fastest took {fastest}, half "
        f"of them at most {half}, the latest {value(latest_ns)}."
    )
    yield (
        "As on an oscilloscope with persistence, all traces begin at the same edge of the input, above; the output is "
        "below, and changes from its old level to the new one. The stronger the colour, the more traces."
    )
    if answers.unanswered:
        its = "its" if answers.unanswered == 1 else "their"
        waited = f" (>{duration(apart_ns)})" if apart_ns else ""
        yield f"{quantity(answers.unanswered, 'edge')} had no answer{waited}: {its} output keeps the old level."
    if apart_ns and (late := counts.exceedances(apart_ns)[0]):
        yield f"{quantity(late, 'answer')} came later than a period (>{duration(apart_ns)})."
    if answers.lost:
        yield f"The times of {quantity(answers.lost, 'answer')} were lost, so these are not in it."
    if bins.straddling:
        some = quantity(bins.straddling, "answer")
        yield f"{some} may belong to a neighbouring column, because the record's bins are wider."
