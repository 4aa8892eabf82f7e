# SPDX-License-Identifier: Apache-2.0
"""``rtproof show``: what a run says."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import campaignpage, histograms, remade, results
from rtproof.cli.horizon import horizon_options, take_horizon
from rtproof.cli.requirement import PERCENTILES, requirement_options, take_requirements


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@requirement_options
@horizon_options
@PERCENTILES
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(ctx: click.Context, /, run: Path, percentiles: tuple[float, ...], as_json: bool, **values: Any) -> None:
    """Print the verdict and the numbers of a run.

    RUN is a run folder, a record that was copied from a target, a histogram that another tool printed (cyclictest), of
    which is said what it carries without time order, or the folder that 'rtproof run --profile' left, whose page is
    printed. The exit code is that of the verdict. A --limit that was not given to rtproof run was chosen after the
    data, so it decides nothing.
    """
    later, horizon = take_requirements(values), take_horizon(values)
    if remade.is_campaign(run):
        remade.refuse_options(later=later, horizon=horizon)
        found = remade.read(run, percentiles)
        campaignpage.show(found, as_json)
        ctx.exit(found.exit_code)
    given = histograms.recognised(run)
    if given:
        told = histograms.say(given, later, percentiles)
        histograms.show(told, as_json)
        ctx.exit(told.exit_code)
    result = results.read_run(run, later, percentiles, horizon=horizon)
    results.show(result, as_json)
    ctx.exit(result.exit_code)
