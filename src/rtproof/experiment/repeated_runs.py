# SPDX-License-Identifier: Apache-2.0
"""Run a series: the same measurement several times, or two by turns, A B B A A B B A, and compare the runs.

One run does not tell how much runs differ. Taking turns makes a slow change of the machine affect both sides equally.
"""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from rtproof.agents import WARMUP_DEFAULT
from rtproof.compare.likeness import MUST_AGREE
from rtproof.core import files, units
from rtproof.core.errors import TargetError, UserError
from rtproof.core.printable import clean
from rtproof.experiment import local_runner, run_request, run_sets
from rtproof.experiment.local_runner import LocalRunner, TargetCell, TargetCellEnd
from rtproof.experiment.run_request import SeriesRequest, SeriesSide
from rtproof.run.live_view import LiveView, clock_text
from rtproof.run.session import RunPlan

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


def measure_series(desk: LocalRunner, asked: SeriesRequest, folder: Path) -> MeasuredSeries:
    """Every run into FOLDER/runs, each by a new process of the agent on the target, which stays open for all of them.

    Ctrl-C lets the one that measures finish and skips the rest. So does a run that cannot be had, because the next one
    would fail alike. UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    order = asked.order()
    click.echo(_announcement(asked), err=True)
    with files.removing_empty_folders(folder / RUNS_FOLDER):
        (folder / RUNS_FOLDER).mkdir(parents=True)
        ended = list(_until_one_fails(_run_series_cells(desk, order, folder)))
        kept = [(side, each) for side, each in zip(order, ended, strict=False) if each.outcome is not None]
        last = ended[-1]
        if not kept:
            raise UserError(_failure_with_name(last))
    folders = {side.name: tuple(_run_folder(each) for other, each in kept if other is side) for side in asked.sides}
    complaints = tuple(_failure_with_name(each) for each in ended if each.failure and each.outcome)
    failure = "" if last.outcome or last.interrupted else _failure_with_name(last)
    return MeasuredSeries(folders, complaints, failure, any(each.interrupted for each in ended))


def _run_folder(ended: TargetCellEnd) -> Path:
    (_, plan), *_ = ended.cell.ways
    return plan.folder


def _failure_with_name(ended: TargetCellEnd) -> str:
    return f"run {ended.cell.name}: {ended.failure}"


def _until_one_fails(runs: Iterator[TargetCellEnd]) -> Iterator[TargetCellEnd]:
    for ended in runs:
        yield ended
        if ended.outcome is None or ended.interrupted:
            return


def _run_series_cells(desk: LocalRunner, order: Sequence[SeriesSide], folder: Path) -> Iterator[TargetCellEnd]:
    machine, total = desk.target.machine(), len(order)
    names = _run_names(order)
    limits = run_request.limit_arguments(desk.asked.requirements)

    def view(number: int, cell: TargetCell) -> LiveView:
        side, rest = order[number - 1], sum(_run_length_ns(side) for side in order[number - 1 :])
        going = f"[{number}/{total}] {cell.name}, {clock_text(_run_length_ns(side))}; {clock_text(rest)} to go in all"
        click.echo(clean(going), err=True)
        return LiveView(
            sys.stderr, f"{run_request.length_text(dict(side.values))}, run {number} of {total}", sys.stderr.isatty()
        )

    def cells() -> Iterator[TargetCell]:
        """Each when it is its turn, because its folder tells when it was started."""
        for name, side in zip(names, order, strict=True):
            info = local_runner.describe_run(
                replace(desk.asked, note=_run_note(desk.asked.note, side)), machine, desk.agent
            )
            words = (*run_request.agent_arguments(dict(side.values)), *limits)
            yield local_runner.TargetCell(name, [("", RunPlan(folder / RUNS_FOLDER / name, desk.agent, words, info))])

    return local_runner.run_cells(desk.target, cells(), view)


def _run_names(order: Sequence[SeriesSide]) -> list[str]:
    """01-A, 02-B, ... so that they sort in the order of time."""
    width = max(2, len(str(len(order))))
    return [f"{at:0{width}}" + (f"-{side.name}" if side.name else "") for at, side in enumerate(order, 1)]


def _run_note(note: str, side: SeriesSide) -> str:
    """What the user noted, and what makes this run one of its side."""
    return "; ".join(filter(None, (note, f"{side.name}: {side.words}" if side.name else "")))


def _run_length_ns(side: SeriesSide) -> int:
    return run_request.measured_length_ns(dict(side.values)) + units.parse_duration(
        side.values["warmup"] or WARMUP_DEFAULT
    )


def _announcement(asked: SeriesRequest) -> str:
    """What will be done and how long it takes, before it begins."""
    order = asked.order()
    whole = clock_text(sum(_run_length_ns(side) for side in order))
    if len(asked.sides) == 1:
        return f"{len(order)} run{'s' * (len(order) > 1)}, {whole} in all, without the time to start each"
    turns = " ".join(side.name for side in order[:8]) + (" ..." if len(order) > 8 else "")
    return f"{len(order)} runs by turns, {turns}, {whole} in all, without the time to start each"


def report_series(
    desk: LocalRunner, asked: SeriesRequest, measured: MeasuredSeries, folder: Path, as_json: bool
) -> int:
    """Write the page and print what the runs say; the exit code."""
    command = shlex.join(desk.asked.command)
    for sentence in measured.complaints:
        click.echo(clean(f"rtproof: {sentence}"), err=True)
    page = folder / run_sets.SERIES_PAGE if desk.report else None
    wanted = run_sets.PageRequest(page, as_json=as_json, although=MUST_AGREE, command=command)
    what = {side.name: side.words or "no options of its own" for side in asked.sides}
    read = run_sets.read_sides([(name, what[name], paths) for name, paths in measured.folders.items() if paths])
    try:
        if len(read) == 2:
            run_sets.compare_sides(read[0], read[1], wanted)
        else:
            run_sets.describe_repeats(read[0], wanted)
    finally:
        click.echo(f"runs: {folder / RUNS_FOLDER}", err=as_json)
        if desk.asked.requirements:
            click.echo(f"verdicts: rtproof judge {shlex.quote(str(folder / RUNS_FOLDER))}", err=as_json)
    return _exit_code(measured)


def _exit_code(measured: MeasuredSeries) -> int:
    """Of how the series went; what the runs say is on the page."""
    if measured.interrupted:
        click.echo("rtproof: interrupted: what was measured until then is kept", err=True)
        return run_request.INTERRUPTED_CODE
    if measured.failure:
        raise TargetError(f"{measured.failure}; what was measured before is kept")
    return RUN_FAILED_CODE if measured.complaints else 0
