# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile``: every cell of a profile on the target, and the page that puts them beside the article."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof import files
from rtproof.cli import about, campaignpage, foreign, kept, laboratory, measuring, profiled, results, tracing
from rtproof.errors import RtproofError, UserError
from rtproof.printable import clean
from rtproof.run.live import clock

if TYPE_CHECKING:
    from rtproof.cli.campaignfile import Campaign
    from rtproof.profiles import CellPlan, Profile
    from rtproof.report.campaign import Given, Outcome
    from rtproof.run.campaign import Cell, Ended
    from rtproof.run.live import LiveView
    from rtproof.targets import Target

CELLS = "cells"
LOCAL = "local"


@dataclass(frozen=True)
class Desk:
    """What all cells share. agent: program file of this host; asked: as written into each run folder."""

    target: "Target"
    agent: Path
    asked: about.Asked
    percentiles: tuple[float, ...]
    report: bool


def run(desk: Desk, profile: "Profile", asked: profiled.Asked, folder: Path, as_json: bool) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    from rtproof.cli import campaignfile
    from rtproof.profiles import choose
    from rtproof.record import rundir
    from rtproof.report import campaign as page

    article = profiled.article_of(profile)
    given = tuple(_given(path) for path in asked.given)
    typed = shlex.join(desk.asked.command)
    begun = campaignfile.Campaign(typed, profile, article, desk.target.host_name(), desk.percentiles, given=given)
    with files.no_empty_folders(folder / CELLS):
        rundir.create(folder)
        outcomes, ended, interrupted = _measure(desk, begun, folder)
        measured = sum(each.analysis is not None for each in outcomes)
        if not measured:
            raise _nothing_measured(profile, outcomes, choose.elsewhere(profile) if desk.asked.target == LOCAL else "")
    if not interrupted and desk.asked.target == LOCAL:
        more, interrupted = _run_programs(desk, profile, folder)
        given = (*given, *more)
        _keep(folder, replace(ended, given=given))
    campaignpage.publish(campaignpage.Found(profile, outcomes, article, page.More(given, typed)), folder, as_json)
    if interrupted:
        click.echo(f"rtproof: interrupted: {measured} of {len(outcomes)} cells are measured and kept", err=True)
        return laboratory.INTERRUPTED_CODE
    return page.exit_code(outcomes)


def _measure(desk: Desk, begun: "Campaign", folder: Path) -> "tuple[list[Outcome], Campaign, bool]":
    """Every cell, what is kept of them, and whether the user interrupted them. It is kept after each, lest all stop."""
    from rtproof.cli import campaignfile

    outcomes: list[Outcome] = []
    interrupted, plans = False, begun.profile.cells
    for plan, ended in zip(plans, _runs(desk, begun.profile, folder), strict=True):
        outcomes.append(_outcome(desk, begun, plan, ended, folder))
        interrupted = interrupted or ended.interrupted
        if ended.failure and not ended.interrupted and len(plans) > 1:
            click.echo(clean(f"rtproof: {plan.label}: {ended.failure}"), err=True)
        cell = campaignfile.cell_of(outcomes[-1], folder / CELLS / plan.key)
        begun = replace(begun, cells=(*begun.cells, cell))
        if any(each.analysis for each in outcomes):
            _keep(folder, begun)
    return outcomes, begun, interrupted


def _keep(folder: Path, campaign: "Campaign") -> None:
    """Write down how the cells ended; a disk that is full costs no figure."""
    from rtproof.cli import campaignfile

    try:
        campaignfile.write(folder, campaign)
    except OSError as problem:
        click.echo(clean(f"rtproof: no {folder / campaignfile.NAME}: {problem.strerror}"), err=True)


def _nothing_measured(profile: "Profile", outcomes: "Sequence[Outcome]", instead: str) -> RtproofError:
    """The reason; of several the first, since each has been told when its cell failed. instead: what could be done."""
    reasons = {each.failure for each in outcomes}
    several = f"no cell could be measured; {outcomes[0].cell.label}: " if len(reasons) > 1 else ""
    settings = f" ('rtproof profiles {profile.name}' lists what --set takes)" if profile.parameters else ""
    return UserError(f"{several}{outcomes[0].failure}{settings}{instead}")


def _values(options: Mapping[str, Any]) -> dict[str, Any]:
    """As if every option had stood on the command line."""
    return {"duration": None, "samples": None, "load": (), **options}


def _runs(desk: Desk, profile: "Profile", folder: Path) -> "Iterator[Ended]":
    from rtproof.profiles import run_options
    from rtproof.run import campaign
    from rtproof.run.live import LiveView
    from rtproof.run.session import Plan

    machine, total = desk.target.machine(), len(profile.cells)
    limits = measuring.limit_arguments(desk.asked.requirements)
    wanted = [
        [(way.name, (*measuring.agent_arguments(_values(run_options(plan, way))), *limits)) for way in plan.ways]
        for plan in profile.cells
    ]

    def view(number: int, cell: "Cell") -> "LiveView":
        length = _length(profile.cells[number - 1])
        click.echo(clean(f"[{number}/{total}] {cell.name}, {length}"), err=True)
        return LiveView(sys.stderr, f"{length}, cell {number} of {total} ({cell.name})", sys.stderr.isatty())

    def cells() -> "Iterator[Cell]":
        """Each when it is its turn, because its folder tells when it was started."""
        for plan, ways in zip(profile.cells, wanted, strict=True):
            info = about.about(desk.asked, machine, desk.agent)
            place = folder / CELLS / plan.key
            yield campaign.Cell(plan.label, [(name, Plan(place, desk.agent, words, info)) for name, words in ways])

    return campaign.run(desk.target, cells(), view)


def _length(plan: "CellPlan") -> str:
    return f"{plan.samples} activations" if plan.samples else clock(plan.length_ns)


def _outcome(desk: Desk, begun: "Campaign", plan: "CellPlan", ended: "Ended", folder: Path) -> "Outcome":
    """The cell read and reported, or its sentence."""
    from rtproof.report.campaign import Outcome

    system, profile = begun.system, begun.profile
    way = None if ended.way is None else plan.ways[ended.way]
    passed = tuple(zip(plan.ways, ended.refused, strict=False)) if way else ()
    if ended.outcome is None:
        return Outcome(system, plan, failure=ended.failure)
    run_folder = folder / CELLS / plan.key
    try:
        result = results.read_run(run_folder, percentiles=desk.percentiles)
    except RtproofError as problem:
        return Outcome(system, plan, None, way, passed, str(problem))
    found = Outcome(system, plan, result.analysis, way, passed, ended.failure, _report(desk, result, run_folder))
    for sentence in tracing.keep_beside(run_folder, result.analysis):
        click.echo(clean(sentence), err=True)
    return replace(found, kept=_kept(profile, found, run_folder))


def _report(desk: Desk, result: results.Result, run_folder: Path) -> str:
    """Path of the cell's own report from the page; "" if it can't be written, which costs no figure."""
    if not desk.report:
        return ""
    place = results.report_path(run_folder, "html")
    try:
        results.write_new(place, result.report("html"))
    except (RtproofError, OSError) as problem:
        click.echo(clean(f"rtproof: no {place}: {getattr(problem, 'strerror', problem)}"), err=True)
        return ""
    return f"{CELLS}/{place.name}"


def _kept(profile: "Profile", found: "Outcome", run_folder: Path) -> tuple[str, ...]:
    """Paths, from the page, of the files that the article kept."""
    said = kept.keep(profile, found, run_folder)
    for sentence in said.values():
        click.echo(clean(sentence), err=True)
    return tuple(f"{CELLS}/{path.name}" for path in said if path.exists())


def _run_programs(desk: Desk, profile: "Profile", folder: Path) -> "tuple[list[Given], bool]":
    """What the profile's own programs measure, and whether the user interrupted them. The cells are worth more."""
    found: list[Given] = []
    try:
        for label, path in foreign.results(profile, desk.agent, folder):
            try:
                found.append(_given(path, label))
            except UserError as problem:
                click.echo(clean(f"rtproof: {label}: {problem}"), err=True)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _given(path: Path, label: str = "") -> "Given":
    from rtproof import importers
    from rtproof.report.campaign import Given

    found = importers.read(path)
    named = label or (f"{path.name}: {found.title}" if found.title else path.name)
    return Given(named, found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, found.notes)
