# SPDX-License-Identifier: Apache-2.0
"""``rtproof report``: a run as a document."""

import sys
from pathlib import Path
from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import PATH, GroupedCommand, option, with_options


@click.command("report", cls=GroupedCommand)
@click.argument("run", type=PATH)
@with_options(*shared_options.LIMIT_OPTIONS, shared_options.HORIZON_OPTION, shared_options.PERCENTILE_OPTION)
@option(
    "--format name FORMAT",
    "Format: html (default), summary, markdown, text, svg, png.",
    complete="report formats",
)
@shared_options.SECTION_OPTION
@option("-o --output FILE", "New file (default: beside RUN; - prints it).", PATH)
def command(
    run: Path,
    percentiles: tuple[float, ...],
    name: str | None,
    sections: tuple[str, ...],
    output: Path | None,
    **values: Any,
) -> None:
    """Write the report of a run as HTML, Markdown or text.

    The HTML file needs no network. Without --format, the ending of FILE chooses it. The format summary is one page of
    A4 for people who decide. The formats svg and png hold the plots alone: those of the first screen, or those of one
    --section. All three need matplotlib (pip install 'rtproof[plot]').

    \b
    rtproof report RUN --output figure.svg --section histogram

    RUN is a run folder, a record that was copied from a target, or a histogram of another tool. RUN may also be the
    folder that 'rtproof run --profile' left: then a missing page, table or JSON is written again, or with
    --section and --output a part of the page.
    """
    from rtproof.cli import option_values
    from rtproof.experiment import stored_runs

    later, horizon = option_values.take_requirements(values), values.pop("horizon")
    if stored_runs.is_campaign(run):
        from rtproof.experiment import campaign_folder

        campaign_folder.refuse_options_of_one_run(later=later, horizon=horizon)
        is_json = name is None and output is not None and output.suffix == ".json"
        form = "json" if is_json else stored_runs.form_of(name, output, "html")
        campaign_folder.write_missing_pages(
            campaign_folder.read_campaign(run, percentiles), run, form, output, sections
        )
        return
    form = stored_runs.form_of(name, output, "html")
    path = output or stored_runs.report_path(run, form)
    drawn = stored_runs.read_run(run, later, percentiles, horizon=horizon).report(form, only=sections)
    if path == Path("-"):
        if form == "png" and sys.stdout.isatty():
            raise click.UsageError("a picture is no text for a terminal: give --output FILE")
        click.echo(drawn, nl=False)
        return
    stored_runs.write_new_file(path, drawn)
    click.echo(path)
