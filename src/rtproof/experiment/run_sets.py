# SPDX-License-Identifier: Apache-2.0
"""Runs read together: two sides compared, repeats described, or each run judged for continuous integration."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import click

from rtproof import report
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison
from rtproof.compare.history import analyse_history
from rtproof.compare.likeness import MUST_AGREE
from rtproof.compare.run_metrics import RunFigures, figures_of, started_by_host
from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, quantity
from rtproof.experiment import stored_runs
from rtproof.judge.analysis_model import State
from rtproof.judge.doubts.registry import contradicted
from rtproof.record.contents import View
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import read_run_info
from rtproof.report import formats, number_format
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.pages import ci_verdicts, comparison_page, history_page
from rtproof.report.pages.ci_verdicts import RunRow
from rtproof.report.text_table import fitted_to_terminal
from rtproof.schema.encoder import json_bytes
from rtproof.schema.published import comparison_dict, history_dict, runs_dict
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.tail.forecast import NOWHERE

SERIES_PAGE = "report.html"
RUNS_FOLDER = "runs"
TURN = re.compile(r"\d{2,}(?:-([AB]))?")
"""The name of a run of ``--repeat`` or ``--abba``, and its side."""
NO_OPTIONS = "no options of its own"
ABBA = "--abba"
UNREAD_RUN_CODE = 2


@dataclass(frozen=True)
class ComparedSide:
    """Runs that count as one thing. what: it in words; failed: sentences on runs that could not be read."""

    name: str
    what: str
    runs: tuple[RunFigures, ...]
    failed: tuple[str, ...] = ()


LONGEST_NAME = 24
NO_NAMES = ("A", "B")
DEFAULT_NAME = re.compile(r"\d{8}T\d{6}Z")
"""A run that was given no name has a date for one, which says nothing about the side."""


def names_of_sides(a: Sequence[Path], b: Sequence[Path]) -> tuple[str, str]:
    """What the names of each side's files have in common, without what counts them; A and B if that is no name.

    "rt-1 rt-2 rt-3" is "rt", and the folder "runs/stock" is "stock".
    """
    names = tuple(_common_name(side) for side in (a, b))
    return (names[0], names[1]) if all(map(_is_name, names)) and names[0] != names[1] else NO_NAMES


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and any(map(str.isalpha, name))


def _common_name(paths: Sequence[Path]) -> str:
    each = [(path if path.name not in ("", "..") else path.resolve()).name.removesuffix(".rtrec") for path in paths]
    if any(DEFAULT_NAME.match(name) for name in each):
        return ""
    if len(each) == 1:
        return each[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*each, strict=False))
    return "".join(letters[0] for letters in alike).rstrip("-_. 0123456789")


def names_of_options(words: Sequence[str]) -> tuple[str, str]:
    """The two words in which the options of the sides differ, if these are all; else A and B."""
    split = [each.split() for each in words]
    if len(split) == 2 and len(split[0]) == len(split[1]):
        differing = [(a, b) for a, b in zip(*split, strict=True) if a != b]
        if len(differing) == 1 and all(map(_is_name, differing[0])):
            return differing[0]
    return NO_NAMES


def given_names(told: str) -> tuple[str, str]:
    """The names from ``--names``. UserError unless they are two different names."""
    names = [name.strip() for name in told.split(",")]
    usable = [name for name in names if 0 < len(name) <= LONGEST_NAME and name.isprintable()]
    if len(names) != 2 or len(set(usable)) != 2:
        raise UserError(
            f"--names takes two different names with a comma between them, each of at most {LONGEST_NAME} characters"
        )
    return names[0], names[1]


def exit_code_of_sides(sides: Sequence[ComparedSide]) -> int:
    """2 if a run could not be read: the result stands on fewer runs than were named."""
    return UNREAD_RUN_CODE if any(side.failed for side in sides) else 0


@dataclass(frozen=True)
class ResultDocument:
    """A result in all its forms: sections of the page, and the JSON.

    compared: the result itself, where two sides were compared. what: each side in words.
    """

    title: str
    page: list[Section]
    encoded: bytes
    compared: Comparison | None = None
    what: tuple[str, ...] = ()


def page_of_options(first: Path, word: str, values: Mapping[str, Any]) -> tuple[Path | None, str]:
    """Where the page goes, None for none, and its format. UserError if the user's own name is taken or has no format.

    word: what tells the page from the report of the run that it lies beside.
    """
    form = stored_runs.form_of(values["form"], values["output"], "html")
    output: Path | None = values["output"]
    if output is None and values["report"]:
        beside = stored_runs.path_beside(first, plugins.load_plugin(formats, form).SUFFIX)
        output = files.free_path(beside.with_name(f"{beside.stem}-{word}{beside.suffix}"))
    elif output is not None and output != files.STANDARD_OUTPUT:
        files.refuse_existing(output)
    return output, form


def read_sides(sides: Sequence[tuple[str, str, Sequence[Path]]], *, schedule: bool = False) -> list[ComparedSide]:
    """Name, words and paths of each side; folders are searched. UserError for a path without a run.

    Also for a run that stands on both sides, and where no run of a side can be read. schedule: with the activations
    that never ran, each as late as it was.
    """
    found = [(name, what, stored_runs.find_runs(paths, stored_runs.is_histogram_file)) for name, what, paths in sides]
    seen: dict[Path, str] = {}
    for name, _, runs in found:
        for run in runs:
            other = seen.setdefault(run.resolve(), name)
            if other != name:
                raise UserError(f"{run} stands on both sides, {other} and {name}: a run is no witness against itself")
    every = [run for _, _, runs in found for run in runs]
    read = partial(stored_runs.read_run, horizon=NOWHERE)
    take = partial(_take_figures, View.CHARGED if schedule else View.OBSERVED)
    figures, failed = stored_runs.read_runs(every, take, read)
    told = []
    for name, what, runs in found:
        read_ones = tuple(figures[run] for run in runs if run in figures)
        told.append(ComparedSide(name, what, read_ones, tuple(failed[run] for run in runs if run in failed)))
    for side in told:
        if not side.runs:
            of = f" of {side.name}" if side.name else ""
            raise UserError(f"no run{of} can be read: {'; '.join(side.failed)}")
    return told


def runs_of_series(folder: Path) -> dict[str, list[Path]]:
    """The runs of sides A and B in the folder of --abba, or of side "" in that of --repeat; empty for other folders."""
    inside = folder / RUNS_FOLDER
    sides: dict[str, list[Path]] = {}
    for run in stored_runs.find_runs([inside]) if inside.is_dir() else ():
        turn = TURN.fullmatch(run.name)
        sides.setdefault((turn[1] or "") if turn else run.name, []).append(run)
    of_series = sides.keys() <= set(NO_NAMES) or sides.keys() == {""}
    return dict(sorted(sides.items())) if of_series else {}


def read_series(
    sides: Mapping[str, Sequence[Path]], names: tuple[str, str] | None = None, *, schedule: bool = False
) -> list[ComparedSide]:
    """The sides of ``runs_of_series``, read. UserError as ``read_sides``.

    names: of two sides; None: the words in which their options differ, or else A and B.
    """
    # The options of each side are in the command that measured it, or no run.json says them.
    command: Sequence[str] = ()
    with suppress(UserError):
        command = info.command if (info := read_run_info(next(iter(sides.values()))[0])) else ()
    typed = dict(zip(NO_NAMES, command[command.index(ABBA) + 1 :] if ABBA in command else (), strict=False))
    options = {name: typed.get(name, name) for name in sides}
    read = read_sides([(name, options[name] or NO_OPTIONS, sides[name]) for name in sides], schedule=schedule)
    if len(read) == 1:
        return read
    names = names or names_of_options(list(options.values()))
    return [replace(side, name=name) for side, name in zip(read, names, strict=True)]


def _take_figures(view: View, run: Path, found: stored_runs.AnalysedRun) -> RunFigures:
    figures = figures_of(found.analysis, str(run), view)
    if not found.info:
        return figures
    seed = found.info.turn.order_seed if found.info.turn else None
    return replace(started_by_host(figures, found.info.started), order_seed=seed)


def facts_that_may_differ(keys: Sequence[str], whatever: bool) -> frozenset[str]:
    """The facts named in lists with commas, or all that have to agree.

    UserError for a fact that need not agree anyway, since that is a slip.
    """
    said = [key.strip() for some in keys for key in some.split(",")]
    for key in said:
        if key not in MUST_AGREE:
            raise UserError(f"--although takes facts that have to agree, and {key!r} is none: {', '.join(MUST_AGREE)}")
    return frozenset(MUST_AGREE if whatever else said)


def comparison_document(a: ComparedSide, b: ComparedSide, although: Collection[str], command: str) -> ResultDocument:
    """Side a compared with side b. UserError where the two may not be compared."""
    found = compare_sides(a.runs, b.runs, names=(a.name, b.name), although=although)
    what, failed = (a.what, b.what), (*a.failed, *b.failed)
    page = comparison_page.comparison_sections(found, what, failed, command)
    return ResultDocument(
        comparison_page.comparison_title(found),
        page,
        json_bytes(comparison_dict(found, what, command, failed)),
        compared=found,
        what=what,
    )


def series_document(sides: Sequence[ComparedSide], command: str) -> ResultDocument:
    """Two sides compared, in which all facts may differ; of an only side how much its runs differ."""
    side, *others = sides
    if others:
        return comparison_document(side, others[0], MUST_AGREE, command)
    page = comparison_page.single_side_sections(side.runs, side.failed)
    return ResultDocument(
        f"rtproof: {quantity(len(side.runs), 'run')} of the same",
        page,
        json_bytes(runs_dict(side.runs, side.what, command, side.failed)),
    )


def history_document(side: ComparedSide, command: str, *, by_name: bool) -> ResultDocument:
    """When the latency of a system changed. by_name: the runs are in order of their names, else of their start."""
    runs = sorted(side.runs, key=lambda run: run.name) if by_name else list(side.runs)
    found = analyse_history(runs, by_name=by_name)
    page = history_page.history_sections(found, side.failed, command)
    return ResultDocument(
        history_page.history_title(found),
        page,
        json_bytes(history_dict(found, command, side.failed)),
    )


def publish_page(document: ResultDocument, page: Path | None, form: str, *, as_json: bool) -> None:
    """Write the page in this format, unless it is None, and print the short form or the JSON; "-" prints the page."""
    if page == files.STANDARD_OUTPUT:
        click.echo(report.render(form, document.title, document.page), nl=False)
        return
    if page:
        stored_runs.write_new_file(page, report.render(form, document.title, document.page))
    with fitted_to_terminal():
        short = comparison_page.for_terminal(document.page)
        click.echo(document.encoded if as_json else report.render("text", document.title, short), nl=False)
    if page:
        click.echo(f"\nreport: {page}", err=as_json)


NO_LIMIT = (
    "there is no limit to judge by: give --limit, or better give it to rtproof run, which writes it down before the "
    "run begins"
)


def judge_runs(
    paths: Sequence[Path], later: tuple[Requirement, ...], *, beforehand: bool, **stated: Any
) -> list[RunRow]:
    """A row for each run at the paths, in order. UserError for a path without one, and if no run has a limit.

    beforehand: the user states that the limits were fixed before the runs. stated: of files that tell none, as for
    ``stored_runs.read_run``.
    """

    def row(run: Path, found: stored_runs.AnalysedRun) -> RunRow:
        return ci_verdicts.run_row(str(run), found.analysis)

    runs = stored_runs.find_runs(paths, stored_runs.is_histogram_file)
    read = partial(stored_runs.read_run, later=later, stated=beforehand, **stated)
    told, failed = stored_runs.read_runs(runs, row, read)
    told |= {run: RunRow(str(run), failure=sentence) for run, sentence in failed.items()}
    ordered = [told[run] for run in runs]
    if all(row.state is State.NOT_ASKED for row in ordered):
        raise UserError(NO_LIMIT)
    return ordered


# Files of other tools that hold only minimum, mean and maximum: the figures of both sides, one beside the other. One
# maximum of each side tests nothing: the longer a run, the larger its maximum. So nothing is called better here.


NO_TEST = (
    "These files hold no histogram, so no test is made and neither side is called better. A longer run has a larger "
    "maximum: compare the number of samples first."
)


def side_by_side_document(sides: Sequence[tuple[str, Sequence[Path]]], *, as_json: bool) -> ResultDocument | None:
    """The figures of the files of two sides; None unless all were printed by other tools, and one has no histogram.

    UserError for files of different tools, and for JSON, which ``rtproof show`` prints of each file.
    """
    found = [
        (name, path, stored_runs.read_histogram_file(path))
        for name, paths in sides
        for path in stored_runs.find_runs(paths, stored_runs.is_histogram_file)
    ]
    files = [(name, path, imported) for name, path, imported in found if imported]
    if len(files) < len(found) or all(imported.histogram for _, _, imported in files):
        return None
    if as_json:
        raise UserError("files without a histogram are not compared as JSON: rtproof show FILE --json prints each")
    tools = {imported.tool for _, _, imported in files}
    if len(tools) > 1:
        raise UserError(f"the files are of {' and of '.join(sorted(tools))}, which do not measure the same")
    unit = number_format.unit_for([ns for *_, each in files for ns in (each.min_ns, each.mean_ns, each.max_ns)])
    heads = number_format.unit_headings(unit, "min", "mean", "max")
    rows = tuple((name, path.name, *_row(imported, unit)) for name, path, imported in files)
    table = Table(
        "Figures as printed", ("side", "file", "threads", "n", "measured for", *heads), rows, (2, 3, 4, 5, 6, 7)
    )
    faults = [Text((f"{path}: {fault}",)) for _, path, imported in files for fault in contradicted(imported).faults]
    section = Section("ends", "Side by side", (Text((NO_TEST,)), table, *faults))
    title = f"rtproof: {quantity(len(files), 'file')} of {tools.pop()} side by side"
    return ResultDocument(title, [section], b"")


def _row(imported: ImportedHistogram, unit: number_format.PrintedUnit) -> tuple[str, ...]:
    least_ns = imported.at_least_ns
    length = duration(imported.duration_ns) if imported.duration_ns else f">= {duration(least_ns)}" if least_ns else ""
    ends = (imported.min_ns, imported.mean_ns, imported.max_ns)
    return (str(len(imported.parts) or 1), number_format.count_text(imported.count), length, *map(unit.show, ends))
