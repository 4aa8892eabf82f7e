# SPDX-License-Identifier: Apache-2.0
"""Article 1's matrix, from the results of several profiles.

It has a row for each board with each kernel and a column for each cell. A result is what ``result.json`` holds
(docs/json-schema.md), so that profiles may have run on different days.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtproof.analysis.phrases import duration
from rtproof.articles import Figure
from rtproof.errors import UserError
from rtproof.report import figures
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.campaign.as_json import SCHEMA, VERSION
from rtproof.report.campaign.metrics import printed
from rtproof.report.campaign.result import NOT_MEASURED, PUBLISHED
from rtproof.report.figures import US

ABOUT = (
    "The largest latency that each run saw. Runs of different lengths stand side by side: a longer one has more "
    "chances of a late activation. What was published was measured on other machines."
)


@dataclass(frozen=True)
class Run:
    """A cell on a system, or a row that the article published. shown: its largest latency in us, as a table has it."""

    board: str
    kernel: str
    profile: str
    cell: str
    shown: str
    n: str
    length: str
    command: str


def read(told: object) -> list[Run]:
    """The runs of one result; UserError, without the file's name, if it is none."""
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        raise UserError("is no result of a profile (result.json)")
    if told.get("version") != VERSION:
        raise UserError(f"is of version {told.get('version')}, which is not {VERSION}")
    try:
        _refuse_other_lengths(told)
        return [run for cell in told["cells"] for run in _of_cell(told["profile"]["name"], cell)]
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise UserError(f"is no whole result of a profile: {problem!r}") from None


def _refuse_other_lengths(told: Mapping[str, Any]) -> None:
    analyses = [result["analysis"] for cell in told["cells"] for result in cell["results"] if result["analysis"]]
    if any(each["cycles"] or each["app"] for each in analyses):
        raise UserError("tells of the lengths of cycles, not of latencies")


def sections(runs: Sequence[Run]) -> list[Section]:
    """The matrix, own boards first, and what each run of it was."""
    known = {run.board: run.kernel for run in reversed(runs) if run.kernel}
    whole = [replace(run, kernel=run.kernel or known.get(run.board, ""), cell=_cell(run, runs)) for run in runs]
    ordered = sorted(whole, key=lambda run: run.board.startswith(PUBLISHED))
    cells = list(dict.fromkeys(run.cell for run in whole))
    places: dict[tuple[str, str], dict[str, str]] = {}
    for run in ordered:
        found = places.setdefault((run.board, run.kernel), {})
        found[run.cell] = "; ".join(filter(None, (found.get(run.cell), run.shown)))
    rows = tuple((*place, *(found.get(cell, "") for cell in cells)) for place, found in places.items())
    header = ("board", "kernel", *cells)
    matrix = Table("Largest latency of each board with each kernel [us]", header, rows, tuple(range(2, len(header))))
    return [
        Section("matrix", "Boards and kernels", (matrix, Text((ABOUT,)))),
        Section("runs", "Runs", (_table(whole),)),
    ]


def _cell(run: Run, runs: Sequence[Run]) -> str:
    """With its profile where another one has a cell of that name too."""
    alone = {other.profile for other in runs if other.cell == run.cell} == {run.profile}
    return run.cell if alone else f"{run.cell} ({run.profile})"


def _table(runs: Sequence[Run]) -> Table:
    rows = tuple((run.cell, run.board, run.shown, run.n, run.length, run.command) for run in runs)
    header = ("cell", "board", "max [us]", "n", "length", "options of rtproof run, or the article's command")
    return Table("What each figure is of", header, rows, (2, 3, 4))


def _of_cell(profile: str, cell: Mapping[str, Any]) -> Iterator[Run]:
    for result in cell["results"]:
        yield _here(profile, cell["label"], result)
    for row in cell["article"]:
        yield _published(profile, cell["label"], row)


def _here(profile: str, cell: str, result: Mapping[str, Any]) -> Run:
    analysis, words = result["analysis"], " ".join(result["arguments"])
    if analysis is None:
        why = f" - {result['failure']}" if result["failure"] else ""
        return Run(result["system"], "", profile, cell, NOT_MEASURED, "", "", f"{words}{why}")
    stages = [stage for stage in analysis["stages"] if stage["field"] == result["stage"]]
    seen = (stages or [analysis["pooled"]])[0]
    invalid = " (INVALID)" if analysis["verdict"]["state"] == "INVALID" else ""
    return Run(
        result["system"],
        analysis["record"]["kernel_release"],
        profile,
        cell,
        f"{_largest(seen, analysis)}{invalid}",
        figures.count(seen["observed"]["values_count"]),
        duration(seen["span_ns"]),
        words,
    )


def _largest(seen: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    """An edge without an answer by the next one was later than a period, however much."""
    period, found = analysis["threads"][0]["series"], seen["observed"]["max_ns"]
    external, period_ns = period["external"], period["period_ns"]
    if external and seen["missed_count"] and (found is None or found < period_ns):
        return f"> {US.show(period_ns)}"
    return US.show(found)


def _published(profile: str, cell: str, row: Mapping[str, Any]) -> Run:
    most, count = (row["figures"].get(name) for name in ("max", "count"))
    figure = Figure(most["printed"], most["value"], most["unit"], most["step"], most["at_least"]) if most else None
    n = figures.count(count["value"]) if count else ""
    board = f"{PUBLISHED}{row['board']}"
    largest, length = printed(figure, US), row["length"] or ""
    return Run(board, row["kernel"], profile, cell, largest, n, length, row["command"] or "")
