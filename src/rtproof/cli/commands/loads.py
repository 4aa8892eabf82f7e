# SPDX-License-Identifier: Apache-2.0
"""``rtproof loads``: what may disturb a run, and what of it this machine can."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from rtproof import loads
from rtproof.agents import build
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import clean
from rtproof.loads import LoadFile


@dataclass(frozen=True)
class LoadRow:
    """A load. options: their names and help. missing: what this machine lacks, or nothing."""

    name: str
    help: str
    options: tuple[tuple[str, str], ...]
    missing: str = ""


@click.command("loads")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def command(names: tuple[str, ...]) -> None:
    """List all loads, or the options of the loads that are named: definitions first, then the agent's own.

    A file is named by its path. 'not here' says what this machine lacks; another target may have it. CPUs at the end
    bind a load to them: rtproof run --load mmap@0.
    """
    own = list(_own())
    known = {row.name: row for row in rows(own)}
    for name in names:
        if name not in known and not loads.find(name):
            raise UserError(unknown_name("load", name, known))
    for row in [known.get(name) or _defined(name, own) for name in names] if names else known.values():
        click.echo(clean(f"{row.name:16} {row.help}{build.NOT_HERE + row.missing if row.missing else ''}"))
        for option, text in row.options if names else ():
            click.echo(clean(f"  {option:14} {text}"))


def rows(own: Sequence[LoadRow] = ()) -> list[LoadRow]:
    """All that have a name. own: the agent's, if they have been asked for."""
    theirs = list(own or _own())
    return [*(_defined(name, theirs) for name in loads.names()), *theirs]


def _own() -> Iterator[LoadRow]:
    """The agent's own loads."""
    listed = build.agent_prints(build.find_agent(), "list")
    options = build.listed_rows(listed, "load_option")
    for _, name, *rest in build.listed_rows(listed, "load"):
        own = tuple((option, text) for _, of, option, text in options if of == name)
        yield LoadRow(name, build.help_without_missing(rest[-1]), own, build.missing_on_machine(rest[-1]))


def _defined(name: str, own: Sequence[LoadRow]) -> LoadRow:
    file = loads.find(name)
    assert file is not None
    options = [(key, f"{parameter.help} (default: {parameter.default})") for key, parameter in file.parameters.items()]
    options.append(("restart", f"kill it and start it again this often (default: {file.restart or 'never'})"))
    return LoadRow(name, file.help, tuple(options), _missing(file, own))


def _missing(file: LoadFile, own: Sequence[LoadRow]) -> str:
    """The first thing that its parts lack here, with its parameters as they are by default."""
    known = {row.name: row for row in own}
    for kind, text in loads.default_parts(file):
        if kind == "program" and not shutil.which(text):
            return f"there is no program {text!r}"
        if kind == "load" and text not in known:
            return f"the agent has no load {text!r}"
        if kind == "load" and known[text].missing:
            return known[text].missing
    return ""
