# SPDX-License-Identifier: Apache-2.0
"""Run a series: the same measurement several times, or two by turns, and compare the runs.

One run does not tell how much runs differ. Taking turns makes a slow change of the machine affect both sides equally.
Chance draws the order of the turns, so that no rhythm of the machine meets one side alone.
"""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.likeness import drawn_order
from rtproof.core import files
from rtproof.core.errors import TargetError, UserError
from rtproof.core.printable import clean
from rtproof.experiment import printed_runs, printed_several, run_request, run_sets
from rtproof.experiment.run_request import (
    VERDICT_ONLY,
    ExperimentRequest,
    SeriesRequest,
    SeriesSide,
    program_name,
)
from rtproof.experiment.run_sets import RUNS_FOLDER, SERIES_PAGE, PageRequest, ResultDocument
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


def measure_series(target: Target, own: ExperimentRequest, asked: SeriesRequest, folder: Path) -> Ended:
    """Every run into FOLDER/runs, each by a new process of the agent on the target, which stays open for all of them.

    Ctrl-C lets the one that measures finish and skips the rest. So does a run that cannot be had, because the next one
    would fail alike. UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    click.echo(_announcement(asked), err=True)
    with files.removing_empty_folders(folder / RUNS_FOLDER):
        (folder / RUNS_FOLDER).mkdir(parents=True)
        ended = []
        for end, interrupted in run_cells(target, own, _series_cells(asked, folder, own.note)):
            ended.append((end, interrupted))
            if end.way is None or interrupted:
                break
        if all(end.way is None for end, _ in ended):
            raise UserError(_failure_with_name(ended[-1][0]))
    return ended


def _failure_with_name(ended: CellEnd) -> str:
    return f"run {ended.key}: {ended.failure}"


def _series_order(asked: SeriesRequest) -> tuple[SeriesSide, ...]:
    if len(asked.sides) == 1:
        return asked.sides * asked.times
    return tuple(asked.sides[letter == "B"] for letter in drawn_order(asked.times, asked.order_seed))


def _series_cells(asked: SeriesRequest, folder: Path, note: str) -> list[Cell]:
    """The runs 01-A, 02-B, ..., whose names sort in the order of time. The note of each says its side's options."""
    order = _series_order(asked)
    total, width = len(order), max(2, len(str(len(order))))
    cells = []
    for number, side in enumerate(order, 1):
        name = f"{number:0{width}}" + (f"-{side.name}" if side.name else "")
        length, left = (clock_text(_whole_ns(some)) for some in ([side], order[number - 1 :]))
        cells.append(
            Cell(
                name,
                folder / RUNS_FOLDER / name,
                (("", side.measurement.arguments),),
                f"[{number}/{total}] {name}, {length}; {left} to go in all",
                f"{side.measurement.length}, run {number} of {total}",
                "; ".join(filter(None, (note, f"{side.name}: {side.words}" if side.name else ""))),
                TurnInfo(order_seed=asked.order_seed, number=number) if side.name else None,
            )
        )
    return cells


def _whole_ns(sides: Iterable[SeriesSide]) -> int:
    return sum(side.measurement.whole_ns for side in sides)


def _announcement(asked: SeriesRequest) -> str:
    """What will be done and how long it takes, before it begins."""
    order = _series_order(asked)
    whole = clock_text(_whole_ns(order))
    if len(asked.sides) == 1:
        return f"{len(order)} run{'s' * (len(order) > 1)}, {whole} in all with warm-ups, without the time to start each"
    turns = " ".join(side.name for side in order[:8]) + (" ..." if len(order) > 8 else "")
    drawn = f"drawn from --order-seed {asked.order_seed}"
    told = (
        f"{len(order)} runs by turns, {turns} ({drawn}), {whole} in all with warm-ups, without the time to start each"
    )
    few = f"; --repeat {MIN_RUNS} or more can show a difference" if len(order) < 2 * MIN_RUNS else ""
    return f"{told}{few}"


MOST_COMPARISON_LINES = 8
"""Behind the screen of the runs, with the line that names the command for all the rest."""


def report_series(own: ExperimentRequest, ended: Ended, folder: Path) -> int:
    """Write the page, and print what ``rtproof show FOLDER`` does and the comparison of two sides; the exit code.

    TargetError if the last run was not measured; the page has the others.
    """
    complaints = [_failure_with_name(end) for end, _ in ended if end.failure and end.way is not None]
    for sentence in complaints:
        click.echo(clean(f"rtproof: {sentence}"), err=True)
    verdict_only = own.shown == VERDICT_ONLY
    try:
        document = _publish(own, folder)
    finally:
        if own.as_json or verdict_only:
            worst = printed_several.print_series_verdict(folder, err=own.as_json)
        else:
            worst = printed_several.print_series_screen(folder, ())
    if document.compared and not own.as_json:
        limit_ns = own.requirements[0].limit_ns if own.requirements else None
        said = comparison_page.comparison_in_short(document.compared, document.what, limit_ns)
        click.echo(clean(said[0]) if verdict_only else "\n" + "\n".join(_comparison_lines(said, folder)))
    last, interrupted = ended[-1]
    if interrupted:
        click.echo("rtproof: interrupted: what was measured until then is kept", err=True)
        return run_request.INTERRUPTED_CODE
    if last.way is None:
        raise TargetError(f"{_failure_with_name(last)}; what was measured before is kept")
    return RUN_FAILED_CODE if complaints else worst


def _publish(own: ExperimentRequest, folder: Path) -> ResultDocument:
    """Write the page if one is asked, and print the JSON if that is."""
    wanted = PageRequest(folder / SERIES_PAGE if own.report else None, as_json=own.as_json)
    sides = run_sets.read_series(run_sets.runs_of_series(folder))
    document = run_sets.series_document(sides, shlex.join(own.command))
    if own.as_json:
        run_sets.publish_page(document, wanted)
    else:
        run_sets.write_page(document, wanted)
    return document


def _comparison_lines(said: Sequence[str], folder: Path) -> list[str]:
    more = f"{'more':{LABEL}}{program_name()} compare {shlex.quote(str(folder))}"
    width = printed_runs.terminal_width()
    return [*fitting_cautions(said, width, MOST_COMPARISON_LINES - 1, label="compared"), clean(more)]
