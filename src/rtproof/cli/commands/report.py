# SPDX-License-Identifier: Apache-2.0
"""``rtproof report``: a run as a document."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import complete, histograms, remade, results
from rtproof.cli.horizon import horizon_options, take_horizon
from rtproof.cli.requirement import PERCENTILES, requirement_options, take_requirements


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@requirement_options
@horizon_options
@PERCENTILES
@click.option(
    "--format",
    "name",
    default="html",
    metavar="NAME",
    shell_complete=complete.report_formats,
    help="html (default), markdown, text or json.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="New file (default: beside RUN); - for stdout."
)
def command(run: Path, percentiles: tuple[float, ...], name: str, output: Path | None, **values: Any) -> None:
    """Write the report of a run: one HTML file that needs no network, or Markdown, text or JSON.

    RUN is a run folder, a record that was copied from a target, or a histogram of another tool; of the folder that
    'rtproof run --profile' left, the page, the table and the JSON are written again where they are missing.
    """
    later, horizon = take_requirements(values), take_horizon(values)
    if remade.is_campaign(run):
        remade.refuse_options(later=later, horizon=horizon)
        remade.report(remade.read(run, percentiles), run, name, output)
        return
    path = output or results.report_path(run, name)
    foreign = histograms.recognised(run)
    if foreign:
        drawn = histograms.say(foreign, later, percentiles).report(name)
    else:
        drawn = results.read_run(run, later, percentiles, horizon=horizon).report(name)
    if path == Path("-"):
        click.echo(drawn, nl=False)
        return
    results.write_new(path, drawn)
    click.echo(path)
