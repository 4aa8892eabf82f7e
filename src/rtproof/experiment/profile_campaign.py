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
from rtproof.experiment import campaign_folder, profile_setup, run_request, target_runner
from rtproof.experiment.campaign_folder import CampaignDocument, StoredCampaign, StoredCellEnd
from rtproof.experiment.run_request import ProfileRequest
from rtproof.experiment.stored_runs import CELLS_FOLDER
from rtproof.experiment.target_runner import Cell, TargetRunner
from rtproof.judge.doubts.registry import contradicted
from rtproof.profiles import CellPlan, Profile, run_options
from rtproof.profiles.profile import where_else_to_run
from rtproof.record import run_folder
from rtproof.report.pages.campaign_outcomes import CellOutcome, OtherToolResult
from rtproof.run.live_view import clock_text

LOCAL_TARGET = "local"


def run_campaign(runner: TargetRunner, profile: Profile, asked: ProfileRequest, folder: Path) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    article = profile_setup.published_article(profile)
    given = tuple(_import_result(path) for path in asked.given)
    system = runner.target.host_name()
    typed = shlex.join(runner.asked.command)
    campaign = StoredCampaign(typed, profile, article, system, runner.asked.percentiles, given=given)
    local = runner.asked.target == LOCAL_TARGET
    with files.removing_empty_folders(folder / CELLS_FOLDER):
        run_folder.create_run_folder(folder)
        measured, interrupted = _measure(runner, campaign, folder)
        if not any(each.analysis for each in measured.outcomes):
            raise _nothing_measured(profile, measured.outcomes, where_else_to_run(profile) if local else "")
    if not interrupted and local:
        more, interrupted = _results_of_programs(runner, profile, folder)
        measured = replace(measured, campaign=replace(measured.campaign, given=(*given, *more)))
        campaign_folder.store_campaign(folder, measured.campaign)
    campaign_folder.publish_campaign(measured, folder, runner.asked.as_json)
    if interrupted:
        count = sum(each.analysis is not None for each in measured.outcomes)
        click.echo(f"rtproof: interrupted: {count} of {len(measured.outcomes)} cells are measured and kept", err=True)
        return run_request.INTERRUPTED_CODE
    return measured.exit_code


def _measure(runner: TargetRunner, campaign: StoredCampaign, folder: Path) -> tuple[CampaignDocument, bool]:
    """The campaign with the outcome of every cell, and whether the user interrupted it.

    The campaign is stored after each cell, so that nothing is lost if the program stops.
    """
    outcomes: list[CellOutcome] = []
    interrupted, plans = False, campaign.profile.cells
    for plan, ended in zip(plans, runner.run(_profile_cells(campaign.profile, folder, runner.asked.note)), strict=True):
        refused = () if ended.way is None else ended.refused  # else the failure has their sentences
        end = StoredCellEnd(plan.key, way=ended.way, refused=refused, failure=ended.failure)
        if ended.outcome is None:
            outcome = campaign_folder.outcome_of_end(campaign, plan, end)
        else:
            end, outcome = campaign_folder.end_cell(folder, campaign, end, report=runner.asked.report)
        outcomes.append(outcome)
        interrupted = interrupted or ended.interrupted
        if ended.failure and not ended.interrupted and len(plans) > 1:
            click.echo(clean(f"rtproof: {plan.label}: {ended.failure}"), err=True)
        campaign = replace(campaign, cells=(*campaign.cells, end))
        if any(each.analysis for each in outcomes):
            campaign_folder.store_campaign(folder, campaign)
    return CampaignDocument(campaign, outcomes), interrupted


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
