# SPDX-License-Identifier: Apache-2.0
"""The section on edges of a run on two boards: response times by the generator's clock, and the responder's part."""

from dataclasses import replace

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.report import number_format
from rtproof.report.blocks import Block, HeatMap, Plot, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import PrintedUnit, limit_of_responses, unit_beside
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.stage_tables import headings, stage_numbers
from rtproof.summary.counts import counts_of_values
from rtproof.summary.edge_pairs import EdgePairs, edge_times
from rtproof.summary.moments import moments_of_values

COUNTS = ("due", "given", "answered", "never answered", "paired", "only the generator's", "only the responder's")
LATEST = ("response", "responder's own", "the rest")
OF_BOTH = ("edges", "forecast")
"""The sections whose figures are of what both boards did. All others are of the responder alone."""


def edges_section(analysis: Analysis) -> list[Block]:
    """The pairs of edges; [] of a run on one board."""
    pairs = analysis.edges
    if pairs is None:
        return []
    unit = response_unit(analysis, pairs)
    times = [(each.name, *stage_numbers(each.counts, each.moments, unit)) for each in edge_times(pairs)]
    blocks: list[Block] = [
        Table("Edges of the two records", COUNTS, (_counts(pairs),), tuple(range(len(COUNTS))), row_headers=False),
        _table("From the edge to its answer by the generator's clock, and what of it is the responder's", times, unit),
        *_picture(analysis, pairs),
    ]
    if pairs.refused:
        return [*blocks, Text((f"The edges of the two records are not paired: {pairs.refused}.",))]
    return [*blocks, Text(_sentences(pairs)), _latest(pairs, unit)]


def _counts(pairs: EdgePairs) -> tuple[str, ...]:
    never = pairs.never_answered_ns.size
    due = pairs.edges + pairs.not_given
    counts = (due, pairs.edges, pairs.edges - never, never, pairs.given.size, pairs.unseen, pairs.unknown)
    return tuple(map(number_format.count_text, counts))


def of_responder(name: str, blocks: list[Block]) -> list[Block]:
    """The blocks of a section of a run on two boards: the title of a plot says whose times it shows."""
    return [
        replace(block, title=f"{block.title}, of the responder alone")
        if isinstance(block, Plot | HeatMap) and name not in OF_BOTH
        else block
        for block in blocks
    ]


def response_unit(analysis: Analysis, pairs: EdgePairs) -> PrintedUnit:
    """The unit of the responses and their parts: that of the limit, or one that fits, to the nanosecond."""
    unit = unit_beside(moments_of_values(pairs.answers_ns), analysis.verdict.requirement)
    return replace(unit, digits=number_format.MOST_DIGITS.get(unit.name, unit.digits))


def _picture(analysis: Analysis, pairs: EdgePairs) -> list[Block]:
    """How often each response occurred: the times that the verdict is of. [] if no edge was answered."""
    if not pairs.answers_ns.size:
        return []
    never, counts, unit = (
        pairs.never_answered_ns.size,
        counts_of_values(pairs.answers_ns),
        response_unit(analysis, pairs),
    )
    was, its = ("was", "is") if never == 1 else ("were", "are")
    missing = f" {quantity(never, 'edge')} {was} never answered and {its} not in it." if never else ""
    says = (
        f"All {quantity(pairs.answers_ns.size, 'edge')} with an answer, in bins that grow with the response; the "
        f"largest is {value(int(pairs.answers_ns.max()))}.{missing}{left_of_log_axis(counts)}"
    )
    markers = limit_of_responses(analysis, "x", unit)
    drawn = log_histogram_plot([NamedCounts("response", counts, "whole")], markers, unit, says, 1)
    title, label = "How long the answer to each edge took, by the generator's clock", "edges in the bin"
    return [replace(drawn, title=title, y_label=label)] if drawn else []


def _table(caption: str, rows: list[tuple[str, ...]], unit: PrintedUnit) -> Table:
    header = ("time", *headings(unit))
    return Table(caption, header, tuple(rows), tuple(range(1, len(header))))


def _sentences(pairs: EdgePairs) -> tuple[str, ...]:
    faster = "fast" if pairs.rate > 0 else "slow"
    found = [
        f"The responder's clock is {abs(pairs.rate) * 1e6:.1f} ppm {faster} against the generator's.",
        "The rest is both wires, the way into the responder's interrupt handler, and the generator's own interrupt.",
    ]
    if pairs.never_answered_ns.size:
        seconds = ", ".join(f"{ns / 1e9:.3f} s" for ns in pairs.never_answered_ns[:5].tolist())
        left = pairs.never_answered_ns.size - 5
        more = f" and {left:,} more times" if left > 0 else ""
        found.append(f"Never answered: {quantity(pairs.never_answered_ns.size, 'edge')}, given at {seconds}{more}.")
    return tuple(found)


def _latest(pairs: EdgePairs, unit: PrintedUnit) -> Table:
    show = unit.show
    rest = pairs.rest_ns
    rows = tuple(
        (
            f"{pairs.sent_ns[at] / 1e9:.3f}",
            show(int(pairs.response_ns[at])),
            show(int(pairs.own_ns[at])),
            show(int(rest[at])),
        )
        for at in pairs.latest.tolist()
    )
    header = ("at [s]", *number_format.unit_headings(unit, *LATEST))
    return Table("The longest responses", header, rows, (0, 1, 2, 3))
