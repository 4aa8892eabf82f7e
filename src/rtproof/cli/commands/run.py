# SPDX-License-Identifier: Apache-2.0
"""``rtproof run``: measure, judge, report."""

from typing import Any

import click

from rtproof.cli import parameter_types
from rtproof.cli.experiment_options import GENERATOR_OPTIONS, PROFILE_OPTIONS, REPEAT_OPTIONS, target_options
from rtproof.cli.grouped_help import GroupedCommand
from rtproof.cli.measurement_options import (
    AGENT_OPTIONS,
    EXPLAIN_OPTION,
    LIMIT_OPTIONS,
    OBSERVER_OPTION,
    PERCENTILE_OPTION,
    UNTIL_OPTIONS,
)
from rtproof.cli.parameter_types import with_options


@click.command(
    "run",
    cls=GroupedCommand,
    most_used=(
        *("--limit", "--duration", "--until-decided", "--load", "--explain"),
        *("--cpus", "--period", "--priority", "--target", "--output"),
    ),
)
@with_options(
    *AGENT_OPTIONS,
    *LIMIT_OPTIONS,
    *UNTIL_OPTIONS,
    PERCENTILE_OPTION,
    *PROFILE_OPTIONS,
    EXPLAIN_OPTION,
    OBSERVER_OPTION,
    *REPEAT_OPTIONS,
)
@parameter_types.folder_option("the run")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "-v",
    "--verbose",
    "shown",
    flag_value="tables",
    default="summary",
    help="Print tables instead of the summary.",
)
@click.option("-q", "--quiet", "shown", flag_value="verdict", help="Print the verdict alone.")
@click.option("--report/--no-report", default=True, help="Write an HTML report (default).")
@click.option("--note", default="", metavar="TEXT", help="Keep a note with the run.")
@target_options("measure")
@click.option(
    "--detach",
    is_flag=True,
    help="Return at once; 'rtproof attach' follows the run.",
)
@click.option(
    "--stream",
    is_flag=True,
    help="Fetch the record while it grows in the board's RAM.",
)
@with_options(*GENERATOR_OPTIONS)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Measure how late a system reacts, and judge it.

    The command leaves a run folder with everything that was measured. With --limit it says whether the limit holds, and
    so does the exit code: 0 HELD, PROVEN or no limit given, 1 EXCEEDED or REFUTED, 2 usage or tool error, 3 INVALID, 4
    UNDECIDED. Ctrl-C ends the run early and keeps what was measured.

    \b
    rtproof run --duration 20s --load sched --limit 500us
    rtproof run --duration 60s --limit 200us --explain
    rtproof run --until-decided --limit 500us --shows 1/day
    rtproof run --until-decided --max-duration 12h --limit 500us --at-most 1/h
    rtproof run --profile akamina --duration 20s
    rtproof run --abba '--policy fifo' '--policy rr' --repeat 5 --duration 60s
    rtproof run --target ssh --target-option host=BOARD --probe gpio:chip=0,in=3,out=2 --period 30ms \\
        --generator ssh --generator-option host=OTHER --generator-lines chip=0,in=5,out=6
    """
    from rtproof.cli import option_values
    from rtproof.experiment import target_runs
    from rtproof.experiment.run_request import ProfileRequest, SeriesRequest

    asked, wanted = option_values.take_run_request(values, ctx.obj or ("rtproof", "run"))
    if isinstance(wanted, ProfileRequest):
        ctx.exit(target_runs.run_profile(asked, wanted))
    if isinstance(wanted, SeriesRequest):
        ctx.exit(target_runs.run_several(asked, wanted))
    ctx.exit(target_runs.run_once(asked, wanted))
