# SPDX-License-Identifier: Apache-2.0
"""usage: other_tools_pages.py    writes the comparison with other tools, and the page with its evidence

Both come from docs/compared-with-other-tools.toml: docs/compared-with-other-tools.md and
docs/reference/evidence-on-other-tools.md. tests/test_other_tools.py runs the commands that can run where it is.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = DOCS / "compared-with-other-tools.toml"
TABLE_PAGE = DOCS / "compared-with-other-tools.md"
EVIDENCE_PAGE = DOCS / "reference" / "evidence-on-other-tools.md"
NOT_EDITED = "% tools/other_tools_pages.py writes this page from docs/compared-with-other-tools.toml.\n"
INTRODUCTION = """
# Compared with other tools

(To compare two runs: [Is A better than B?](comparison.md))

Each cell links to its evidence. **Bold** is what a tool does better than all others here. The state is that of {date}:
"""
USES = """
## Together

rtproof [reads what these tools write, and lets them measure](formats.md). Its
[explanations](explain-measured.md#against-rtla) and [its audit](audit.md#beside-other-tools) were measured against
other tools.
"""
EVIDENCE_INTRODUCTION = """
# Evidence on other tools

What shows the cells of [the comparison with other tools](../compared-with-other-tools.md), as of {date}.
`tests/test_other_tools.py` runs each command where its programs are, and holds what it prints to patterns. What it
printed here is an excerpt of one run.
"""

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """What shows that a cell is right: a command with what it prints, or a document.

    prints, absent: regular expressions that the output has and has not. code: the exit code, None for any.
    where: the command cannot run on any machine, and ran there. printed: an excerpt of what it printed.
    """

    name: str
    says: str
    command: str = ""
    document: str = ""
    needs: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    code: int | None = 0
    where: str = ""
    printed: str = ""


def read_source(path: Path = SOURCE) -> Table:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def evidence_of(source: Table) -> dict[str, Evidence]:
    """By name, in the order of the file. TypeError if a table has a key that nobody knows."""
    return {name: _evidence(name, table) for name, table in source["evidence"].items()}


def _evidence(name: str, table: Table) -> Evidence:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    texts = {key: value.strip("\n") for key, value in fields.items() if isinstance(value, str)}
    code = None if fields.get("code") == "any" else fields.get("code", 0)
    return Evidence(name, **{**fields, **texts, "code": code})


def used_evidence(source: Table) -> list[str]:
    """The names that cells and points give, as often as they give them."""
    cells = (row[tool] for row in source["row"] for tool in source["tools"])
    points = (point for one in source["better"] for point in one["points"])
    return [name for entry in (*cells, *points) for name in entry[1:]]


def linked(text: str, names: Sequence[str], page: str) -> str:
    """The text as a link to its evidence. Text that has several, or a link of its own, has numbered links behind it."""
    if len(names) == 1 and "](" not in text:
        return f"[{text}]({page}#{names[0]})"
    return f"{text} " + " ".join(f"[({number})]({page}#{name})" for number, name in enumerate(names, 1))


def table_page(source: Table) -> str:
    return NOT_EDITED + "\n".join(_table_page(source)) + "\n"


def _table_page(source: Table) -> Iterator[str]:
    tools: Mapping[str, str] = source["tools"]
    page = EVIDENCE_PAGE.relative_to(DOCS).as_posix()
    yield INTRODUCTION.format(date=source["date"])
    yield "| tool | version |\n|---|---|"
    yield from (f"| {tools[tool]} | {version} |" for tool, version in source["versions"].items())
    yield f"\n## The table\n\n| | {' | '.join(tools.values())} |\n|---|{'---|' * len(tools)}"
    for row in source["row"]:
        cells = (linked(row[tool][0], row[tool][1:], page) for tool in tools)
        yield f"| **{row['name']}** | {' | '.join(cells)} |"
    yield "\n## What the others do better"
    for one in source["better"]:
        yield f"\n### {tools[one['tool']]}\n"
        yield from (f"* {linked(text, names, page)}" for text, *names in one["points"])
    yield USES


def evidence_page(source: Table) -> str:
    shown = (_shown(one) for one in evidence_of(source).values())
    return NOT_EDITED + EVIDENCE_INTRODUCTION.format(date=source["date"]) + "".join(shown)


def _shown(one: Evidence) -> str:
    if one.document:
        return f"\n## {one.name}\n\n{one.says}\n\nIn: {one.document}\n"
    mark = f"% not run: it ran {one.where}" if one.where else "% not run: tests/test_other_tools.py runs it"
    text = f"\n## {one.name}\n\n{one.says}\n\n{mark}\n```sh\n{one.command}\n```\n"
    if not one.printed:
        return text
    return f"{text}\nIt printed{f' {one.where}' if one.where else ''}:\n\n```text\n{one.printed}\n```\n"


if __name__ == "__main__":
    read = read_source()
    TABLE_PAGE.write_text(table_page(read), encoding="utf-8")
    EVIDENCE_PAGE.write_text(evidence_page(read), encoding="utf-8")
