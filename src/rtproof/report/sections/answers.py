# SPDX-License-Identifier: Apache-2.0
"""Sections on answers to edges on an input: how many came in time, how long they took, and a picture of them all.

If the next edge came before the answer, the value is not missing: the answer took longer than the time between edges.
The picture lays all answers over each other at the input's edge, as an oscilloscope with persistence shows them. It is
made of counts, so it has the same size for a hundred answers and for a hundred million.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rtproof.core.phrases import duration, quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.activations import LARGEST_VALUE
from rtproof.report.blocks import Block, Curve, HeatMap, Marker, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import (
    UNKNOWN,
    US,
    PrintedUnit,
    count_text,
    latency_unit,
    limit_marker,
    limit_of_responses,
    response_unit,
    share_text,
    table_of,
)
from rtproof.report.plot_data import nice_width
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.stage_tables import ENDS, HEADINGS, headings, stage_ends, stage_numbers
from rtproof.summary.counts import Counts, FixedBins
from rtproof.summary.recorded_facts import account_number, probe_accounts
from rtproof.summary.summary_model import Moments
from rtproof.summary.two_board_edges import BoardEdges

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


def response_section(analysis: Analysis) -> list[Block]:
    """The answers to edges: how many came in time, and how long they took."""
    whole = analysis.pooled
    table = table_of(
        "Edges (unanswered if the next edge came first)",
        [whole],
        ("edges", lambda each: each.due),
        ("answered", lambda each: each.obtained),
        ("unanswered", lambda each: each.never_ran),
        ("unanswered of all", lambda each: share_text(each.never_ran, each.due)),
        ("lost", lambda each: each.lost),
        words=0,
    )
    table = replace(table, row_headers=False)
    picture = overlay_of_run(analysis)
    return [table, *([picture] if picture else []), _times(analysis), *_latmon(analysis)]


def _times(analysis: Analysis) -> Table:
    """A table of the times from the edge to each stage, and of the differences between stages of the same edge."""
    begin = origin(analysis)
    *before, last = [
        (f"{begin} to {each.series.field}", each.observed_counts, each.observed) for each in analysis.stages
    ]
    between = [(f"{each.earlier} to {each.later}", each.counts, each.moments) for each in analysis.switches]
    rows = [(name, *stage_numbers(counts, moments)) for name, counts, moments in (*before, *between, last)]
    unanswered = analysis.pooled.missed
    if unanswered:
        empty = [""] * (len(HEADINGS) - 2)
        next_ns = analysis.pooled.next_due_ns
        least = f"> {US.show(next_ns)}" if next_ns else "> the time between edges"
        rows.append(("edge to answer, unanswered", f"{unanswered:,}", *empty, least))
    return Table("How long answers took", ("what", *HEADINGS), tuple(rows), tuple(range(1, len(HEADINGS) + 1)))


def _latmon(analysis: Analysis) -> list[Block]:
    """The figures that latmon's protocol carried, beside those of the record; [] for runs without this protocol."""
    blocks: list[Block] = []
    for told in probe_accounts(analysis.record, "latmon").values():
        account = (account_number(told, word) or 0 for word in ("samples", "min_ns", "max_ns", "sum_ns"))
        ours, theirs = analysis.pooled.observed, Moments(*account)
        asked = told.get("role") == "latmus"
        rows: list[tuple[str, ...]] = [
            ("this run", *stage_ends(ours)),
            (f"latmon at {told.get('address', '')}", *stage_ends(theirs)),
        ]
        if asked and ours.mean is not None and theirs.mean is not None:
            apart = (theirs.min - ours.min, theirs.mean - ours.mean, theirs.max - ours.max)
            rows.append(("difference", "", *map(US.show, apart)))
        caption = "Edge to answer, here and as the board with latmon measured it" if asked else LATMON_SENT
        counts = [(account_number(told, word) or 0, what) for word, what in _LATMON_COUNTS]
        if not asked:
            unsent = (account_number(told, "samples") or 0) - (account_number(told, "sent") or 0)
            counts.append((unsent, "were not sent"))
        says = (f"How it ended: {told.get('outcome', UNKNOWN)}.", *(f"{n:,} {what}." for n, what in counts if n))
        blocks += [Table(caption, ("measured by", *ENDS), tuple(rows), (1, 2, 3, 4)), Text(says)]
    return blocks


LATMON_SENT = "Edge to answer, in the record and as it was sent by latmon's protocol"
_LATMON_COUNTS = (
    ("overruns", "periods passed before an answer, or edges had none (overruns)"),
    ("refused", "clients were sent away"),
    ("dropped", "answers had no room on their way to the client, which does not know them"),
    ("strange", "of latmon's parts contradict themselves"),
)


# A run on two boards: response times by the generator's clock, and the responder's own.


COUNTS = ("due", "given", "answered", "never answered")
TIMES = "From the edge to its answer by the generator's clock; from interrupt handler to output by the responder's"
NOT_MATCHED = (
    "The two series stand side by side: each row has all edges of its board. The responder's may also have edges of "
    "the generator's warm-up. They are not paired edge by edge, because the boards have different clocks."
)


def edges_section(analysis: Analysis) -> list[Block]:
    """The edges as both boards timed them; [] of a run on one board."""
    edges = analysis.edges
    if edges is None:
        return []
    unit = response_unit(analysis, edges)
    counts = (edges.given + edges.not_given, edges.given, edges.answered, edges.never_answered_ns.size)
    row = tuple(map(count_text, counts))
    times = tuple((each.name, *stage_numbers(each.counts, each.moments, unit)) for each in edges.times)
    header = ("time", *headings(unit))
    answers = Answers(edges.response.counts, edges.never_answered_ns.size)
    markers = limit_of_responses(analysis, "x", unit)
    picture = overlay(answers, unit, markers, f"{TITLE}, by the generator's clock")
    return [
        Table("Edges of the generator", COUNTS, (row,), tuple(range(len(COUNTS))), row_headers=False),
        Table(TIMES, header, times, tuple(range(1, len(header)))),
        *_picture(analysis, edges, unit),
        *([picture] if picture else []),
        Text(_sentences(edges)),
    ]


def _picture(analysis: Analysis, edges: BoardEdges, unit: PrintedUnit) -> list[Block]:
    """How often each response occurred: the times that the verdict is of. [] if no edge was answered."""
    if not edges.answered:
        return []
    never, counts = edges.never_answered_ns.size, edges.response.counts
    was, its = ("was", "is") if never == 1 else ("were", "are")
    missing = f" {quantity(never, 'edge')} {was} never answered and {its} not in it." if never else ""
    says = (
        f"All {quantity(edges.answered, 'edge')} with an answer, in bins that grow with the response; the "
        f"largest is {value(edges.response.moments.max)}.{missing}{left_of_log_axis(counts)}"
    )
    markers = limit_of_responses(analysis, "x", unit)
    drawn = log_histogram_plot([NamedCounts("response", counts, "whole")], markers, unit, says, 1)
    title, label = "How long the answer to each edge took, by the generator's clock", "edges in the bin"
    return [replace(drawn, title=title, y_label=label)] if drawn else []


def _sentences(edges: BoardEdges) -> tuple[str, ...]:
    if not edges.never_answered_ns.size:
        return (NOT_MATCHED,)
    seconds = ", ".join(f"{ns / 1e9:.3f} s" for ns in edges.never_answered_ns[:5].tolist())
    left = edges.never_answered_ns.size - 5
    more = f" and {left:,} more times" if left > 0 else ""
    never = f"Never answered: {quantity(edges.never_answered_ns.size, 'edge')}, given at {seconds}{more}."
    return NOT_MATCHED, never
