# SPDX-License-Identifier: Apache-2.0
"""Sections on answers to edges on an input: how many came in time, how long they took, and a picture of them all.

If the next edge came before the answer, the value is not missing: the answer took longer than the time between edges.
"""

from dataclasses import replace

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.report import answer_overlay
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.cumulative_curves import NamedCounts
from rtproof.report.number_format import (
    UNKNOWN,
    US,
    PrintedUnit,
    count_text,
    limit_of_responses,
    response_unit,
    share_text,
    table_of,
)
from rtproof.report.sections.distribution import left_of_log_axis, log_histogram_plot
from rtproof.report.stage_tables import ENDS, HEADINGS, headings, stage_ends, stage_numbers
from rtproof.summary.recorded_facts import account_number, probe_accounts
from rtproof.summary.summary_model import Moments
from rtproof.summary.two_board_edges import BoardEdges


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
    picture = answer_overlay.overlay_of_run(analysis)
    return [table, *([picture] if picture else []), _times(analysis), *_latmon(analysis)]


def _times(analysis: Analysis) -> Table:
    """A table of the times from the edge to each stage, and of the differences between stages of the same edge."""
    origin = answer_overlay.origin(analysis)
    *before, last = [
        (f"{origin} to {each.series.field}", each.observed_counts, each.observed) for each in analysis.stages
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
    answers = answer_overlay.Answers(edges.response.counts, edges.never_answered_ns.size)
    markers = limit_of_responses(analysis, "x", unit)
    picture = answer_overlay.overlay(answers, unit, markers, f"{answer_overlay.TITLE}, by the generator's clock")
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
