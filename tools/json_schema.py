# SPDX-License-Identifier: Apache-2.0
"""usage: json_schema.py    writes the tables of keys in docs/json-schema.md, from src/rtproof/schema/published.py

The text around the tables is written by hand.
"""

from pathlib import Path

from lab_table import put

from rtproof.doctor.findings import DOCTOR
from rtproof.report.pages.campaign_json import CAMPAIGN
from rtproof.schema.encoder import Shape, keys_table, shapes_within
from rtproof.schema.published import (
    ANALYSIS,
    AUDIT,
    COINCIDENCES,
    COMPARISON,
    COUNTED_ABOVE,
    EXPLANATION,
    HISTORY,
    IMPORTED,
    PLAN,
    RUNS,
)

PAGE = Path(__file__).parent.parent / "docs" / "json-schema.md"
DOCUMENTS = (
    ANALYSIS,
    PLAN,
    COMPARISON,
    RUNS,
    HISTORY,
    EXPLANATION,
    COINCIDENCES,
    CAMPAIGN,
    IMPORTED,
    COUNTED_ABOVE,
    AUDIT,
    DOCTOR,
)


def tables(document: Shape) -> str:
    """Return the table of a document in Markdown, and behind it that of every object in it."""
    first, *inner = shapes_within(document)
    return "\n".join([keys_table(first), *(f"### {shape.title}\n\n{keys_table(shape)}" for shape in inner)])


def marks(document: Shape) -> tuple[str, str]:
    """Return the lines between which the tables of a document stand."""
    return f"<!-- tools/json_schema.py writes from here: {document.title} -->\n", f"<!-- to here: {document.title} -->"


def write(page: Path = PAGE) -> None:
    """Write the tables of all documents into the page. Ends the program if the page lacks the marks."""
    for document in DOCUMENTS:
        put(page, tables(document), *marks(document))


if __name__ == "__main__":
    write()
