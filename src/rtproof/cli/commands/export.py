# SPDX-License-Identifier: Apache-2.0
"""``rtproof export``: a run for other programs."""

from pathlib import Path

import click

from rtproof import exporters, plugins
from rtproof.cli import complete, results, types
from rtproof.cli.options import checked_options

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
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="New file (default: beside RUN).")
@click.option("-o", "--option", "options", type=types.KEY_VALUE, multiple=True, help="An option of the format.")
def command(run: Path, name: str, output: Path | None, options: tuple[tuple[str, str], ...]) -> None:
    """Write the samples or the histogram of a run for other programs.

    \b
    rtproof export RUN --format parquet
    rtproof export RUN --format bins -o width=2us -o count=2500
    """
    exporter = plugins.load(exporters, name)
    checked = checked_options(f"the format {name}", exporter.OPTIONS, options)
    path = output or results.beside(run, exporter.SUFFIX)
    click.echo(exporter.export(results.read_run(run).analysis, path, checked))
