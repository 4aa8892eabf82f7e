# SPDX-License-Identifier: Apache-2.0
"""``rtproof watch``: the live view of a run that another process makes."""

import click


@click.command("watch")
@click.argument("what", metavar="[RUN|TARGET]", required=False)
@click.pass_context
def command(ctx: click.Context, /, what: str | None) -> None:
    """Watch a run that is going on, from another terminal.

    RUN is the folder or the record of a run that 'rtproof run' or the agent is making on this machine. TARGET is the
    name of a target, such as local, on which one run is going on. Without either, the runs that are going on are
    listed.

    The command only reads, once a second. Ctrl-C ends the watching and not the run. When the run has ended, its result
    is printed, and the exit code is that of the verdict.

    \b
    rtproof watch
    rtproof watch runs/20261123T193806Z-vm
    """
    from rtproof.experiment import watched_run

    ctx.exit(watched_run.watch(what) if what else watched_run.list_running())
