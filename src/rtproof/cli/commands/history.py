# SPDX-License-Identifier: Apache-2.0
"""``rtproof history``: when did the latency of a system change, and what changed with it?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import comparing
from rtproof.cli.pages import PATH, page_of, page_options

if TYPE_CHECKING:
    from rtproof.analysis.comparison.figures import RunFigures


@click.command("history")
@click.argument("folders", metavar="FOLDER...", type=PATH, nargs=-1, required=True)
@click.option(
    "--order",
    type=click.Choice(["start", "name"]),
    default="start",
    help="Order of the runs: of their start (default), or of their names.",
)
@page_options("FOLDER")
@click.pass_context
def command(ctx: click.Context, /, folders: tuple[Path, ...], order: str, **values: Any) -> None:
    """Find the runs at which the latency of a system changed.

    FOLDER holds run folders, records or histograms of other tools; several may be named, and runs too. They are put in
    the order of their start. Changes are looked for in 20 runs and more that measured alike; of fewer the figures are
    shown. Exit code 0 whatever was found, 2 if there is no run or one could not be read.

    \b
    rtproof history runs/nightly
    """
    page = page_of(folders[0], "history", values)
    (side,) = comparing.read([("", "", folders)])
    typed = shlex.join(ctx.obj or ("rtproof", "history"))
    wanted = comparing.Wanted(page, values["form"], values["as_json"], command=typed)
    _publish(_ordered(side.runs, order), side.failed, wanted, by_name=order == "name")
    ctx.exit(comparing.exit_code([side]))


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
