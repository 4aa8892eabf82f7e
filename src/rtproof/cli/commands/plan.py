# SPDX-License-Identifier: Apache-2.0
"""``rtproof plan``: how long a verdict takes, before the first minute is measured."""

import json
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import parameter_types
from rtproof.cli.measurement_options import requirement_options, take_requirements

if TYPE_CHECKING:
    from rtproof.judge.analysis_model import Requirement
    from rtproof.judge.planning import LengthPlan


@click.command("plan")
@requirement_options
@click.option(
    "--episodes-so-far", type=click.IntRange(0, 1_000), metavar="N", help="Episodes that were measured already."
)
@click.option("--measured", type=parameter_types.LENGTH_NS, help="... in this time, such as 20h.")
@click.option(
    "--rate",
    "rates",
    type=parameter_types.AT_MOST_NS,
    multiple=True,
    help="A true rate to tell the chances of, such as 1/week; may be repeated (default: some multiples of --at-most).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    episodes_so_far: int | None, measured: int | None, rates: tuple[int, ...], as_json: bool, **values: Any
) -> None:
    """Tell how long a run has to be for a verdict on --limit, and what comes of it at some true rates.

    Nothing is measured. With several limits each needs more, because all verdicts together are to be right.

    \b
    rtproof plan --limit 500us --at-most 1/day
    rtproof plan --limit 500us --at-most 1/day --episodes-so-far 1 --measured 20h --rate 1/7d
    """
    requirements = take_requirements(values)
    if not requirements:
        raise click.UsageError("a plan needs a --limit, such as --limit 500us --at-most 1/day")
    if (episodes_so_far is None) != (measured is None):
        raise click.UsageError("--episodes-so-far and --measured belong together")
    if measured is not None and len(requirements) > 1:
        raise click.UsageError("--episodes-so-far is of one limit: give that one alone")
    plans = [_plan(each, len(requirements), (episodes_so_far or 0, measured or 0), rates) for each in requirements]
    click.echo(_encoded(plans) if as_json else _drawn(plans), nl=as_json)


def _plan(requirement: "Requirement", limits: int, so_far: tuple[int, int], rates: tuple[int, ...]) -> "LengthPlan":
    from rtproof.judge import planning

    wanted = tuple(requirement.at_most_ns / each for each in rates) or planning.RATES
    return planning.plan_length(requirement, limits, so_far, wanted)


def _drawn(plans: "list[LengthPlan]") -> str:
    from rtproof import report
    from rtproof.report.pages import histogram_page

    return report.render("text", "rtproof: plan", histogram_page.plan_sections(plans)).decode()


def _encoded(plans: "list[LengthPlan]") -> str:
    from rtproof.schema.plan_json import plan_dict

    return json.dumps(plan_dict(plans), indent=2)
