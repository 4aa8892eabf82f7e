# SPDX-License-Identifier: Apache-2.0
"""``rtproof judge``: verdicts on several runs for continuous integration."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types
from rtproof.cli.grouped_help import GroupedCommand
from rtproof.cli.measurement_options import LIMIT_OPTIONS, UNIT_OPTION
from rtproof.cli.parameter_types import with_options
from rtproof.core.files import STANDARD_OUTPUT, refuse_existing

PATH = click.Path(path_type=Path)


@click.command("judge", cls=GroupedCommand)
@click.argument("runs", metavar="RUN...", type=PATH, nargs=-1, required=True)
@with_options(*LIMIT_OPTIONS)
@click.option(
    "--fixed-beforehand",
    "beforehand",
    is_flag=True,
    help="State that these limits are older than the runs.",
)
@click.option(
    "--measured-for",
    "duration_ns",
    type=parameter_types.LENGTH_NS,
    help="State how long another tool measured.",
)
@click.option(
    "--period",
    "period_ns",
    type=parameter_types.LENGTH_NS,
    help="State the period of another tool.",
)
@UNIT_OPTION
@click.option("--junit", type=PATH, metavar="FILE", help="New file in JUnit's format.")
@click.option("--markdown", type=PATH, metavar="FILE", help="New file in Markdown; - prints it.")
@click.option("--strict", is_flag=True, help="Make UNDECIDED a failure in JUnit's format.")
@click.pass_context
def command(ctx: click.Context, /, runs: tuple[Path, ...], beforehand: bool, strict: bool, **values: Any) -> None:
    """Judge stored runs by a limit, such as in CI.

    Each RUN is a run folder, a record, a folder that contains these, or a histogram of another tool. A run is judged by
    the limits that it was given before it began, or by each --limit given here. A limit with --at-most given here was
    chosen after the data, so the verdict is UNDECIDED, unless --fixed-beforehand states that the limit is older.

    The exit code is the first of these that is true: 2 a run could not be read, 3 a run is INVALID, 1 a run is EXCEEDED
    or REFUTED, 4 a run is UNDECIDED, 0 all runs are HELD or PROVEN.

    \b
    rtproof judge runs/ --junit rtproof.xml --markdown - >> "$GITHUB_STEP_SUMMARY"
    """
    from rtproof.cli import option_values
    from rtproof.experiment import run_sets, stored_runs
    from rtproof.report.pages import ci_verdicts
    from rtproof.report.text_table import fitted_to_terminal

    junit, markdown = values.pop("junit"), values.pop("markdown")
    later = option_values.take_requirements(values)
    if beforehand and not later:
        raise click.UsageError("--fixed-beforehand speaks of a --limit, and none is given")
    for path in (junit, markdown):
        if path and path != STANDARD_OUTPUT:
            refuse_existing(path)
    stated = run_sets.StatedByUser(beforehand, values.pop("duration_ns"), values.pop("period_ns"), values.pop("unit"))
    rows = run_sets.judge_runs(runs, later, stated)
    if junit:
        stored_runs.write_new_file(junit, ci_verdicts.ci_junit(rows, strict=strict))
    page = run_sets.verdict_markdown(rows, stated=beforehand) if markdown else b""
    if markdown and markdown != STANDARD_OUTPUT:
        stored_runs.write_new_file(markdown, page)
    with fitted_to_terminal():
        click.echo(page if markdown == STANDARD_OUTPUT else ci_verdicts.ci_text(rows), nl=False)
    ctx.exit(ci_verdicts.worst_exit_code(rows))
