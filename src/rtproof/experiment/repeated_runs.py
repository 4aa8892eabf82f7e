# SPDX-License-Identifier: Apache-2.0
"""Run a series: the same measurement several times, or two by turns, and compare the runs.

One run does not tell how much runs differ. Taking turns makes a slow change of the machine affect both sides equally.
Chance draws the order of the turns, so that no rhythm of the machine meets one side alone.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from rtproof import report
from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.likeness import drawn_order
from rtproof.core import files
from rtproof.core.errors import TargetError, UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.experiment import printed_runs, printed_several, run_request, run_sets, stored_runs
from rtproof.experiment.run_request import VERDICT_ONLY, RunRequest, program_name
from rtproof.experiment.run_sets import RUNS_FOLDER, SERIES_PAGE
from rtproof.experiment.target_runner import Cell, CellEnd, run_cells
from rtproof.record.run_folder import TurnInfo
from rtproof.report.pages import comparison_page
from rtproof.report.pages.first_screen import LABEL, fitting_cautions
from rtproof.run.live_view import clock_text
from rtproof.targets import Target

RUN_FAILED_CODE = 2
"""Exit code of a series of which a run ended badly."""


Ended = Sequence[tuple[CellEnd, bool]]
"""How the runs of a series ended, each with whether the user interrupted it."""


def measure_series(target: Target, asked: RunRequest, folder: Path) -> Ended:
    """Every run into FOLDER/runs, each by a new process of the agent on the target, which stays open for all of them.

    Ctrl-C lets the one that measures finish and skips the rest. So does a run that cannot be had, because the next one
    would fail alike. UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    order = asked.sides * asked.times
    if len(asked.sides) > 1:
        order = tuple(asked.sides[letter == "B"] for letter in drawn_order(asked.times, asked.order_seed))
    whole = clock_text(sum(side.length_ns + side.warmup_ns for side in order))
    turns = " ".join(side.side for side in order[:8]) + (" ..." if len(order) > 8 else "")
    drawn = f" by turns, {turns} (drawn from --order-seed {asked.order_seed})" if len(asked.sides) > 1 else ""
    few = f"; --repeat {MIN_RUNS} or more can show a difference" if drawn and len(order) < 2 * MIN_RUNS else ""
    lasts = f"{whole} in all with warm-ups, without the time to start each"
    click.echo(f"{quantity(len(order), 'run')}{drawn}, {lasts}{few}", err=True)
    with files.removing_empty_folders(folder / RUNS_FOLDER):
        (folder / RUNS_FOLDER).mkdir(parents=True)
        ended = []
        for end, interrupted in run_cells(target, asked, _series_cells(asked, order, folder)):
            ended.append((end, interrupted))
            if end.way is None or interrupted:
                break
        if all(end.way is None for end, _ in ended):
            raise UserError(_failure_with_name(ended[-1][0]))
    return ended


def _failure_with_name(ended: CellEnd) -> str:
    return f"run {ended.key}: {ended.failure}"


def _series_cells(asked: RunRequest, order: Sequence[RunRequest], folder: Path) -> list[Cell]:
    """The runs 01-A, 02-B, ..., whose names sort in the order of time. The note of each says its side's options."""
    total, width = len(order), max(2, len(str(len(order))))
    cells = []
    for number, side in enumerate(order, 1):
        name = f"{number:0{width}}" + (f"-{side.side}" if side.side else "")
        left = clock_text(sum(each.length_ns + each.warmup_ns for each in order[number - 1 :]))
        cells.append(
            Cell(
                name,
                folder / RUNS_FOLDER / name,
                (("", side.arguments),),
                f"[{number}/{total}] {name}, {clock_text(side.length_ns + side.warmup_ns)}; {left} to go in all",
                f"{side.length}, run {number} of {total}",
                "; ".join(filter(None, (asked.note, f"{side.side}: {side.words}" if side.side else ""))),
                TurnInfo(order_seed=asked.order_seed, number=number) if side.side else None,
            )
        )
    return cells


MOST_COMPARISON_LINES = 8
"""Behind the screen of the runs, with the line that names the command for all the rest."""


def report_series(own: RunRequest, ended: Ended, folder: Path) -> int:
    """Write the page, and print what ``rtproof show FOLDER`` does and the comparison of two sides; the exit code.

    TargetError if the last run was not measured; the page has the others.
    """
    complaints = [_failure_with_name(end) for end, _ in ended if end.failure and end.way is not None]
    for sentence in complaints:
        click.echo(clean(f"rtproof: {sentence}"), err=True)
    verdict_only = own.shown == VERDICT_ONLY
    try:
        sides = run_sets.read_series(run_sets.runs_of_series(folder))
        document = run_sets.series_document(sides, shlex.join(own.command))
        page = folder / SERIES_PAGE if own.report else None
        if own.as_json:
            run_sets.publish_page(document, page, "html", as_json=True)
        elif page:
            stored_runs.write_new_file(page, report.render("html", document.title, document.page))
    finally:
        if own.as_json or verdict_only:
            worst = printed_several.print_series_verdict(folder, err=own.as_json)
        else:
            worst = printed_several.print_series_screen(folder, ())
    if document.compared and not own.as_json:
        said = comparison_page.comparison_in_short(document.compared, document.what)
        if verdict_only:
            click.echo(clean(said[0]))
        else:
            lines = fitting_cautions(said, printed_runs.terminal_width(), MOST_COMPARISON_LINES - 1, label="compared")
            more = f"{'more':{LABEL}}{program_name()} compare {shlex.quote(str(folder))}"
            click.echo("\n".join(["", *lines, clean(more)]))
    last, interrupted = ended[-1]
    if interrupted:
        click.echo("rtproof: interrupted: what was measured until then is kept", err=True)
        return run_request.INTERRUPTED_CODE
    if last.way is None:
        raise TargetError(f"{_failure_with_name(last)}; what was measured before is kept")
    return RUN_FAILED_CODE if complaints else worst
