# SPDX-License-Identifier: Apache-2.0
"""The options of the commands that make a page of several runs, and where that page goes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rtproof.cli import shell_completion
from rtproof.cli.lab_options import with_options
from rtproof.core import files

PATH = click.Path(path_type=Path)
STANDARD_OUTPUT = Path("-")
Command = Callable[..., Any]


def page_options(beside: str) -> Callable[[Command], Command]:
    """output, form, report and as_json. beside: the name of the argument that the page goes beside."""
    return with_options(
        click.option(
            "--output",
            type=PATH,
            metavar="FILE",
            help=f"New file for the page (default: beside {beside}); - for standard output.",
        ),
        click.option(
            "--format",
            "form",
            default="html",
            metavar="NAME",
            shell_complete=shell_completion.complete_report_formats,
            help="Of the page: html (default), markdown, text or json.",
        ),
        click.option("--report/--no-report", default=True, help="Write the page (default)."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )


def page_path(first: Path, word: str, values: dict[str, Any]) -> Path | None:
    """Where the page goes, known to be free before anything is read; None if none is wanted.

    word: what tells it from the report of the run that it lies beside.
    """
    from rtproof.experiment import stored_runs

    output: Path | None = values["output"]
    if not values["report"] and output is None:
        return None
    if output == STANDARD_OUTPUT:
        return output
    beside = stored_runs.report_path(first, values["form"])
    page = output or beside.with_name(f"{beside.stem}-{word}{beside.suffix}")
    files.refuse_existing(page)
    return page
