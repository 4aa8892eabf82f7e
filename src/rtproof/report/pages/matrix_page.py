# SPDX-License-Identifier: Apache-2.0
"""Boards and kernels side by side: article 1's matrix, from the results of several profiles, or from single runs.

The matrix has a row for each board with each kernel and a column for each cell; of single runs, for each load. A result
is the content of a ``result.json`` (docs/json-schema.md). Profiles may therefore have run on different days.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from rtproof.articles import ArticleFigure
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, quantity
from rtproof.report import number_format
from rtproof.report.blocks import Block, Plot, Section, Table, Text
from rtproof.report.number_format import US
from rtproof.report.pages import comparison_figures
from rtproof.report.pages.campaign_cells import ARTICLE_PREFIX, NOT_MEASURED, as_published
from rtproof.report.pages.campaign_json import CAMPAIGN_SCHEMA, CAMPAIGN_SCHEMA_VERSION
from rtproof.summary.recorded_facts import SIMULATED_PROBE

ABOUT = (
    "The largest latency of each run. A longer run has more chances of a late activation, so rtproof compare tells "
    "whether a difference is more than chance."
)
LONGEST_LOOP = "longest loop"
RUNS_HEADER = ("cell", "board", "max [us]", "n", "length", "options of rtproof run, the article's command, or the run")
PUBLISHED = "What was published was measured on other machines."


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
    """Return the runs of one result, of loops with the longest loop.

    Raises UserError, without the file's name, if it is not a result.
    """
    if not isinstance(told, dict) or told.get("schema") != CAMPAIGN_SCHEMA:
        raise UserError("is no result of a profile (result.json)")
    if told.get("version") != CAMPAIGN_SCHEMA_VERSION:
        raise UserError(f"is of version {told.get('version')}, which is not {CAMPAIGN_SCHEMA_VERSION}")
    try:
        return [run for cell in told["cells"] for run in _of_cell(told["profile"]["name"], cell)]
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise UserError(f"is no whole result of a profile: {problem!r}") from None


def matrix_sections(
    runs: Sequence[MatrixRun], single: Sequence[RunFigures] = (), failed: Sequence[str] = ()
) -> list[Section]:
    """Return the matrix, own boards first, the curves of single runs, and a description of each run.

    single: runs of no profile. failed: a sentence on each run that could not be read.
    """
    named = _told_apart(single)
    told = [*runs, *(_single_run(run, cell) for run, (_, cell) in named)]
    known = {run.board: run.kernel for run in reversed(told) if run.kernel}
    whole = [replace(run, kernel=run.kernel or known.get(run.board, ""), cell=_cell(run, told)) for run in told]
    unread = [Text(tuple(failed), "doubt", f"{quantity(len(failed), 'run')} could not be read")] if failed else []
    published = any(run.board.startswith(ARTICLE_PREFIX) for run in whole)
    about = Text((f"{ABOUT} {PUBLISHED}" if published else ABOUT,))
    matrix: tuple[Block, ...] = (*unread, _matrix(whole), about)
    rows = tuple((run.cell, run.board, run.shown, run.n, run.length, run.command) for run in whole)
    sections = [
        Section("matrix", "Boards and kernels", matrix),
        Section("curves", "Tails", tuple(_curves(named))),
        Section("runs", "Runs", (Table("What each figure is of", RUNS_HEADER, rows, (2, 3, 4)),)),
    ]
    return [section for section in sections if section.blocks]


def _matrix(runs: Sequence[MatrixRun]) -> Table:
    ordered = sorted(runs, key=lambda run: run.board.startswith(ARTICLE_PREFIX))
    cells = list(dict.fromkeys(run.cell for run in runs))
    places: dict[tuple[str, str], dict[str, str]] = {}
    for run in ordered:
        found = places.setdefault((run.board, run.kernel), {})
        found[run.cell] = "; ".join(filter(None, (found.get(run.cell), run.shown)))
    rows = tuple((*place, *(found.get(cell, "") for cell in cells)) for place, found in places.items())
    header = ("board", "kernel", *cells)
    return Table("Largest latency of each board with each kernel [us]", header, rows, tuple(range(2, len(header))))


MOST_FOREMOST = 2
NO_LOAD = "none of ours"
KIND_FACTS = ("probe", "method", "period", "policy", "priority", "CPUs")


SystemAndCell = tuple[str, str]


def _told_apart(single: Sequence[RunFigures]) -> list[tuple[RunFigures, SystemAndCell]]:
    """The runs, each with the name of its system and what was measured, as far as the runs differ in these."""
    differing = [key for key in KIND_FACTS if len({run.facts[key] for run in single if key in run.facts}) > 1]
    boards = len({_board(run) for run in single}) > 1
    found = []
    for run in single:
        simulated = run.facts.get("machine") == SIMULATED_PROBE
        load = run.facts.get("load", NO_LOAD if simulated else number_format.UNKNOWN)
        more = [f"{key} {run.facts[key]}" for key in differing if key in run.facts]
        cell = ", ".join(("no load" if load == NO_LOAD else f"load {load}", *more))
        board = _board(run) if boards and not simulated else ""
        found.append((run, (", ".join(filter(None, (board, _kernel(run)))), cell)))
    return found


def _board(run: RunFigures) -> str:
    """The processor; the run's own name where its file does not tell one, so that it is not taken for another board."""
    told = (run.facts.get(key) for key in ("CPU model", "machine"))
    return next(filter(None, told), PurePath(run.name).name)


def _kernel(run: RunFigures) -> str:
    if run.facts.get("machine") == SIMULATED_PROBE:
        return "a simulated process"
    release, model = (run.facts.get(key, "") for key in ("kernel release", "preemption model"))
    named = "PREEMPT_RT" if model == "rt" else f"preempt={model}"
    return f"{release} ({named})" if release and model else release or number_format.UNKNOWN


def _single_run(run: RunFigures, cell: str) -> MatrixRun:
    end_ns = int(run.counts.hi[-1]) if run.counts.total else None
    largest = f"> {US.show(end_ns)}" if run.largest is None and run.overflow else US.show(run.largest)
    invalid = " (INVALID)" if run.invalid else ""
    count = number_format.count_text(run.n)
    length = duration(run.span_ns) if run.span_ns else number_format.UNKNOWN
    return MatrixRun(_board(run), _kernel(run), "", cell, f"{largest}{invalid}", count, length, run.name)


def _curves(named: Sequence[tuple[RunFigures, SystemAndCell]]) -> Iterator[Block]:
    """The tails of all systems for each thing that was measured on several; the first two on the first screen."""
    drawn: dict[str, dict[str, list[RunFigures]]] = {}
    for run, (system, cell) in sorted(named, key=lambda each: each[1][1]):
        if run.n and not run.invalid:
            drawn.setdefault(cell, {}).setdefault(system, []).append(run)
    unit = comparison_figures.curve_unit([side for sides in drawn.values() for side in sides.items()])
    blocks: list[Block] = []
    for at, (cell, sides) in enumerate(drawn.items()):
        for block in comparison_figures.curve_blocks(list(sides.items()), unit):
            if isinstance(block, Plot):
                block = replace(block, title=f"{block.title}: {cell}", foremost=at < MOST_FOREMOST)  # noqa: PLW2901
            blocks.append(block)
    coloured = comparison_figures.in_own_colours(blocks, [system for _, (system, _) in named])
    return comparison_figures.on_one_scale(list(coloured))


def _cell(run: MatrixRun, runs: Sequence[MatrixRun]) -> str:
    """Return the name of the run's cell, with its profile where another profile has a cell of that name too."""
    alone = {other.profile for other in runs if other.cell == run.cell} == {run.profile}
    return run.cell if alone else f"{run.cell} ({run.profile})"


def _of_cell(profile: str, cell: Mapping[str, Any]) -> Iterator[MatrixRun]:
    measured = [result["analysis"] for result in cell["results"] if result["analysis"]]
    loops = any(each["cycles"] or each["app"] for each in measured)
    label = f"{cell['label']}, {LONGEST_LOOP}" if loops else cell["label"]
    yield from (_here(profile, label, result) for result in cell["results"])
    yield from (_published(profile, label, row, loops=loops) for row in cell["article"])


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
    """Return the largest latency, of loops the longest loop. An edge without an answer was later than a period.

    By how much it was later is not known.
    """
    if analysis["app"] or analysis["cycles"]:
        return US.show((analysis["app"]["loop"] if analysis["app"] else analysis["cycles"])["max_ns"])
    period, found = analysis["threads"][0]["series"], seen["observed"]["max_ns"]
    external, period_ns = period["external"], period["period_ns"]
    if external and seen["missed_count"] and (found is None or found < period_ns):
        return f"> {US.show(period_ns)}"
    return US.show(found)


def _published(profile: str, cell: str, row: Mapping[str, Any], *, loops: bool) -> MatrixRun:
    most, count = (row["figures"].get(name) for name in ("max", "count"))
    most = row["figures"].get("loop.max", most) if loops else most
    figure = (
        ArticleFigure(most["printed"], most["value"], most["unit"], most["step"], most["at_least"]) if most else None
    )
    n = number_format.count_text(count["value"]) if count else ""
    board = f"{ARTICLE_PREFIX}{row['board']}"
    largest, length = as_published(figure, US), row["length"] or ""
    return MatrixRun(board, row["kernel"], profile, cell, largest, n, length, row["command"] or "")
