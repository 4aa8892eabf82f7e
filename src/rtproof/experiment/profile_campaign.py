# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile``: measure every cell of a profile on a target, and make the page beside the article."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rtproof import importers
from rtproof.core import files
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.printable import clean
from rtproof.experiment import campaign_folder, exported_files, profile_setup, run_request, stored_runs, target_runner
from rtproof.experiment.campaign_folder import StoredCampaign
from rtproof.experiment.run_request import ProfileRequest
from rtproof.experiment.stored_runs import CELLS_FOLDER
from rtproof.experiment.target_runner import Cell, CellEnd, TargetRunner
from rtproof.judge.doubts.registry import contradicted
from rtproof.profiles import CellPlan, Profile, run_options
from rtproof.profiles.profile import cell_as_run, where_else_to_run
from rtproof.record import run_folder
from rtproof.report.pages import campaign_outcomes
from rtproof.report.pages.campaign_outcomes import CellOutcome, OtherToolResult
from rtproof.run.live_view import clock_text

LOCAL_TARGET = "local"


def run_campaign(runner: TargetRunner, profile: Profile, asked: ProfileRequest, folder: Path) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    article = profile_setup.published_article(profile)
    given = tuple(_import_result(path) for path in asked.given)
    typed = shlex.join(runner.asked.command)
    begun = campaign_folder.StoredCampaign(
        typed, profile, article, runner.target.host_name(), runner.asked.percentiles, given=given
    )
    with files.removing_empty_folders(folder / CELLS_FOLDER):
        run_folder.create_run_folder(folder)
        outcomes, ended, interrupted = _measure(runner, begun, folder)
        measured = sum(each.analysis is not None for each in outcomes)
        if not measured:
            raise _nothing_measured(
                profile, outcomes, where_else_to_run(profile) if runner.asked.target == LOCAL_TARGET else ""
            )
    if not interrupted and runner.asked.target == LOCAL_TARGET:
        more, interrupted = _results_of_programs(runner, profile, folder)
        given = (*given, *more)
        campaign_folder.store_campaign(folder, replace(ended, given=given))
    campaign_folder.publish_campaign(
        campaign_folder.CampaignDocument(profile, outcomes, article, campaign_outcomes.CampaignExtras(given, typed)),
        folder,
        runner.asked.as_json,
    )
    if interrupted:
        click.echo(f"rtproof: interrupted: {measured} of {len(outcomes)} cells are measured and kept", err=True)
        return run_request.INTERRUPTED_CODE
    return campaign_outcomes.campaign_exit_code(outcomes)


def _measure(
    runner: TargetRunner, begun: StoredCampaign, folder: Path
) -> tuple[list[CellOutcome], StoredCampaign, bool]:
    """The end of every cell, the stored campaign, and whether the user interrupted it.

    The campaign is stored after each cell, so that nothing is lost if the program stops.
    """

    outcomes: list[CellOutcome] = []
    interrupted, plans = False, begun.profile.cells
    for plan, ended in zip(plans, runner.run(_profile_cells(begun.profile, folder, runner.asked.note)), strict=True):
        outcomes.append(_read_outcome(runner, begun, plan, ended, folder))
        interrupted = interrupted or ended.interrupted
        if ended.failure and not ended.interrupted and len(plans) > 1:
            click.echo(clean(f"rtproof: {plan.label}: {ended.failure}"), err=True)
        cell = campaign_folder.stored_cell_end(outcomes[-1], folder / CELLS_FOLDER / plan.key)
        begun = replace(begun, cells=(*begun.cells, cell))
        if any(each.analysis for each in outcomes):
            campaign_folder.store_campaign(folder, begun)
    return outcomes, begun, interrupted


def _nothing_measured(profile: Profile, outcomes: Sequence[CellOutcome], instead: str) -> RtproofError:
    """The reason; of several the first, since each has been told when its cell failed. instead: what could be done."""
    reasons = {each.failure for each in outcomes}
    several = f"no cell could be measured; {outcomes[0].cell.label}: " if len(reasons) > 1 else ""
    settings = f" ('rtproof profiles {profile.name}' lists what --set takes)" if profile.parameters else ""
    return UserError(f"{several}{outcomes[0].failure}{settings}{instead}")


def _option_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all options, as if the user had typed these."""
    return {"duration": None, "samples": None, "probe": None, "load": (), **options}


def _profile_cells(profile: Profile, folder: Path, note: str) -> list[Cell]:
    total = len(profile.cells)
    return [
        Cell(
            plan.label,
            folder / CELLS_FOLDER / plan.key,
            tuple((way.name, run_request.agent_arguments(_option_values(run_options(plan, way)))) for way in plan.ways),
            f"[{number}/{total}] {plan.label}, {_length_text(plan)}",
            f"{_length_text(plan)}, cell {number} of {total} ({plan.label})",
            note,
        )
        for number, plan in enumerate(profile.cells, 1)
    ]


def _length_text(plan: CellPlan) -> str:
    return f"{plan.samples:,} activations" if plan.samples else clock_text(plan.length_ns)


def _read_outcome(
    runner: TargetRunner, begun: StoredCampaign, plan: CellPlan, ended: CellEnd, folder: Path
) -> CellOutcome:
    """The outcome of a cell: its run, read and reported, or the sentence that says why there is none."""
    system, profile = begun.system, begun.profile
    way = None if ended.way is None else plan.ways[ended.way]
    passed = tuple(zip(plan.ways, ended.refused, strict=False)) if way else ()
    if ended.outcome is None:
        return CellOutcome(system, plan, failure=ended.failure)
    run_folder = folder / CELLS_FOLDER / plan.key
    try:
        result = stored_runs.read_run(run_folder, percentiles=runner.asked.percentiles)
    except RtproofError as problem:
        return CellOutcome(system, plan, None, way, passed, str(problem))
    found = CellOutcome(
        *(system, cell_as_run(plan, way), result.analysis, way, passed, ended.failure),
        _write_cell_report(runner, result, run_folder),
        run=campaign_folder.cell_run(plan.key),
    )
    kept, sentences = exported_files.keep_files(profile, found, run_folder)
    for sentence in sentences:
        click.echo(clean(sentence), err=True)
    return kept


def _write_cell_report(runner: TargetRunner, result: stored_runs.AnalysedRun, run_folder: Path) -> str:
    """Path of the cell's own report from the page; "" if it can't be written, which costs no figure."""
    if not runner.asked.report:
        return ""
    place = stored_runs.report_path(run_folder, "html")
    try:
        stored_runs.write_new_file(place, result.report("html"))
    except (RtproofError, OSError) as problem:
        click.echo(clean(f"rtproof: no {place}: {getattr(problem, 'strerror', problem)}"), err=True)
        return ""
    return f"{CELLS_FOLDER}/{place.name}"


def _results_of_programs(runner: TargetRunner, profile: Profile, folder: Path) -> tuple[list[OtherToolResult], bool]:
    """What the profile's own programs measure, and whether the user interrupted them. The cells are worth more."""
    found: list[OtherToolResult] = []
    try:
        for label, path in target_runner.run_programs(profile, runner.agent, folder):
            try:
                found.append(_import_result(path, label))
            except UserError as problem:
                click.echo(clean(f"rtproof: {label}: {problem}"), err=True)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _import_result(path: Path, label: str = "") -> OtherToolResult:
    found = contradicted(importers.read(path))
    named = label or (f"{path.name}: {found.title}" if found.title else path.name)
    notes = (*found.faults, *found.notes, *(doubt.what for doubt in found.troubles))
    return OtherToolResult(named, found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, notes)
