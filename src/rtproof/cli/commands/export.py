# SPDX-License-Identifier: Apache-2.0
"""``rtproof export``: a run for other programs."""

import shutil
import sys
from pathlib import Path

import click

from rtproof import exporters
from rtproof.cli import shared_options
from rtproof.cli.shared_options import PATH, option
from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.core.plugins import checked_options
from rtproof.core.scratch import scratch_folder
from rtproof.report import formats

FORMATS = ", ".join(plugins.plugin_names(exporters))


@click.command("export")
@click.argument("run", type=PATH)
@option("--format name FORMAT", f"Format: {FORMATS}.", complete="export formats", required=True)
@option("-o --output FILE", "New file (default: beside RUN; - prints it).", PATH)
@option("--option options ...", "An option of --format; repeatable.", shared_options.KEY_VALUE)
def command(run: Path, name: str, output: Path | None, options: tuple[tuple[str, str], ...]) -> None:
    """Write a run's samples or histogram for other programs.

    RUN may also be another tool's histogram, for the formats that hold one.

    \b
    rtproof export RUN --format parquet
    rtproof export RUN --format bins --option width=2us --option count=2500
    """
    from rtproof.experiment import exported_files, stored_runs

    if name in plugins.plugin_names(formats) and name not in plugins.plugin_names(exporters):
        raise UserError(f"{name} is a format of reports: rtproof report {run} --format {name}")
    exporter = plugins.load_plugin(exporters, name)
    if output and str(output).partition("=")[0] in exporter.OPTIONS:
        raise UserError(f"-o names a file, and {output} is an option of the format {name}: write --option {output}")
    checked = checked_options(f"the format {name}", exporter.OPTIONS, options)
    if output == files.STANDARD_OUTPUT:
        if getattr(exporter, "BINARY", False) and sys.stdout.isatty():
            raise UserError(f"the format {name} is binary and standard output is a terminal: give a file or a pipe")
        analysis = exported_files.analysis_to_export(run, name)
        with scratch_folder() as folder:  # By way of a file, which some formats need.
            path = folder / f"exported{exporter.SUFFIX}"
            sentence = exporter.export(analysis, path, checked)
            with path.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        click.echo(sentence.replace(str(path), "standard output", 1), err=True)
        return
    path = output or files.free_path(stored_runs.path_beside(run, exporter.SUFFIX))
    click.echo(exporter.export(exported_files.analysis_to_export(run, name), path, checked))
