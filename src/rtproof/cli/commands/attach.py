# SPDX-License-Identifier: Apache-2.0
"""``rtproof attach``: take up a run that goes on on a board."""

from pathlib import Path

import click


@click.command("attach")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--report/--no-report", default=True, help="Write an HTML report beside the run folder (default).")
@click.pass_context
def command(ctx: click.Context, /, run: Path, *, report: bool) -> None:
    """Take up a run that goes on on a board, until it ends.

    RUN is the folder of a run that was begun with 'rtproof run --detach', or whose connection or host was lost. Its
    record is fetched, and the result is printed as 'rtproof run' would. The folder may have been copied to another
    host. The exit code is that of the verdict.

    \b
    rtproof run --target ssh --target-option host=board --duration 12h --detach
    rtproof attach runs/20261124T170000Z-board
    """
    from rtproof.experiment import target_runs

    ctx.exit(target_runs.attach(run, stop=False, report=report))
