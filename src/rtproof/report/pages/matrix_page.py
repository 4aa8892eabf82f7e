# SPDX-License-Identifier: Apache-2.0
"""Article 1's matrix, from the results of several profiles.

The matrix has a row for each board with each kernel and a column for each cell. A result is the content of a
``result.json`` (docs/json-schema.md). Profiles may therefore have run on different days.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtproof.articles import ArticleFigure
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration
from rtproof.report import number_format
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.number_format import US
from rtproof.report.pages.campaign_json import CAMPAIGN_SCHEMA, CAMPAIGN_SCHEMA_VERSION
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, NOT_MEASURED, as_published, board_table

ABOUT = (
    "The largest latency that each run saw. Runs of different lengths stand side by side: a longer one has more "
    "chances of a late activation. What was published was measured on other machines."
)


@dataclass(frozen=True)
class MatrixRun:
    """A cell on a system, or a row of the article. shown: the largest latency in us, as text for the table."""

    board: str
    kernel: str
    profile: str
    cell: str
    shown: str
    n: str
    length: str
    command: str


def read_matrix_run(told: object) -> list[MatrixRun]:
    """Return the runs of one result. Raises UserError, without the file's name, if it is not a result."""
    if not isinstance(told, dict) or told.get("schema") != CAMPAIGN_SCHEMA:
        raise UserError("is no result of a profile (result.json)")
    if told.get("version") != CAMPAIGN_SCHEMA_VERSION:
        raise UserError(f"is of version {told.get('version')}, which is not {CAMPAIGN_SCHEMA_VERSION}")
    try:
        _refuse_other_lengths(told)
        return [run for cell in told["cells"] for run in _of_cell(told["profile"]["name"], cell)]
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise UserError(f"is no whole result of a profile: {problem!r}") from None


def _refuse_other_lengths(told: Mapping[str, Any]) -> None:
    analyses = [result["analysis"] for cell in told["cells"] for result in cell["results"] if result["analysis"]]
    if any(each["cycles"] or each["app"] for each in analyses):
        raise UserError("tells of the lengths of cycles, not of latencies")


def matrix_sections(runs: Sequence[MatrixRun]) -> list[Section]:
    """Return the matrix, own boards first, and a description of each of its runs."""
    known = {run.board: run.kernel for run in reversed(runs) if run.kernel}
    whole = [replace(run, kernel=run.kernel or known.get(run.board, ""), cell=_cell(run, runs)) for run in runs]
    ordered = sorted(whole, key=lambda run: run.board.startswith(ARTICLE_PREFIX))
    cells = list(dict.fromkeys(run.cell for run in whole))
    places: dict[tuple[str, str], dict[str, str]] = {}
    for run in ordered:
        found = places.setdefault((run.board, run.kernel), {})
        found[run.cell] = "; ".join(filter(None, (found.get(run.cell), run.shown)))
    rows = [(*place, *(found.get(cell, "") for cell in cells)) for place, found in places.items()]
    return [
        Section("matrix", "Boards and kernels", (board_table(cells, rows), Text((ABOUT,)))),
        Section("runs", "Runs", (_table(whole),)),
    ]


def _cell(run: MatrixRun, runs: Sequence[MatrixRun]) -> str:
    """Return the name of the run's cell, with its profile where another profile has a cell of that name too."""
    alone = {other.profile for other in runs if other.cell == run.cell} == {run.profile}
    return run.cell if alone else f"{run.cell} ({run.profile})"


def _table(runs: Sequence[MatrixRun]) -> Table:
    rows = tuple((run.cell, run.board, run.shown, run.n, run.length, run.command) for run in runs)
    header = ("cell", "board", "max [us]", "n", "length", "options of rtproof run, or the article's command")
    return Table("What each figure is of", header, rows, (2, 3, 4))


def _of_cell(profile: str, cell: Mapping[str, Any]) -> Iterator[MatrixRun]:
    for result in cell["results"]:
        yield _here(profile, cell["label"], result)
    for row in cell["article"]:
        yield _published(profile, cell["label"], row)


def _here(profile: str, cell: str, result: Mapping[str, Any]) -> MatrixRun:
    analysis, words = result["analysis"], " ".join(result["arguments"])
    if analysis is None:
        why = f" - {result['failure']}" if result["failure"] else ""
        return MatrixRun(result["system"], "", profile, cell, NOT_MEASURED, "", "", f"{words}{why}")
    stages = [stage for stage in analysis["stages"] if stage["field"] == result["stage"]]
    seen = (stages or [analysis["pooled"]])[0]
    invalid = " (INVALID)" if analysis["verdict"]["state"] == "INVALID" else ""
    return MatrixRun(
        result["system"],
        analysis["record"]["kernel_release"],
        profile,
        cell,
        f"{_largest(seen, analysis)}{invalid}",
        number_format.count_text(seen["observed"]["values_count"]),
        duration(seen["span_ns"]),
        words,
    )


def _largest(seen: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    """Return the largest latency. An edge without an answer before the next edge was later than a period.

    By how much it was later is not known.
    """
    period, found = analysis["threads"][0]["series"], seen["observed"]["max_ns"]
    external, period_ns = period["external"], period["period_ns"]
    if external and seen["missed_count"] and (found is None or found < period_ns):
        return f"> {US.show(period_ns)}"
    return US.show(found)


def _published(profile: str, cell: str, row: Mapping[str, Any]) -> MatrixRun:
    most, count = (row["figures"].get(name) for name in ("max", "count"))
    figure = (
        ArticleFigure(most["printed"], most["value"], most["unit"], most["step"], most["at_least"]) if most else None
    )
    n = number_format.count_text(count["value"]) if count else ""
    board = f"{ARTICLE_PREFIX}{row['board']}"
    largest, length = as_published(figure, US), row["length"] or ""
    return MatrixRun(board, row["kernel"], profile, cell, largest, n, length, row["command"] or "")
