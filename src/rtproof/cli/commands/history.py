# SPDX-License-Identifier: Apache-2.0
"""``rtproof history``: when did the latency of a system change, and what changed with it?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof import files
from rtproof.cli import comparing, complete
from rtproof.cli.results import beside

if TYPE_CHECKING:
    from rtproof.analysis.comparison.figures import RunFigures

PATH = click.Path(path_type=Path)
STANDARD_OUTPUT = Path("-")


@click.command("history")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option(
    "--order",
    type=click.Choice(["start", "name"]),
    default="start",
    help="Order of the runs: of their start (default), or of their names.",
)
@click.option(
    "--output", type=PATH, metavar="FILE", help="New file for the page (default: beside FOLDER); - for standard output."
)
@click.option(
    "--format",
    "form",
    default="html",
    metavar="NAME",
    shell_complete=complete.report_formats,
    help="Of the page: html (default), markdown, text or json.",
)
@click.option("--report/--no-report", default=True, help="Write the page (default).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(ctx: click.Context, /, folders: tuple[Path, ...], order: str, **values: Any) -> None:
    """Find the runs at which the latency of a system changed.

    FOLDER holds run folders, records or histograms of other tools; several may be named, and runs too. They are put in
    the order of their start. Changes are looked for in 20 runs and more that measured alike; of fewer the figures are
    shown. Exit code 0 whatever was found, 2 if there is no run.

    \b
    rtproof history runs/nightly
    """
    page = _page(folders[0], values["output"]) if values["report"] or values["output"] else None
    (side,) = comparing.read([("", "", folders)])
    typed = shlex.join(ctx.obj or ("rtproof", "history"))
    wanted = comparing.Wanted(page, values["form"], values["as_json"], command=typed)
    _publish(_ordered(side.runs, order), side.failed, wanted, by_name=order == "name")


def _page(folder: Path, output: Path | None) -> Path:
    """Where the page goes, known to be free before anything is read."""
    page = output or beside(folder, "-history.html")
    if page != STANDARD_OUTPUT:
        files.refuse_existing(page)
    return page


def _ordered(runs: "tuple[RunFigures, ...]", order: str) -> "list[RunFigures]":
    return sorted(runs, key=lambda run: run.name) if order == "name" else list(runs)


def _publish(runs: "list[RunFigures]", failed: tuple[str, ...], wanted: comparing.Wanted, *, by_name: bool) -> None:
    from rtproof.analysis.history.history import history
    from rtproof.report import history as page
    from rtproof.report.comparison.told import Told
    from rtproof.report.history import as_json

    found = history(runs, by_name=by_name)
    told = Told((), failed, wanted.command)
    whole, short = page.sections(found, told), page.sections(found, told, short=True)
    comparing.publish(page.title(found), whole, short, as_json.encode(found, told), wanted)
