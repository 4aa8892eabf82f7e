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
from rtproof.cli import about, foreign, kept, laboratory, measuring, profiled, results, tracing
from rtproof.errors import RtproofError, UserError
from rtproof.run.live import clock

if TYPE_CHECKING:
    from rtproof.articles import Article
    from rtproof.profiles import CellPlan, Profile
    from rtproof.report.blocks import Section
    from rtproof.report.campaign import Given, More, Outcome
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


@dataclass(frozen=True)
class Found:
    """Everything that a page tells of."""

    profile: "Profile"
    outcomes: "Sequence[Outcome]"
    article: "Article"
    more: "More"


def run(desk: Desk, profile: "Profile", asked: profiled.Asked, folder: Path, as_json: bool) -> int:
    """Measure every cell into the folder, write the page, print the table; the exit code.

    UserError or TargetError, and no folder left, if nothing was measured at all.
    """
    from rtproof.profiles import choose
    from rtproof.record import rundir
    from rtproof.report import campaign as page

    article = profiled.article_of(profile)
    given = [_given(path) for path in asked.given]
    with files.no_empty_folders(folder / CELLS):
        rundir.create(folder)
        outcomes, interrupted = _measure(desk, profile, folder)
        measured = sum(each.analysis is not None for each in outcomes)
        if not measured:
            raise _nothing_measured(profile, outcomes, choose.elsewhere(profile) if desk.asked.target == LOCAL else "")
    if not interrupted and desk.asked.target == LOCAL:
        interrupted = _run_programs(desk, profile, folder, given)
    publish(Found(profile, outcomes, article, page.More(given, shlex.join(desk.asked.command))), folder, as_json)
    if interrupted:
        click.echo(f"rtproof: interrupted: {measured} of {len(outcomes)} cells are measured and kept", err=True)
        return laboratory.INTERRUPTED_CODE
    return page.exit_code(outcomes)


def _measure(desk: Desk, profile: "Profile", folder: Path) -> "tuple[list[Outcome], bool]":
    """Every cell, and whether the user interrupted them."""
    outcomes: list[Outcome] = []
    interrupted = False
    for plan, ended in zip(profile.cells, _runs(desk, profile, folder), strict=True):
        outcomes.append(_outcome(desk, profile, plan, ended, folder))
        interrupted = interrupted or ended.interrupted
        if ended.failure and not ended.interrupted and len(profile.cells) > 1:
            click.echo(f"rtproof: {plan.label}: {ended.failure}", err=True)
    return outcomes, interrupted


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
        click.echo(f"[{number}/{total}] {cell.name}, {length}", err=True)
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


def _outcome(desk: Desk, profile: "Profile", plan: "CellPlan", ended: "Ended", folder: Path) -> "Outcome":
    """The cell read and reported, or its sentence."""
    from rtproof.report.campaign import Outcome

    system = desk.target.host_name()
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
        click.echo(sentence, err=True)
    return replace(found, kept=_kept(profile, found, run_folder))


def _report(desk: Desk, result: results.Result, run_folder: Path) -> str:
    """Path of the cell's own report from the page; "" if it can't be written, which costs no figure."""
    if not desk.report:
        return ""
    place = results.report_path(run_folder, "html")
    try:
        results.write_new(place, result.report("html"))
    except (RtproofError, OSError) as problem:
        click.echo(f"rtproof: no {place}: {getattr(problem, 'strerror', problem)}", err=True)
        return ""
    return f"{CELLS}/{place.name}"


def _kept(profile: "Profile", found: "Outcome", run_folder: Path) -> tuple[str, ...]:
    """Paths, from the page, of the files that the article kept."""
    said = kept.keep(profile, found, run_folder)
    for sentence in said.values():
        click.echo(sentence, err=True)
    return tuple(f"{CELLS}/{path.name}" for path in said if path.exists())


def _run_programs(desk: Desk, profile: "Profile", folder: Path, given: "list[Given]") -> bool:
    """Add what the profile's own programs measure; whether the user interrupted them. The cells are worth more."""
    try:
        for label, path in foreign.results(profile, desk.agent, folder):
            try:
                given.append(_given(path, label))
            except UserError as problem:
                click.echo(f"rtproof: {label}: {problem}", err=True)
    except KeyboardInterrupt:
        return True
    return False


def _given(path: Path, label: str = "") -> "Given":
    from rtproof import importers
    from rtproof.report.campaign import Given

    found = importers.read(path)
    named = label or (f"{path.name}: {found.title}" if found.title else path.name)
    return Given(named, found.tool, found.count, found.min_ns, found.mean_ns, found.max_ns, found.notes)


def publish(found: Found, folder: Path, as_json: bool, made: "Sequence[Section]" = ()) -> None:
    """Print the result, then write the page, the table and the JSON. made: what page and table end with."""
    from rtproof import report
    from rtproof.report import campaign as page
    from rtproof.report.campaign.as_json import encode

    told = (found.profile, found.outcomes, found.article, found.more)
    title, whole, encoded = page.title(*told[:2]), [*page.sections(*told), *made], encode(*told)
    short = page.sections(*told, short=True)
    click.echo(encoded if as_json else report.render("text", title, short), nl=False)
    folder.mkdir(parents=True, exist_ok=True)
    results.write_new(folder / "report.html", report.render("html", title, whole))
    results.write_new(folder / "table.md", report.render("markdown", title, whole))
    results.write_new(folder / "result.json", encoded)
    click.echo(f"\nreport: {folder / 'report.html'}", err=as_json)
