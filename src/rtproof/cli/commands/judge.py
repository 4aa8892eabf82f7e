# SPDX-License-Identifier: Apache-2.0
"""``rtproof judge``: verdicts on several runs for continuous integration."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import LIMIT_OPTIONS, PATH, UNIT_OPTION, GroupedCommand, option, with_options
from rtproof.core.files import STANDARD_OUTPUT, refuse_existing


@click.command("judge", cls=GroupedCommand)
@click.argument("runs", metavar="RUN...", type=PATH, nargs=-1, required=True)
@with_options(*LIMIT_OPTIONS)
@option("--fixed-beforehand beforehand", "State that these limits are older than the runs.")
@option("--measured-for duration_ns", "State how long another tool measured.", shared_options.LENGTH_NS)
@option("--period period_ns", "State the period of another tool.", shared_options.LENGTH_NS)
@UNIT_OPTION
@option("--junit FILE", "New file in JUnit's format.", PATH)
@option("--markdown FILE", "New file in Markdown; - prints it.", PATH)
@option("--strict", "Make UNDECIDED a failure in JUnit's format.")
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
    from rtproof.judge.verdict import LIMIT_STATED
    from rtproof.report.pages import ci_verdicts
    from rtproof.report.text_table import fitted_to_terminal

    junit, markdown = values.pop("junit"), values.pop("markdown")
    later = option_values.take_requirements(values)
    if beforehand and not later:
        raise click.UsageError("--fixed-beforehand speaks of a --limit, and none is given")
    for path in (junit, markdown):
        if path and path != STANDARD_OUTPUT:
            refuse_existing(path)
    rows = run_sets.judge_runs(runs, later, beforehand=beforehand, **values)
    if junit:
        stored_runs.write_new_file(junit, ci_verdicts.ci_junit(rows, strict=strict))
    page = ci_verdicts.ci_markdown(rows, LIMIT_STATED if beforehand else "") if markdown else b""
    if markdown and markdown != STANDARD_OUTPUT:
        stored_runs.write_new_file(markdown, page)
    with fitted_to_terminal():
        click.echo(page if markdown == STANDARD_OUTPUT else ci_verdicts.ci_text(rows), nl=False)
    ctx.exit(ci_verdicts.worst_exit_code(rows))
