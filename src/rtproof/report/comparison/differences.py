# SPDX-License-Identifier: Apache-2.0
"""What else differs between the two sides, first what is known to matter: any of it may be the reason."""

from collections.abc import Sequence

from rtproof.analysis.comparison.alike import Difference
from rtproof.analysis.comparison.model import Comparison, Side
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Section, Table, Text

SHOWN = 20
SHORT = 8
NOTHING = "None of the facts that both sides record differs. What no record holds, such as temperature, may still."
WHY = "not known to matter"


def section(found: Comparison, *, short: bool) -> Section:
    """short: the first of them only."""
    most = SHORT if short else SHOWN
    first, rest = found.differences[:most], found.differences[most:]
    blocks: list[Block] = (
        [_table(found, first, "What differs, most likely to matter first")] if first else [Text((NOTHING,))]
    )
    if rest and short:
        blocks.append(Text((f"{quantity(len(rest), 'more difference')}: on the page.",)))
    elif rest:
        blocks.append(_table(found, rest, "What else differs", folded=True))
    for side in (found.a, found.b):
        blocks += _varying(side)
    return Section("differences", "What differs in the facts", tuple(blocks))


def _table(found: Comparison, some: Sequence[Difference], caption: str, *, folded: bool = False) -> Table:
    header = ("fact", found.a.name, found.b.name, "why it may matter", "source")
    return Table(caption, header, tuple(map(_row, some)), folded=folded)


def _row(one: Difference) -> tuple[str, ...]:
    said = "you said that this is what is compared; " if one.said else ""
    return one.key, one.a, one.b, f"{said}{one.why or WHY}", one.source


def _varying(side: Side) -> list[Block]:
    """A side whose own runs differ is no one thing."""
    if not side.varying:
        return []
    rows = tuple(
        (one.key, "; ".join(f"{text} ({quantity(n, 'run')})" for text, n in one.texts)) for one in side.varying
    )
    return [
        Table(f"In what the runs of {side.name} differ among themselves", ("fact", "what they say"), rows, folded=True)
    ]
