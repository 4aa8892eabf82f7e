# SPDX-License-Identifier: Apache-2.0
"""``rtproof attach``: follow a run on a board again."""

from pathlib import Path

import click

from rtproof.cli.shared_options import PATH, REPORT_OPTION, option


@click.command("attach")
@click.argument("run", type=PATH, metavar="RUN")
@REPORT_OPTION
@option("--trust", "Run what the folder names, whoever wrote it.")
@click.pass_context
def command(ctx: click.Context, /, run: Path, *, report: bool, trust: bool) -> None:
    """Follow a run on a board again, until it ends, and fetch it.

    RUN is the run's folder on this computer. The run was begun with 'rtproof run --detach', or the connection to the
    board broke, or this computer was switched off; the board has gone on measuring. The result is printed as 'rtproof
    run' prints it, and the exit code is that of the verdict. To go on from another computer, copy the folder there.

    The folder names the programs that reach the board. If another user or computer began the run, --trust is
    needed, and the refusal says what would be run.

    \b
    rtproof run --target ssh --target-option host=board --duration 12h --detach
    rtproof attach runs/20261124T170000Z-board
    """
    from rtproof.experiment import target_runs

    ctx.exit(target_runs.attach(run, stop=False, report=report, trust=trust))
