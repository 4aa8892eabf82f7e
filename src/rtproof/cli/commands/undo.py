# SPDX-License-Identifier: Apache-2.0
"""``rtproof undo``: restore what a killed run or tuning left."""

from pathlib import Path

import click

from rtproof.cli.shared_options import target_options


@click.command("undo")
@target_options("restore settings")
@click.pass_context
def command(ctx: click.Context, /, target: str, target_option: tuple[tuple[str, str], ...], agent: Path | None) -> None:
    """Restore the settings that a killed run left changed.

    Every run restores its own settings when it ends, also after a kill of its agent: a second process, the keeper, does
    it. If both were killed, the target's disk has a journal of the changes, and this command restores from it. A value
    that somebody else has set since stays, and is named.

    The exit code is 0, 1 if something could not be restored, or 2 for an error.
    """
    from rtproof.experiment import target_runs, tuning_runs

    with target_runs.open_named_target(target, target_option) as opened:
        ctx.exit(tuning_runs.undo(opened, agent))
