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
from rtproof.core.phrases import quantity
from rtproof.experiment import stored_runs
from rtproof.judge.analysis_model import State
from rtproof.judge.verdict import LIMIT_STATED
from rtproof.record.contents import View
from rtproof.record.requirement import Requirement
from rtproof.record.run_folder import read_run_info
from rtproof.report import formats
from rtproof.report.blocks import Section
from rtproof.report.pages import ci_verdicts, comparison_page, history_page
from rtproof.report.pages.ci_verdicts import RunRow
from rtproof.report.text_table import fitted_to_terminal
from rtproof.schema.encoder import json_bytes
from rtproof.schema.published import comparison_dict, history_dict, runs_dict
from rtproof.tail.forecast_model import NOWHERE

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
    if (
        len(names) != 2
        or names[0] == names[1]
        or not all(0 < len(n) <= LONGEST_NAME and n.isprintable() for n in names)
    ):
        raise UserError(
            f"--names takes two different names with a comma between them, each of at most {LONGEST_NAME} characters"
        )
    return names[0], names[1]


def exit_code_of_sides(sides: Sequence[ComparedSide]) -> int:
    """2 if a run could not be read: the result stands on fewer runs than were named."""
    return UNREAD_RUN_CODE if any(side.failed for side in sides) else 0


@dataclass(frozen=True)
class PageRequest:
    """What to make of them. page: where, None for none; form: of the page."""

    page: Path | None
    form: str = "html"
    as_json: bool = False


@dataclass(frozen=True)
class ResultDocument:
    """A result in all its forms: sections of the page and of the terminal, and the JSON.

    compared: the result itself, where two sides were compared. what: each side in words.
    """

    title: str
    page: list[Section]
    terminal: list[Section]
    encoded: bytes
    compared: Comparison | None = None
    what: tuple[str, ...] = ()


def page_request(first: Path, word: str, values: Mapping[str, Any]) -> PageRequest:
    """What the options ask for. UserError if the user's own name is taken, or ends as no format does.

    word: what tells the page from the report of the run that it lies beside.
    """
    form = stored_runs.form_of(values["form"], values["output"], "html")
    output: Path | None = values["output"]
    if output is None and values["report"]:
        beside = stored_runs.path_beside(first, plugins.load_plugin(formats, form).SUFFIX)
        output = files.free_path(beside.with_name(f"{beside.stem}-{word}{beside.suffix}"))
    elif output is not None and output != files.STANDARD_OUTPUT:
        files.refuse_existing(output)
    return PageRequest(output, form, values["as_json"])


def read_sides(sides: Sequence[tuple[str, str, Sequence[Path]]], *, schedule: bool = False) -> list[ComparedSide]:
    """Name, words and paths of each side; folders are searched. UserError for a path without a run.

    Also for a run that stands on both sides, and where no run of a side can be read. schedule: with the activations
    that never ran, each as late as it was.
    """
    found = [(name, what, stored_runs.find_runs(paths, stored_runs.is_histogram_file)) for name, what, paths in sides]
    _refuse_shared_runs([(name, runs) for name, _, runs in found])
    every = [run for _, _, runs in found for run in runs]
    read = partial(stored_runs.read_run_or_histogram, horizon=NOWHERE)
    take = partial(_take_figures, View.CHARGED if schedule else View.OBSERVED)
    figures, failed = stored_runs.read_runs(every, take, read)
    told = [
        ComparedSide(
            name, what, tuple(figures[run] for run in runs if run in figures), _failure_sentences(runs, failed)
        )
        for name, what, runs in found
    ]
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
    options = _options_of_sides(sides)
    read = read_sides([(name, options[name] or NO_OPTIONS, sides[name]) for name in sides], schedule=schedule)
    if len(read) == 1:
        return read
    names = names or names_of_options(list(options.values()))
    return [replace(side, name=name) for side, name in zip(read, names, strict=True)]


def _options_of_sides(sides: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    """The options of each side from the command that measured it, or its name if no ``run.json`` says them."""
    command: Sequence[str] = ()
    with suppress(UserError):
        command = info.command if (info := read_run_info(next(iter(sides.values()))[0])) else ()
    typed = command[command.index(ABBA) + 1 :] if ABBA in command else ()
    return {name: dict(zip(NO_NAMES, typed, strict=False)).get(name, name) for name in sides}


def _failure_sentences(runs: Sequence[Path], failed: dict[Path, str]) -> tuple[str, ...]:
    return tuple(failed[run] for run in runs if run in failed)


def _refuse_shared_runs(sides: Sequence[tuple[str, Sequence[Path]]]) -> None:
    seen: dict[Path, str] = {}
    for name, runs in sides:
        for run in runs:
            other = seen.setdefault(run.resolve(), name)
            if other != name:
                raise UserError(f"{run} stands on both sides, {other} and {name}: a run is no witness against itself")


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
    return ResultDocument(
        comparison_page.comparison_title(found),
        comparison_page.comparison_sections(found, what, failed, command),
        comparison_page.comparison_sections(found, what, failed, short=True),
        json_bytes(comparison_dict(found, what, command, failed)),
        compared=found,
        what=what,
    )


def series_document(sides: Sequence[ComparedSide], command: str) -> ResultDocument:
    """Two sides compared, in which all facts may differ; of an only side how much its runs differ."""
    side, *others = sides
    if others:
        return comparison_document(side, others[0], MUST_AGREE, command)
    return ResultDocument(
        f"rtproof: {quantity(len(side.runs), 'run')} of the same",
        comparison_page.single_side_sections(side.runs, side.failed),
        comparison_page.single_side_sections(side.runs, side.failed, short=True),
        json_bytes(runs_dict(side.runs, side.what, command, side.failed)),
    )


def publish_history(side: ComparedSide, wanted: PageRequest, command: str, *, by_name: bool) -> None:
    """Print when the latency of a system changed, and write the page. by_name: the runs are in order of their names."""
    runs = sorted(side.runs, key=lambda run: run.name) if by_name else list(side.runs)
    found = analyse_history(runs, by_name=by_name)
    document = ResultDocument(
        history_page.history_title(found),
        history_page.history_sections(found, side.failed, command),
        history_page.history_sections(found, side.failed, short=True),
        json_bytes(history_dict(found, command, side.failed)),
    )
    publish_page(document, wanted)


def publish_page(document: ResultDocument, wanted: PageRequest) -> None:
    """The page in its form, the short form or the JSON on standard output."""
    if wanted.page == files.STANDARD_OUTPUT:
        click.echo(report.render(wanted.form, document.title, document.page), nl=False)
        return
    write_page(document, wanted)
    with fitted_to_terminal():
        shown = document.encoded if wanted.as_json else report.render("text", document.title, document.terminal)
    click.echo(shown, nl=False)
    if wanted.page:
        click.echo(f"\nreport: {wanted.page}", err=wanted.as_json)


def write_page(document: ResultDocument, wanted: PageRequest) -> None:
    """Write the page in its form, if one is wanted."""
    if wanted.page:
        stored_runs.write_new_file(wanted.page, report.render(wanted.form, document.title, document.page))


NO_LIMIT = (
    "there is no limit to judge by: give --limit, or better give it to rtproof run, which writes it down before the "
    "run begins"
)


@dataclass(frozen=True)
class StatedByUser:
    """What the user states. beforehand: the limits were fixed before the runs; the others: of files that tell none."""

    beforehand: bool = False
    duration_ns: int | None = None
    period_ns: int | None = None
    unit: str | None = None


def judge_runs(paths: Sequence[Path], later: tuple[Requirement, ...], stated: StatedByUser) -> list[RunRow]:
    """A row for each run at the paths, in order. UserError for a path without one, and if no run has a limit."""
    runs = stored_runs.find_runs(paths, stored_runs.is_histogram_file)
    told, failed = stored_runs.read_runs(runs, _verdict_row, partial(_open_for_judging, later, stated))
    told |= {run: RunRow(str(run), failure=sentence) for run, sentence in failed.items()}
    ordered = [told[run] for run in runs]
    if all(row.state is State.NOT_ASKED for row in ordered):
        raise UserError(NO_LIMIT)
    return ordered


def _open_for_judging(
    later: tuple[Requirement, ...], stated: StatedByUser, run: Path, workers: int
) -> stored_runs.AnalysedRun:
    given = stored_runs.read_histogram_file(run, stated.unit)
    if given:
        told = given.with_stated(stated.duration_ns, stated.period_ns)
        return stored_runs.judged_histogram(told, later, stated=stated.beforehand)
    return stored_runs.read_run(run, later, workers=workers, stated=stated.beforehand)


def _verdict_row(run: Path, found: stored_runs.AnalysedRun) -> RunRow:
    return ci_verdicts.run_row(str(run), found.analysis)


def verdict_markdown(rows: list[RunRow], *, stated: bool) -> bytes:
    """For a pull request. stated: the user says that the limits came before the runs."""
    return ci_verdicts.ci_markdown(rows, LIMIT_STATED if stated else "")
