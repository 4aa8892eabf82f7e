# SPDX-License-Identifier: Apache-2.0
"""``rtproof history``: when did the latency of a system change, and what changed with it?"""

import shlex
from pathlib import Path
from typing import Any

import click

from rtproof.cli.shared_options import PATH, option, page_options


@click.command("history")
@click.argument("folders", metavar="RUN...", type=PATH, nargs=-1, required=True)
@option(
    "--order",
    "Sort the runs by their start (default) or by their names.",
    click.Choice(["start", "name"]),
    default="start",
)
@page_options("RUN")
@click.pass_context
def command(ctx: click.Context, /, folders: tuple[Path, ...], order: str, **values: Any) -> None:
    """Find the runs at which the latency of a system changed.

    Each RUN is a run folder, a record, another tool's histogram, or a folder that contains these. Runs are sorted by
    their start. At least 20 runs that measured alike are needed to look for changes; of fewer, only the figures are
    shown. The exit code is 0, or 2 if there is no run or one could not be read.

    \b
    rtproof history runs/nightly
    """
    from rtproof.experiment import run_sets

    page, form = run_sets.page_of_options(folders[0], "history", values)
    (side,) = run_sets.read_sides([("", "", folders)])
    typed = shlex.join(ctx.obj or ("rtproof", "history"))
    document = run_sets.history_document(side, typed, by_name=order == "name")
    run_sets.publish_page(document, page, form, as_json=values["as_json"])
    ctx.exit(run_sets.exit_code_of_sides([side]))
