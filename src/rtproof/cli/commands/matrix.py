# SPDX-License-Identifier: Apache-2.0
"""``rtproof matrix``: the results of several profiles as one table of boards and kernels."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtproof.cli import shell_completion
from rtproof.core import files
from rtproof.core.errors import UserError

if TYPE_CHECKING:
    from rtproof.report.pages.matrix_page import MatrixRun


PATH = click.Path(path_type=Path)
RESULT = "result.json"
TITLE = "rtproof: boards and kernels"


@click.command("matrix")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    default="text",
    metavar="NAME",
    shell_complete=shell_completion.complete_report_formats,
    help="html, markdown, text (default) or json.",
)
@click.option("--output", type=PATH, metavar="FILE", help="New file for it (default: standard output).")
def command(folders: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Lay the results of several profiles side by side: the largest latency of each board with each kernel.

    FOLDER is what 'rtproof run --profile' or 'rtproof lab profile' left, or its result.json. Boards are told apart by
    name and kernel; what the articles published stands below, and the command of each run under the matrix.

    \b
    rtproof matrix runs/*bootlin-gpio runs/*bootlin-timer runs/*bootlin-xenomai
    """
    from rtproof import report
    from rtproof.experiment import stored_runs
    from rtproof.report.pages import matrix_page

    if output:
        files.refuse_existing(output)
    runs = [run for folder in folders for run in _read(folder)]
    drawn = report.render(form, TITLE, matrix_page.matrix_sections(runs))
    if output:
        stored_runs.write_new_file(output, drawn)
        click.echo(output)
    else:
        click.echo(drawn, nl=False)


def _read(folder: Path) -> "list[MatrixRun]":
    """UserError with the file's name for one that is missing or something else."""
    from rtproof.report.pages import matrix_page

    path = folder / RESULT if folder.is_dir() else folder
    files.refuse_what_waits(path)
    try:
        told = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise UserError(f"{path} is no JSON") from None
    try:
        return matrix_page.read_matrix_run(told)
    except UserError as problem:
        raise UserError(f"{path} {problem}") from None
