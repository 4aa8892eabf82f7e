# SPDX-License-Identifier: Apache-2.0
"""``rtproof run``: measure, judge, report."""

from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import GroupedCommand, option, with_options


@click.command(
    "run",
    cls=GroupedCommand,
    most_used=(
        *("--limit", "--duration", "--until-decided", "--load", "--explain"),
        *("--cpus", "--period", "--priority", "--target", "--output"),
    ),
)
@with_options(
    *shared_options.AGENT_OPTIONS,
    *shared_options.LIMIT_OPTIONS,
    *shared_options.UNTIL_OPTIONS,
    shared_options.PERCENTILE_OPTION,
    *shared_options.PROFILE_OPTIONS,
    shared_options.EXPLAIN_OPTION,
    shared_options.OBSERVER_OPTION,
    *shared_options.REPEAT_OPTIONS,
)
@shared_options.folder_option("the run")
@shared_options.JSON_OPTION
@option("-v --verbose shown", "Print tables instead of the summary.", flag_value="tables", default="summary")
@option("-q --quiet shown", "Print the verdict alone.", flag_value="verdict")
@shared_options.REPORT_OPTION
@option("--note TEXT", "Keep a note with the run.", default="")
@shared_options.target_options("measure")
@option("--detach", "Return at once; 'rtproof attach' follows the run.")
@option("--stream", "Fetch the record while it grows in the board's RAM.")
@with_options(*shared_options.GENERATOR_OPTIONS)
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

    ctx.exit(target_runs.run_requested(option_values.take_run_request(values, ctx.obj or ("rtproof", "run"))))
