# SPDX-License-Identifier: Apache-2.0
"""All loads that have a name, with their options, and what this machine lacks for each."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtproof import loads
from rtproof.agents import build
from rtproof.loads import LoadFile


@dataclass(frozen=True)
class LoadRow:
    """A load. options: their names and help. missing: what this machine lacks, or nothing."""

    name: str
    help: str
    options: tuple[tuple[str, str], ...]
    missing: str = ""


def load_rows(own: Sequence[LoadRow]) -> list[LoadRow]:
    """All loads that have a name: definitions first, then the agent's ``own``."""
    return [*(load_row(name, own) for name in loads.names()), *own]


def agent_loads(agent: Path) -> Iterator[LoadRow]:
    """The agent's own loads. UserError if it does not list them."""
    listed = build.agent_prints(agent, "list")
    options = build.listed_rows(listed, "load_option")
    for _, name, *rest in build.listed_rows(listed, "load"):
        own = tuple((option, text) for _, of, option, text in options if of == name)
        yield LoadRow(name, build.help_without_missing(rest[-1]), own, build.missing_on_machine(rest[-1]))


def load_row(name: str, own: Sequence[LoadRow]) -> LoadRow:
    """A load that is defined in a file, by its name or path. own: the agent's loads."""
    file = loads.find(name)
    assert file is not None
    options = [(key, f"{parameter.help} (default: {parameter.default})") for key, parameter in file.parameters.items()]
    options.append(("restart", f"kill it and start it again this often (default: {file.restart or 'never'})"))
    return LoadRow(name, file.help, tuple(options), _missing(file, own))


def missing_programs() -> dict[str, str]:
    """By the name of a load that is defined in a file: the first program that it lacks here."""
    found: dict[str, str] = {}
    for name in loads.names():
        if file := loads.find(name):
            needed = (text for kind, text in loads.default_parts(file) if kind == "program")
            found[name] = next((program for program in needed if not shutil.which(program)), "")
    return {name: program for name, program in found.items() if program}


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
