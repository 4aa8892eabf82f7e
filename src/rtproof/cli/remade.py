# SPDX-License-Identifier: Apache-2.0
"""A campaign read again from its folder, for ``rtproof show`` and ``rtproof report``: the page as the run wrote it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof.cli import campaignpage, results
from rtproof.cli.campaign import CELLS
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Analysis
    from rtproof.cli.campaignfile import Campaign, Cell
    from rtproof.profiles import CellPlan
    from rtproof.report.campaign import Outcome

NAME = "campaign.json"
RECORD = "run.rtrec"
HTML = "html"
STANDARD_OUTPUT = Path("-")
NEVER = "not measured: the campaign ended before"
CUT = "the campaign ended while it was measured, so its row is missing here; 'rtproof show' tells of its folder"


def is_campaign(path: Path) -> bool:
    """Whether it is a campaign's folder, or what was left of one, and no run."""
    return not (path / RECORD).exists() and any((path / name).exists() for name in (NAME, CELLS))


def refuse_options(**given: object) -> None:
    """UsageError for what has a meaning for one run only."""
    if any(given.values()):
        raise click.UsageError("--limit and --horizon are for one run: give the folder of a cell")


def read(folder: Path, percentiles: tuple[float, ...] = ()) -> campaignpage.Found:
    """UserError or RecordError with one sentence where the folder is not as the run left it.

    percentiles: wanted besides those that the run was asked for.
    """
    from rtproof.cli import campaignfile
    from rtproof.report import campaign as page

    if not (folder / NAME).exists():
        cell = folder / CELLS / "KEY"
        raise UserError(
            f"{folder} has no {NAME}, so its page can't be made again; 'rtproof show {cell}' tells of a cell"
        )
    campaign = campaignfile.read(folder)
    told = {cell.key: cell for cell in campaign.cells}
    shares = tuple(dict.fromkeys((*campaign.percentiles, *percentiles)))
    outcomes = [_outcome(folder, campaign, plan, told.get(plan.key), shares) for plan in campaign.profile.cells]
    return campaignpage.Found(campaign.profile, outcomes, campaign.article, page.More(campaign.given, campaign.command))


def _outcome(
    folder: Path, campaign: "Campaign", plan: "CellPlan", cell: "Cell | None", shares: tuple[float, ...]
) -> "Outcome":
    from rtproof.report.campaign import Outcome

    place = folder / CELLS / plan.key
    if cell is None:
        return Outcome(campaign.system, plan, failure=CUT if place.exists() else NEVER)
    way = None if cell.way is None else plan.ways[cell.way]
    passed = tuple(zip(plan.ways, cell.refused, strict=False))
    link = f"{CELLS}/{plan.key}.html"
    return Outcome(
        campaign.system,
        plan,
        _read(place, cell.sha256, shares) if cell.sha256 else None,
        way,
        passed,
        cell.failure,
        link if cell.report and (folder / link).exists() else "",
        cell.files,
    )


def _read(run: Path, sha256: str, shares: tuple[float, ...]) -> "Analysis":
    from rtproof.cli import campaignfile

    if campaignfile.digest(run) != sha256:
        raise UserError(f"{run} is no longer what the campaign measured; 'rtproof show {run}' tells what is there now")
    return results.read_run(run, percentiles=shares).analysis


def report(found: campaignpage.Found, folder: Path, form: str, output: Path | None) -> None:
    """Write the page, the table and the JSON where they are missing; with an output, or another form, this one alone.

    Links to the reports of cells are left out of a file elsewhere. UserError if nothing is missing.
    """
    if output is not None:
        _write_elsewhere(found, folder, form, output)
        return
    forms = {name: each for name, each in campaignpage.FORMS.items() if form in (each, HTML)}
    lack = {name: each for name, each in forms.items() if not (folder / name).exists()}
    if not forms:
        raise UserError(f"a campaign's folder keeps no {form}: say where with --output")
    if not lack:
        said = f"{folder} has its {', '.join(forms)} already: nothing is ever written over"
        raise UserError(f"{said}, so move them, or give --output")
    campaignpage.write(found, folder, lack)
    for name in lack:
        click.echo(folder / name)


def _write_elsewhere(found: campaignpage.Found, folder: Path, form: str, output: Path) -> None:
    if output == STANDARD_OUTPUT:
        click.echo(found.drawn(form), nl=False)
        return
    if output.parent.resolve() != folder.resolve():
        found = replace(found, outcomes=[replace(each, link="") for each in found.outcomes])
    results.write_new(output, found.drawn(form))
    click.echo(output)
