# SPDX-License-Identifier: Apache-2.0
"""``rtproof matrix``: several profiles, or several runs, as one table of boards and kernels."""

from pathlib import Path

import click

from rtproof.cli.shared_options import PATH, format_option, option
from rtproof.core import files


@click.command("matrix")
@click.argument("folders", metavar="RUN...", type=PATH, nargs=-1, required=True)
@format_option("text")
@option("-o --output FILE", "New file for the page (default: print it).", PATH)
@click.pass_context
def command(ctx: click.Context, /, folders: tuple[Path, ...], form: str | None, output: Path | None) -> None:
    """Show boards and kernels side by side.

    The table has the largest latency of each board and kernel, under each load.

    RUN is what 'rtproof run --profile' or 'rtproof lab profile' left, or its result.json; or a run, a record, the
    output of another tool, or a folder of such runs. A board has one row for each kernel. Below the table are the
    curves of the runs, and the figures that an article published if a profile repeats it. The exit code is 0, or 2 if a
    run could not be read.

    \b
    rtproof matrix runs/*bootlin-gpio runs/*bootlin-timer runs/*bootlin-xenomai
    rtproof matrix runs/rt runs/stock --format html --output kernels.html
    """
    from rtproof.experiment import campaign_folder, stored_runs

    if output:
        files.refuse_existing(output)
    drawn, code = campaign_folder.draw_matrix(folders, stored_runs.form_of(form, output, "text"))
    if output:
        stored_runs.write_new_file(output, drawn)
        click.echo(output)
    else:
        click.echo(drawn, nl=False)
    ctx.exit(code)
