# SPDX-License-Identifier: Apache-2.0
"""``rtproof watch``: the live view of a run that another process makes."""

from pathlib import Path

import click

from rtproof.cli.shared_options import PATH


@click.command("watch")
@click.argument("run", metavar="[RUN]", type=PATH, required=False)
@click.pass_context
def command(ctx: click.Context, /, run: Path | None) -> None:
    """Watch a run that is going on, from another terminal.

    RUN is the folder or the record of a run that 'rtproof run' or the agent is making on this machine. Without it, the
    runs that are going on are listed.

    The command only reads, once a second. Ctrl-C ends the watching and not the run. When the run has ended, its result
    is printed, and the exit code is that of the verdict.

    \b
    rtproof watch
    rtproof watch runs/20261123T193806Z-vm
    """
    from rtproof.experiment import watched_run

    ctx.exit(watched_run.watch(run) if run else watched_run.list_running())
