# SPDX-License-Identifier: Apache-2.0
"""Answers to edges on an input: how many came in time, how long they took, and how that splits at the task.

An edge that had no answer before the next one came is no missing value: its answer took longer than that.
"""

from rtproof.analysis.model import Analysis
from rtproof.report import figures
from rtproof.report.blocks import Block, Table
from rtproof.report.stagetable import ENDS, ends, is_response

_ORIGINS = {"respond_sysfs": "task", "wire": "output", "wire_sysfs": "output"}
"""What a method counts from, where that is not the edge: it does not know when that was, or drives it itself."""


def render(analysis: Analysis) -> list[Block]:
    if not is_response(analysis) or not analysis.stages:
        return []
    whole = analysis.pooled
    answered = ("edges", "answered", "unanswered", "unanswered of all", "lost")
    counts = (whole.due, whole.obtained, whole.never_ran)
    row = (*map(figures.count, counts), figures.share(whole.never_ran, whole.due), figures.count(whole.lost))
    caption = "Edges; unanswered: the next one came first, so the answer took longer"
    return [Table(caption, answered, (row,), tuple(range(5)), row_headers=False), _times(analysis)]


def _times(analysis: Analysis) -> Table:
    """Each stage from the edge on, and between them the difference of the same edge."""
    origin = _ORIGINS.get(analysis.pooled.series.method, "edge")
    *before, last = [(f"{origin} to {stage.series.field}", stage.observed) for stage in analysis.stages]
    between = [(f"{each.earlier} to {each.later}", each.moments) for each in analysis.switches]
    rows = [(name, *ends(moments)) for name, moments in (*before, *between, last)]
    unanswered = analysis.pooled.missed
    if unanswered:
        rows.append(("edge to answer, unanswered", figures.count(unanswered), "", "", _more_than(analysis)))
    return Table("How long answers took", ("what", *ENDS), tuple(rows), (1, 2, 3, 4))


def _more_than(analysis: Analysis) -> str:
    """A value that is known only to be larger."""
    period = analysis.pooled.series.period_ns
    return f"> {figures.US.show(period)}" if period else "> the time between edges"
