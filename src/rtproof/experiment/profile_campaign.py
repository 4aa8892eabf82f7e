# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile``: measure every cell of a profile on a target, and make the page beside the article."""

import shlex
from dataclasses import replace
from pathlib import Path

import click

from rtproof import importers
from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.experiment import campaign_folder, profile_setup, run_request
from rtproof.experiment.campaign_folder import CampaignDocument, StoredCampaign
from rtproof.experiment.run_request import RunRequest
from rtproof.experiment.stored_runs import CELLS_FOLDER
from rtproof.experiment.target_runner import Cell, run_cells
from rtproof.judge.doubts.registry import contradicted
from rtproof.profiles import Profile, run_options
from rtproof.profiles.profile import where_else_to_run
from rtproof.record import run_folder
from rtproof.report.pages.campaign_cells import CellOutcome, OtherToolResult
from rtproof.run.live_view import clock_text
from rtproof.targets import Target

LOCAL_TARGET = "local"


def run_campaign(target: Target, asked: RunRequest, profile: Profile, folder: Path) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    The campaign is stored after each cell, so that nothing is lost if the program stops. UserError or TargetError, and
    no folder left, if nothing was measured at all.
    """
    article = profile_setup.published_article(profile)
    given = tuple(map(_import_result, asked.given))
    campaign = StoredCampaign(
        shlex.join(asked.command), profile, article, target.host_name(), asked.percentiles, given=given
    )
    outcomes: list[CellOutcome] = []
    interrupted = False
    with files.removing_empty_folders(folder / CELLS_FOLDER):
        run_folder.create_run_folder(folder)
        ends = run_cells(target, asked, _profile_cells(profile, folder, asked.note))
        for plan, (end, interrupted) in zip(profile.cells, ends, strict=True):
            if end.failure and not interrupted and len(profile.cells) > 1:
                click.echo(clean(f"rtproof: {plan.label}: {end.failure}"), err=True)
            if end.way is None:
                outcome = campaign_folder.outcome_of_end(campaign, plan, end)
            else:
                end, outcome = campaign_folder.end_cell(folder, campaign, end, report=asked.report)  # noqa: PLW2901
            outcomes.append(outcome)
            campaign = replace(campaign, cells=(*campaign.cells, end))
            if any(each.analysis for each in outcomes):
                campaign_folder.store_campaign(folder, campaign)
        if not any(each.analysis for each in outcomes):
            # Of several reasons the first, since each has been told when its cell failed.
            first, several = outcomes[0], len({each.failure for each in outcomes}) > 1
            why = f"no cell could be measured; {first.cell.label}: " if several else ""
            settings = f" ('rtproof profiles {profile.name}' lists what --set takes)" if profile.parameters else ""
            instead = where_else_to_run(profile) if asked.target == LOCAL_TARGET else ""
            raise UserError(f"{why}{first.failure}{settings}{instead}")
    found = CampaignDocument(campaign, outcomes)
    campaign_folder.publish_campaign(found, folder, asked.as_json)
    if interrupted:
        count = sum(each.analysis is not None for each in outcomes)
        click.echo(f"rtproof: interrupted: {count} of {len(outcomes)} cells are measured and kept", err=True)
        return run_request.INTERRUPTED_CODE
    return found.exit_code


def _profile_cells(profile: Profile, folder: Path, note: str) -> list[Cell]:
    total = len(profile.cells)
    cells = []
    for number, plan in enumerate(profile.cells, 1):
        ways = []
        for way in plan.ways:  # the values of all options, as if the user had typed these
            values = {"duration": None, "samples": None, "probe": None, "load": (), **run_options(plan, way)}
            ways.append((way.name, run_request.agent_arguments(values)))
        length = f"{plan.samples:,} activations" if plan.samples else clock_text(plan.length_ns)
        announcement = f"[{number}/{total}] {plan.label}, {length}"
        goal = f"{length}, cell {number} of {total} ({plan.label})"
        cells.append(Cell(plan.label, folder / CELLS_FOLDER / plan.key, tuple(ways), announcement, goal, note))
    return cells


def _import_result(path: Path) -> OtherToolResult:
    found = contradicted(importers.read(path))
    named = f"{path.name}: {found.title}" if found.title else path.name
    notes = (*found.faults, *found.notes, *(doubt.what for doubt in found.troubles))
    return OtherToolResult(named, found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, notes)
