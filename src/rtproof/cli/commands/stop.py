# SPDX-License-Identifier: Apache-2.0
"""``rtproof stop``: end a run that goes on on a board."""

from pathlib import Path

import click


@click.command("stop")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--report/--no-report", default=True, help="Write an HTML report beside the run folder (default).")
@click.pass_context
def command(ctx: click.Context, /, run: Path, *, report: bool) -> None:
    """End a run that goes on on a board, and fetch what it has measured.

    RUN is the folder of the run. The agent is asked to finish, as with Ctrl-C, and the result is printed.

    \b
    rtproof stop runs/20261124T170000Z-board
    """
    from rtproof.experiment import target_runs

    ctx.exit(target_runs.attach(run, stop=True, report=report))
