# SPDX-License-Identifier: Apache-2.0
"""``rtproof matrix``: the results of several profiles as one table of boards and kernels."""

from pathlib import Path

import click

from rtproof.cli import shell_completion
from rtproof.core import files

PATH = click.Path(path_type=Path)


@click.command("matrix")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    default="text",
    metavar="NAME",
    shell_complete=shell_completion.complete_report_formats,
    help="Format: html, markdown, text (default) or json.",
)
@click.option("--output", type=PATH, metavar="FILE", help="New file for the table (default: standard output).")
def command(folders: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Show the results of several profiles in one table: the largest latency of each board with each kernel.

    FOLDER is what 'rtproof run --profile' or 'rtproof lab profile' left, or its result.json. A board has one row for
    each kernel. Below are the figures that the articles published, and under the table the command of each run.

    \b
    rtproof matrix runs/*bootlin-gpio runs/*bootlin-timer runs/*bootlin-xenomai
    """
    from rtproof.experiment import campaign_folder, stored_runs

    if output:
        files.refuse_existing(output)
    drawn = campaign_folder.draw_matrix(folders, form)
    if output:
        stored_runs.write_new_file(output, drawn)
        click.echo(output)
    else:
        click.echo(drawn, nl=False)
