# SPDX-License-Identifier: Apache-2.0
"""``rtproof stop``: end a run that a board still measures."""

from pathlib import Path

import click

from rtproof.cli.shared_options import PATH, REPORT_OPTION, option


@click.command("stop")
@click.argument("run", type=PATH, metavar="RUN")
@REPORT_OPTION
@option("--trust", "Run what the folder names, whoever wrote it.")
@click.pass_context
def command(ctx: click.Context, /, run: Path, *, report: bool, trust: bool) -> None:
    """End a run on a board early, and fetch what it has measured.

    RUN is the run's folder on this computer. The run was begun with 'rtproof run --detach', or the connection to the
    board broke, or this computer was switched off. The run ends as with Ctrl-C, the result is printed, and the exit
    code is that of the verdict. The folder names the programs that reach the board; see 'rtproof attach'.

    \b
    rtproof stop runs/20261124T170000Z-board
    """
    from rtproof.experiment import target_runs

    ctx.exit(target_runs.attach(run, stop=True, report=report, trust=trust))
