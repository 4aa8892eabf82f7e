# SPDX-License-Identifier: Apache-2.0
"""``rtproof loads``: what may disturb a run, and what of it this machine can."""

from textwrap import fill

import click

from rtproof import loads
from rtproof.agents import build
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean


@click.command("loads")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def command(names: tuple[str, ...]) -> None:
    """List all loads, or the options of the loads named.

    A file is named by its path. 'not here' says what this machine lacks; another target may have it. CPUs at the end
    bind a load to them: rtproof run --load mmap@0.
    """
    from rtproof.experiment.load_list import agent_loads, load_row, load_rows
    from rtproof.report.text_table import fitted_to_terminal, page_width

    own = list(agent_loads(build.find_agent()))
    known = {row.name: row for row in sorted(load_rows(own), key=lambda row: row.name)}
    for name in names:
        if name not in known and not loads.find(name):
            raise UserError(unknown_name("load", name, known))
    with fitted_to_terminal():
        for row in [known.get(name) or load_row(name, own) for name in names] if names else known.values():
            line = clean(f"{row.name:16} {row.help}{build.NOT_HERE + row.missing if row.missing else ''}")
            click.echo(fill(line, page_width(), subsequent_indent=" " * 17))
            for option, text in row.options if names else ():
                click.echo(fill(clean(f"  {option:14} {text}"), page_width(), subsequent_indent=" " * 17))
