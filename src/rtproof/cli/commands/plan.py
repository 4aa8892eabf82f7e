# SPDX-License-Identifier: Apache-2.0
"""``rtproof plan``: how long a verdict takes, before the first minute is measured."""

import json
from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import JSON_OPTION, LIMIT_OPTIONS, option, with_options


@click.command("plan")
@with_options(*LIMIT_OPTIONS)
@option("--episodes-so-far N", "Exceedances that were measured already.", click.IntRange(0, 1_000))
@option("--measured", "Time that was measured already.", shared_options.LENGTH_NS)
@JSON_OPTION
def command(episodes_so_far: int | None, measured: int | None, as_json: bool, **values: Any) -> None:
    """Say how long a run must be for a verdict on --limit.

    Nothing is measured. With several limits with --at-most each needs more time, because the confidence holds for all
    together.

    \b
    rtproof plan --limit 500us --shows 1/day
    rtproof plan --limit 500us --at-most 1/day
    rtproof plan --limit 500us --at-most 1/day --episodes-so-far 1 --measured 20h
    """
    from rtproof import report
    from rtproof.cli import option_values
    from rtproof.judge import planning
    from rtproof.report.pages import plan_page
    from rtproof.report.text_table import fitted_to_terminal
    from rtproof.schema.published import plan_dict

    requirements = option_values.take_requirements(values)
    if not requirements:
        raise click.UsageError("a plan needs a --limit, such as --limit 500us")
    if (episodes_so_far is None) != (measured is None):
        raise click.UsageError("--episodes-so-far and --measured belong together")
    if measured is not None and len(requirements) > 1:
        raise click.UsageError("--episodes-so-far is of one limit: give that one alone")
    plans = planning.plan_lengths(requirements, (episodes_so_far or 0, measured or 0))
    if as_json:
        click.echo(json.dumps(plan_dict(plans), indent=2))
        return
    with fitted_to_terminal():
        click.echo(report.render("text", "rtproof: plan", plan_page.plan_sections(plans)), nl=False)
