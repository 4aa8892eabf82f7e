# SPDX-License-Identifier: Apache-2.0
"""The rows as text for a terminal and as GitHub's Markdown, in which the details are folded."""

from collections.abc import Iterator, Sequence

from rtproof.analysis.model import State
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Table
from rtproof.report.ci.rows import Row, worst
from rtproof.report.formats.markdown import block_markdown, words
from rtproof.report.texttable import lay_out
from rtproof.report.words import clean

EACH = (
    "Each run is judged by itself: its confidence is that of its own verdict. "
    "That the verdicts on all {0} decided runs are right is less sure."
)
HEADER = ("run", "verdict", "claim", "seen", "how much longer", "doubts")


def text(rows: Sequence[Row]) -> bytes:
    """The table and the reasons below it."""
    parts = [_title(rows), lay_out(_table(rows)), *_each_by_itself(rows), *_reasons(rows)]
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def markdown(rows: Sequence[Row], stated: str = "") -> bytes:
    """For a pull request or a job's summary. stated: what the user says and nobody can check."""
    parts = [f"## {words(_title(rows))}", block_markdown(_table(rows))]
    parts += [words(line) for line in _each_by_itself(rows)]
    parts += [f"> {words(stated)}"] if stated else []
    parts += [_details(row) for row in rows]
    return ("\n\n".join(parts) + "\n").encode(errors="replace")


def _title(rows: Sequence[Row]) -> str:
    return f"rtproof: {worst(rows)} - {quantity(len(rows), 'run')}"


def _each_by_itself(rows: Sequence[Row]) -> list[str]:
    """Of several verdicts that may each be wrong, one is so more often."""
    decided = sum(row.state in (State.PROVEN, State.REFUTED) for row in rows)
    return [EACH.format(decided)] if decided > 1 else []


def _table(rows: Sequence[Row]) -> Table:
    return Table("One line for each limit", HEADER, tuple(cells for row in rows for cells in _cells(row)))


def _cells(row: Row) -> Iterator[tuple[str, ...]]:
    if row.state is None:
        yield row.name, row.verdict, "", row.error, "", ""
    for number, claim in enumerate(row.claims):
        doubts = str(len(row.doubts)) if row.doubts else "none"
        name = row.name if number == 0 else ""
        yield name, claim.state.value, claim.text, claim.seen, claim.longer, doubts if number == 0 else ""


def _reasons(rows: Sequence[Row]) -> Iterator[str]:
    """Why each verdict is so, and what is to be said against a run."""
    for row in rows:
        said = [f"{row.verdict}: {row.error}"] if row.error else []
        said += [f"{claim.state.value}: {claim.reason}" for claim in row.claims]
        said += [f"doubt: {doubt}" for doubt in row.doubts]
        yield "\n".join([clean(row.name), *(f"  {clean(line)}" for line in said)])


def _details(row: Row) -> str:
    """Folded, the sentences as a list; GitHub wants an empty line behind the summary."""
    said = [line for claim in row.claims for line in claim.said] or [row.error]
    said += [f"doubt: {doubt}" for doubt in row.doubts]
    listed = "\n".join(f"- {words(line)}" for line in said)
    return f"<details><summary>{words(row.name)}: {row.verdict}</summary>\n\n{listed}\n\n</details>"
