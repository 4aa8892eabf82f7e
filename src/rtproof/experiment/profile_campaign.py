# SPDX-License-Identifier: Apache-2.0
"""A profile with the user's settings and limits: measure its cells on a target, and write the page and the table."""

import shlex
from dataclasses import replace
from pathlib import Path

import click
from msgspec import structs

from rtproof import articles, exporters, importers, profiles, report
from rtproof.articles import Article
from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration
from rtproof.core.plugins import options_once
from rtproof.core.printable import clean
from rtproof.experiment import campaign_folder, run_request
from rtproof.experiment.campaign_folder import CampaignDocument, StoredCampaign
from rtproof.experiment.run_request import RunRequest, observer_options, why_gap_too_short, why_not_judgeable
from rtproof.experiment.stored_runs import CELLS_FOLDER
from rtproof.experiment.target_runner import Cell, run_cells
from rtproof.judge.doubts.registry import contradicted
from rtproof.profiles import CellPlan, OptionChange, Profile, agent_arguments, run_options
from rtproof.profiles.profile import (
    where_else_to_run,
    with_claims,
    with_loads,
    with_options,
    with_parameters,
    with_settings,
)
from rtproof.record import run_folder
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import CellOutcome, OtherToolResult, requirement_sentences
from rtproof.run.live_view import clock_text
from rtproof.targets import Target


def requested_profile(asked: RunRequest, *, in_guest: bool = False) -> Profile:
    """The profile as the user wants it, with the user's limits if there are any. UserError where that makes no sense.

    in_guest: with what stands in there.
    """
    found = profiles.load(asked.profile)
    given = options_once(f"the profile {found.name}", asked.settings)
    chosen = with_settings(found, {**found.guest.settings, **given} if in_guest else given)
    if asked.given and not found.given:
        raise UserError(f"the profile {found.name} has no place for results of other tools: leave --given out")
    if in_guest and "load" not in asked.options:
        chosen = with_loads(chosen, found.guest.load)
    wanted = with_options(with_parameters(chosen), asked.options)
    wanted = _with_observer(wanted) if asked.observer else wanted
    return with_claims(wanted, asked.requirements) if asked.requirements else wanted


def _with_observer(profile: Profile) -> Profile:
    """The profile with tracing on and off by turns in each cell."""

    def traced(cell: CellPlan) -> CellPlan:
        own = cell.options
        turns = observer_options(own.get("trace"), own.get("trace_blocks"), cell.length_ns)
        return replace(cell, options={**own, **turns})

    change = OptionChange("observer", (), "on")
    return structs.replace(profile, cells=tuple(map(traced, profile.cells)), changes=(*profile.changes, change))


def published_article(profile: Profile) -> Article:
    """The article's figures, which the page can put beside what will be measured; UserError if it can't."""
    found = articles.load(profile.article)
    campaign_page.check_profile_page(profile, found)
    for each in profile.kept:  # The user must know before hours of measuring.
        known = plugins.load_plugin(exporters, each.format).OPTIONS
        plugins.checked_options(f"the format {each.format}", known, tuple(each.options.items()))
    return found


def profile_requirements(profile: Profile, asked: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """The user's requirements, else the article's. UserError if one can't be judged."""
    found = asked or profile.claims
    for each in found:
        if reason := why_not_judgeable(each):
            raise UserError(f"the requirement of the profile {profile.name}: {reason}")
    for cell in profile.cells:
        if reason := why_gap_too_short(found, cell.period_ns):
            raise UserError(f"the cell {cell.key} of the profile {profile.name}: {reason}")
    return found


# What ``rtproof profiles`` prints: the profiles there are, or the cells of one.


def profiles_text(name: str | None) -> bytes:
    """Every profile for a terminal, or the cells of the one with this name. UserError for one that makes no sense."""
    found = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for each in found:
        published_article(each)
    if name:
        return report.render("text", "rtproof: profiles", [_cells(found[0])])
    rows = tuple((each.name, each.title, str(len(each.cells)), duration(each.article_ns)) for each in found)
    header = ("profile", "what it repeats", "cells", "article's length")
    table = Table("What rtproof run --profile repeats; rtproof profiles NAME tells more", header, rows, (2, 3))
    return report.render("text", "rtproof: profiles", [Section("profiles", "Experiments of the articles", (table,))])


def _cells(profile: Profile) -> Section:
    rows = tuple((each.key, duration(each.article_ns), " ".join(agent_arguments(each))) for each in profile.cells)
    settings = [f"--set {axis}=...: {', '.join(values)}" for axis, values in profile.axes.items()]
    for each in profile.parameters:
        settings.append(f"--set {each.name}=...: {each.help}" + (f" (default {each.default})" if each.default else ""))
    table = Table("Cells at the article's length", ("cell", "length", "as options of rtproof run"), rows, (1,))
    words = (profile.about, *profile.differs, *requirement_sentences(profile.claims))
    more = [Text(tuple(settings))] if settings else []
    return Section(profile.name, profile.title, (Text(words), table, *more))


LOCAL_TARGET = "local"


def run_campaign(target: Target, asked: RunRequest, profile: Profile, folder: Path) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    The campaign is stored after each cell, so that nothing is lost if the program stops. UserError or TargetError, and
    no folder left, if nothing was measured at all.
    """
    article = published_article(profile)
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
