# SPDX-License-Identifier: Apache-2.0
"""``rtproof export``: a run for other programs."""

import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from rtproof import exporters, plugins
from rtproof.cli import complete, results, types
from rtproof.cli.options import checked_options
from rtproof.errors import UserError

if TYPE_CHECKING:
    from rtproof.analysis.model import Analysis

STANDARD_OUTPUT = Path("-")
FORMATS = ", ".join(plugins.names(exporters))


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "name",
    required=True,
    metavar="NAME",
    shell_complete=complete.export_formats,
    help=f"One of: {FORMATS}.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="New file (default: beside RUN); - for stdout."
)
@click.option("-o", "--option", "options", type=types.KEY_VALUE, multiple=True, help="An option of the format.")
def command(run: Path, name: str, output: Path | None, options: tuple[tuple[str, str], ...]) -> None:
    """Write the samples or the histogram of a run for other programs.

    \b
    rtproof export RUN --format parquet
    rtproof export RUN --format bins -o width=2us -o count=2500
    """
    exporter = plugins.load(exporters, name)
    checked = checked_options(f"the format {name}", exporter.OPTIONS, options)
    if output == STANDARD_OUTPUT:
        if getattr(exporter, "BINARY", False) and sys.stdout.isatty():
            raise UserError(f"the format {name} is binary and standard output is a terminal: give a file or a pipe")
        _to_standard_output(exporter, results.read_run(run).analysis, checked)
        return
    path = output or results.beside(run, exporter.SUFFIX)
    click.echo(exporter.export(results.read_run(run).analysis, path, checked))


def _to_standard_output(exporter: ModuleType, analysis: "Analysis", options: dict[str, str]) -> None:
    """By way of a file, which some formats need; the sentence goes to standard error."""
    with tempfile.TemporaryDirectory(prefix="rtproof-") as folder:
        path = Path(folder) / f"exported{exporter.SUFFIX}"
        sentence: str = exporter.export(analysis, path, options)
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    click.echo(sentence.replace(str(path), "standard output", 1), err=True)
