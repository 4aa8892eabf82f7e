# SPDX-License-Identifier: Apache-2.0
"""The section on edges of a run on two boards: response times by the generator's clock, and the responder's own."""

from dataclasses import replace

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.report import number_format
from rtproof.report.answer_overlay import TITLE, Answers, overlay
from rtproof.report.blocks import Block, HeatMap, Plot, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import PrintedUnit, limit_of_responses, response_unit
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.stage_tables import headings, stage_numbers
from rtproof.summary.two_board_edges import BoardEdges

COUNTS = ("due", "given", "answered", "never answered")
TIMES = "From the edge to its answer by the generator's clock; from interrupt handler to output by the responder's"
NOT_MATCHED = (
    "The two series stand side by side: each row has all edges of its board. The responder's may also have edges of "
    "the generator's warm-up. They are not paired edge by edge, because the boards have different clocks."
)
OF_BOTH = ("edges", "forecast")
"""The sections whose figures are of what both boards did. All others are of the responder alone."""


def edges_section(analysis: Analysis) -> list[Block]:
    """The edges as both boards timed them; [] of a run on one board."""
    edges = analysis.edges
    if edges is None:
        return []
    unit = response_unit(analysis, edges)
    counts = (edges.given + edges.not_given, edges.given, edges.answered, edges.never_answered_ns.size)
    row = tuple(map(number_format.count_text, counts))
    times = tuple((each.name, *stage_numbers(each.counts, each.moments, unit)) for each in edges.times)
    header = ("time", *headings(unit))
    answers = Answers(edges.response.counts, edges.never_answered_ns.size)
    picture = overlay(answers, unit, limit_of_responses(analysis, "x", unit), f"{TITLE}, by the generator's clock")
    return [
        Table("Edges of the generator", COUNTS, (row,), tuple(range(len(COUNTS))), row_headers=False),
        Table(TIMES, header, times, tuple(range(1, len(header)))),
        *_picture(analysis, edges, unit),
        *([picture] if picture else []),
        Text(_sentences(edges)),
    ]


def of_responder(name: str, blocks: list[Block]) -> list[Block]:
    """The blocks of a section of a run on two boards: the title of a plot says whose times it shows."""
    return [
        replace(block, title=f"{block.title}, of the responder alone")
        if isinstance(block, Plot | HeatMap) and name not in OF_BOTH
        else block
        for block in blocks
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
