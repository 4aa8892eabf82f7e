# SPDX-License-Identifier: Apache-2.0
"""The section on edges of a run on two boards: response times by the generator's clock, and the responder's part."""

from rtproof.core.phrases import quantity
from rtproof.judge.analysis_model import Analysis
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.stage_tables import HEADINGS, stage_numbers
from rtproof.summary.edge_pairs import EdgePairs, edge_times

COUNTS = ("due", "given", "answered", "never answered", "paired", "only the generator's", "only the responder's")
LATEST = ("at [s]", *number_format.unit_headings(number_format.US, "response", "responder's own", "the rest"))


def edges_section(analysis: Analysis) -> list[Block]:
    """The pairs of edges; [] of a run on one board."""
    pairs = analysis.edges
    if pairs is None:
        return []
    times = [(each.name, *stage_numbers(each.counts, each.moments)) for each in edge_times(pairs)]
    blocks: list[Block] = [
        Table("Edges of the two records", COUNTS, (_counts(pairs),), tuple(range(len(COUNTS))), row_headers=False),
        _table(
            "From the edge to its answer by the generator's clock, and what of it is the responder's", "time", times
        ),
    ]
    if pairs.refused:
        return [*blocks, Text((f"The edges of the two records are not paired: {pairs.refused}.",))]
    return [*blocks, Text(_sentences(pairs)), _latest(pairs)]


def _counts(pairs: EdgePairs) -> tuple[str, ...]:
    never = pairs.never_answered_ns.size
    due = pairs.edges + pairs.not_given
    counts = (due, pairs.edges, pairs.edges - never, never, pairs.given.size, pairs.unseen, pairs.unknown)
    return tuple(map(number_format.count_text, counts))


def _table(caption: str, name: str, rows: list[tuple[str, ...]]) -> Table:
    header = (name, *HEADINGS)
    return Table(caption, header, tuple(rows), tuple(range(1, len(header))))


def _sentences(pairs: EdgePairs) -> tuple[str, ...]:
    faster = "fast" if pairs.rate > 0 else "slow"
    found = [
        f"The responder's clock is {abs(pairs.rate) * 1e6:.1f} ppm {faster} against the generator's.",
        "The rest is both wires, the way into the responder's interrupt handler, and the generator's own interrupt.",
    ]
    if pairs.never_answered_ns.size:
        seconds = ", ".join(f"{ns / 1e9:.3f} s" for ns in pairs.never_answered_ns[:5].tolist())
        more = ", ..." if pairs.never_answered_ns.size > 5 else ""
        found.append(f"Never answered: {quantity(pairs.never_answered_ns.size, 'edge')}, given at {seconds}{more}.")
    return tuple(found)


def _latest(pairs: EdgePairs) -> Table:
    show = number_format.US.show
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
    return Table("The longest responses", LATEST, rows, (0, 1, 2, 3))
