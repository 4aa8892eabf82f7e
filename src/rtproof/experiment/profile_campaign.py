# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile``: measure every cell of a profile on a target, and make the page beside the article."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rtproof import importers
from rtproof.core import files
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.printable import clean
from rtproof.experiment import campaign_folder, exported_files, local_runner, profile_setup, run_request, stored_runs
from rtproof.experiment.campaign_folder import CELLS_FOLDER, StoredCampaign
from rtproof.experiment.local_runner import LocalRunner, TargetCell, TargetCellEnd
from rtproof.profiles import CellPlan, Profile, run_options
from rtproof.profiles.profile import where_else_to_run
from rtproof.record import run_folder
from rtproof.report.pages import campaign_outcomes
from rtproof.report.pages.campaign_outcomes import CellOutcome, OtherToolResult
from rtproof.run.live_view import LiveView, clock_text
from rtproof.run.session import RunPlan

LOCAL_TARGET = "local"


def run_campaign(
    desk: LocalRunner, profile: Profile, asked: run_request.ProfileRequest, folder: Path, as_json: bool
) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    article = profile_setup.published_article(profile)
    given = tuple(_import_result(path) for path in asked.given)
    typed = shlex.join(desk.asked.command)
    begun = campaign_folder.StoredCampaign(
        typed, profile, article, desk.target.host_name(), desk.percentiles, given=given
    )
    with files.removing_empty_folders(folder / CELLS_FOLDER):
        run_folder.create_run_folder(folder)
        outcomes, ended, interrupted = _measure(desk, begun, folder)
        measured = sum(each.analysis is not None for each in outcomes)
        if not measured:
            raise _nothing_measured(
                profile, outcomes, where_else_to_run(profile) if desk.asked.target == LOCAL_TARGET else ""
            )
    if not interrupted and desk.asked.target == LOCAL_TARGET:
        more, interrupted = _results_of_programs(desk, profile, folder)
        given = (*given, *more)
        _store_campaign(folder, replace(ended, given=given))
    campaign_folder.publish_campaign(
        campaign_folder.CampaignDocument(profile, outcomes, article, campaign_outcomes.CampaignExtras(given, typed)),
        folder,
        as_json,
    )
    if interrupted:
        click.echo(f"rtproof: interrupted: {measured} of {len(outcomes)} cells are measured and kept", err=True)
        return run_request.INTERRUPTED_CODE
    return campaign_outcomes.campaign_exit_code(outcomes)


def _measure(desk: LocalRunner, begun: StoredCampaign, folder: Path) -> tuple[list[CellOutcome], StoredCampaign, bool]:
    """The end of every cell, the stored campaign, and whether the user interrupted it.

    The campaign is stored after each cell, so that nothing is lost if the program stops.
    """

    outcomes: list[CellOutcome] = []
    interrupted, plans = False, begun.profile.cells
    for plan, ended in zip(plans, _run_profile_cells(desk, begun.profile, folder), strict=True):
        outcomes.append(_read_outcome(desk, begun, plan, ended, folder))
        interrupted = interrupted or ended.interrupted
        if ended.failure and not ended.interrupted and len(plans) > 1:
            click.echo(clean(f"rtproof: {plan.label}: {ended.failure}"), err=True)
        cell = campaign_folder.stored_cell_end(outcomes[-1], folder / CELLS_FOLDER / plan.key)
        begun = replace(begun, cells=(*begun.cells, cell))
        if any(each.analysis for each in outcomes):
            _store_campaign(folder, begun)
    return outcomes, begun, interrupted


def _store_campaign(folder: Path, campaign: StoredCampaign) -> None:
    """Store how the cells ended. If the disk is full, the campaign goes on and its figures are still printed."""

    try:
        campaign_folder.write_campaign_file(folder, campaign)
    except OSError as problem:
        click.echo(clean(f"rtproof: no {folder / campaign_folder.CAMPAIGN_FILE}: {problem.strerror}"), err=True)


def _nothing_measured(profile: Profile, outcomes: Sequence[CellOutcome], instead: str) -> RtproofError:
    """The reason; of several the first, since each has been told when its cell failed. instead: what could be done."""
    reasons = {each.failure for each in outcomes}
    several = f"no cell could be measured; {outcomes[0].cell.label}: " if len(reasons) > 1 else ""
    settings = f" ('rtproof profiles {profile.name}' lists what --set takes)" if profile.parameters else ""
    return UserError(f"{several}{outcomes[0].failure}{settings}{instead}")


def _option_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all options, as if the user had typed these."""
    return {"duration": None, "samples": None, "load": (), **options}


def _run_profile_cells(desk: LocalRunner, profile: Profile, folder: Path) -> Iterator[TargetCellEnd]:
    machine, total = desk.target.machine(), len(profile.cells)
    limits = run_request.limit_arguments(desk.asked.requirements)
    wanted = [
        [
            (way.name, (*run_request.agent_arguments(_option_values(run_options(plan, way))), *limits))
            for way in plan.ways
        ]
        for plan in profile.cells
    ]

    def view(number: int, cell: TargetCell) -> LiveView:
        length = _length_text(profile.cells[number - 1])
        click.echo(clean(f"[{number}/{total}] {cell.name}, {length}"), err=True)
        return LiveView(sys.stderr, f"{length}, cell {number} of {total} ({cell.name})", sys.stderr.isatty())

    def cells() -> Iterator[TargetCell]:
        """Yield each cell when its turn comes, because its folder stores the time of its start."""
        for plan, ways in zip(profile.cells, wanted, strict=True):
            info = local_runner.describe_run(desk.asked, machine, desk.agent)
            place = folder / CELLS_FOLDER / plan.key
            yield local_runner.TargetCell(
                plan.label, [(name, RunPlan(place, desk.agent, words, info)) for name, words in ways]
            )

    return local_runner.run_cells(desk.target, cells(), view)


def _length_text(plan: CellPlan) -> str:
    return f"{plan.samples} activations" if plan.samples else clock_text(plan.length_ns)


def _read_outcome(
    desk: LocalRunner, begun: StoredCampaign, plan: CellPlan, ended: TargetCellEnd, folder: Path
) -> CellOutcome:
    """The outcome of a cell: its run, read and reported, or the sentence that says why there is none."""
    system, profile = begun.system, begun.profile
    way = None if ended.way is None else plan.ways[ended.way]
    passed = tuple(zip(plan.ways, ended.refused, strict=False)) if way else ()
    if ended.outcome is None:
        return CellOutcome(system, plan, failure=ended.failure)
    run_folder = folder / CELLS_FOLDER / plan.key
    try:
        result = stored_runs.read_run(run_folder, percentiles=desk.percentiles)
    except RtproofError as problem:
        return CellOutcome(system, plan, None, way, passed, str(problem))
    found = CellOutcome(
        system, plan, result.analysis, way, passed, ended.failure, _write_cell_report(desk, result, run_folder)
    )
    for sentence in exported_files.export_trace_files(run_folder, result.analysis):
        click.echo(clean(sentence), err=True)
    return replace(found, kept=_keep_published_files(profile, found, run_folder))


def _write_cell_report(desk: LocalRunner, result: stored_runs.AnalysedRun, run_folder: Path) -> str:
    """Path of the cell's own report from the page; "" if it can't be written, which costs no figure."""
    if not desk.report:
        return ""
    place = stored_runs.report_path(run_folder, "html")
    try:
        stored_runs.write_new_file(place, result.report("html"))
    except (RtproofError, OSError) as problem:
        click.echo(clean(f"rtproof: no {place}: {getattr(problem, 'strerror', problem)}"), err=True)
        return ""
    return f"{CELLS_FOLDER}/{place.name}"


def _keep_published_files(profile: Profile, found: CellOutcome, run_folder: Path) -> tuple[str, ...]:
    """Paths, from the page, of the files that the article kept."""
    said = exported_files.write_published_files(profile, found, run_folder)
    for sentence in said.values():
        click.echo(clean(sentence), err=True)
    return tuple(f"{CELLS_FOLDER}/{path.name}" for path in said if path.exists())


def _results_of_programs(desk: LocalRunner, profile: Profile, folder: Path) -> tuple[list[OtherToolResult], bool]:
    """What the profile's own programs measure, and whether the user interrupted them. The cells are worth more."""
    found: list[OtherToolResult] = []
    try:
        for label, path in local_runner.run_programs(profile, desk.agent, folder):
            try:
                found.append(_import_result(path, label))
            except UserError as problem:
                click.echo(clean(f"rtproof: {label}: {problem}"), err=True)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _import_result(path: Path, label: str = "") -> OtherToolResult:
    found = importers.read(path)
    named = label or (f"{path.name}: {found.title}" if found.title else path.name)
    return OtherToolResult(named, found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, found.notes)
