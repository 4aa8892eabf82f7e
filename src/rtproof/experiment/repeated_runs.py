# SPDX-License-Identifier: Apache-2.0
"""Run a series: the same measurement several times, or two by turns, A B B A A B B A, and compare the runs.

One run does not tell how much runs differ. Taking turns makes a slow change of the machine affect both sides equally.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.likeness import MUST_AGREE
from rtproof.core import files
from rtproof.core.errors import TargetError, UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean
from rtproof.experiment import run_request, run_sets, stored_runs
from rtproof.experiment.local_runner import Cell, CellEnd, LocalRunner
from rtproof.experiment.run_request import ExperimentRequest, SeriesRequest, SeriesSide
from rtproof.report.pages import ci_verdicts
from rtproof.run.live_view import clock_text

RUNS_FOLDER = "runs"


RUN_FAILED_CODE = 2
"""Exit code of a series of which a run ended badly."""


@dataclass(frozen=True)
class MeasuredSeries:
    """The run folders of each side that hold a run, and how the series ended. failure: why it ended early, or ""."""

    folders: Mapping[str, tuple[Path, ...]]
    complaints: tuple[str, ...]
    failure: str = ""
    interrupted: bool = False


def measure_series(runner: LocalRunner, asked: SeriesRequest, folder: Path) -> MeasuredSeries:
    """Every run into FOLDER/runs, each by a new process of the agent on the target, which stays open for all of them.

    Ctrl-C lets the one that measures finish and skips the rest. So does a run that cannot be had, because the next one
    would fail alike. UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    order = asked.order()
    click.echo(_announcement(asked), err=True)
    with files.removing_empty_folders(folder / RUNS_FOLDER):
        (folder / RUNS_FOLDER).mkdir(parents=True)
        ended = list(_until_one_fails(runner.run(_series_cells(order, folder, runner.asked.note))))
        kept = [(side, each) for side, each in zip(order, ended, strict=False) if each.outcome is not None]
        last = ended[-1]
        if not kept:
            raise UserError(_failure_with_name(last))
    folders = {side.name: tuple(each.cell.folder for other, each in kept if other is side) for side in asked.sides}
    complaints = tuple(_failure_with_name(each) for each in ended if each.failure and each.outcome)
    failure = "" if last.outcome or last.interrupted else _failure_with_name(last)
    return MeasuredSeries(folders, complaints, failure, any(each.interrupted for each in ended))


def _failure_with_name(ended: CellEnd) -> str:
    return f"run {ended.cell.name}: {ended.failure}"


def _until_one_fails(runs: Iterator[CellEnd]) -> Iterator[CellEnd]:
    for ended in runs:
        yield ended
        if ended.outcome is None or ended.interrupted:
            return


def _series_cells(order: Sequence[SeriesSide], folder: Path, note: str) -> list[Cell]:
    names, total = _run_names(order), len(order)
    return [
        Cell(
            name,
            folder / RUNS_FOLDER / name,
            (("", side.measurement.arguments),),
            f"[{number}/{total}] {name}, {clock_text(side.measurement.whole_ns)}; "
            f"{clock_text(_whole_ns(order[number - 1 :]))} to go in all",
            f"{side.measurement.length}, run {number} of {total}",
            _run_note(note, side),
        )
        for number, (name, side) in enumerate(zip(names, order, strict=True), 1)
    ]


def _run_names(order: Sequence[SeriesSide]) -> list[str]:
    """01-A, 02-B, ... so that they sort in the order of time."""
    width = max(2, len(str(len(order))))
    return [f"{at:0{width}}" + (f"-{side.name}" if side.name else "") for at, side in enumerate(order, 1)]


def _run_note(note: str, side: SeriesSide) -> str:
    """What the user noted, and what makes this run one of its side."""
    return "; ".join(filter(None, (note, f"{side.name}: {side.words}" if side.name else "")))


def _whole_ns(sides: Iterable[SeriesSide]) -> int:
    return sum(side.measurement.whole_ns for side in sides)


def _announcement(asked: SeriesRequest) -> str:
    """What will be done and how long it takes, before it begins."""
    order = asked.order()
    whole = clock_text(_whole_ns(order))
    if len(asked.sides) == 1:
        return f"{len(order)} run{'s' * (len(order) > 1)}, {whole} in all with warm-ups, without the time to start each"
    turns = " ".join(side.name for side in order[:8]) + (" ..." if len(order) > 8 else "")
    told = f"{len(order)} runs by turns, {turns}, {whole} in all with warm-ups, without the time to start each"
    few = f"; --repeat {MIN_RUNS} or more can show a difference" if len(order) < 2 * MIN_RUNS else ""
    return f"{told}{few}"


def report_series(own: ExperimentRequest, asked: SeriesRequest, measured: MeasuredSeries, folder: Path) -> int:
    """Write the page and print what the runs say; the exit code."""
    command = shlex.join(own.command)
    for sentence in measured.complaints:
        click.echo(clean(f"rtproof: {sentence}"), err=True)
    page = folder / run_sets.SERIES_PAGE if own.report else None
    wanted = run_sets.PageRequest(page, as_json=own.as_json, although=MUST_AGREE, command=command)
    what = {side.name: side.words or "no options of its own" for side in asked.sides}
    read = run_sets.read_sides([(name, what[name], paths) for name, paths in measured.folders.items() if paths])
    read = run_sets.named_by_options(read, [side.words for side in asked.sides])
    try:
        if len(read) == 2:
            run_sets.compare_sides(read[0], read[1], wanted)
        else:
            run_sets.describe_repeats(read[0], wanted)
    finally:
        click.echo(f"runs: {folder / RUNS_FOLDER}", err=own.as_json)
    of_limits = _limits(measured, folder, own) if own.requirements else 0
    return _exit_code(measured) or of_limits


def _limits(measured: MeasuredSeries, folder: Path, own: ExperimentRequest) -> int:
    """Print the worst verdict on the limits of all runs, and what prints each; its exit code."""
    paths = [path for paths in measured.folders.values() for path in paths]
    rows = [ci_verdicts.run_row(path.name, stored_runs.read_run(path).analysis) for path in paths]
    worst = ci_verdicts.ci_exit_code(rows)
    count = sum(row.exit_code == worst for row in rows)
    said = f"{ci_verdicts.worst_row(rows)} in {count} of {quantity(len(rows), 'run')}"
    click.echo(f"limits: {said}; rtproof judge {shlex.quote(str(folder / RUNS_FOLDER))}", err=own.as_json)
    return worst


def _exit_code(measured: MeasuredSeries) -> int:
    """Of how the series went; what the runs say is on the page."""
    if measured.interrupted:
        click.echo("rtproof: interrupted: what was measured until then is kept", err=True)
        return run_request.INTERRUPTED_CODE
    if measured.failure:
        raise TargetError(f"{measured.failure}; what was measured before is kept")
    return RUN_FAILED_CODE if measured.complaints else 0
