# SPDX-License-Identifier: Apache-2.0
"""From a load's definition and the parameters that the user set to the agent's options."""

import re
import shlex
from collections.abc import Iterator, Mapping

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.loads.definition import RESTART, LoadFile, LoadPart, fill_placeholders, value_problems

COUNTS = ("runs", "cpu_ms", "lines", "bytes")
"""In the order of the agent's numbers for them."""


def agent_load_options(file: LoadFile, given: Mapping[str, str]) -> tuple[str, ...]:
    """Arguments of the agent. given: parameters that the user set, and ``restart``."""
    settings = dict(given)
    restart = _restart(file, settings.pop(RESTART, ""))
    values = _values(file, settings)
    return tuple(word for part in file.parts for word in _part(part, part.restart or restart, values))


def _restart(file: LoadFile, given: str) -> str:
    if given and units.parse_duration(given) < units.UNITS_NS["ms"] * 100:
        raise UserError(f"load {file.name}: {RESTART} must be at least 100ms, not {given!r}")
    return given or file.restart


def _values(file: LoadFile, given: Mapping[str, str]) -> dict[str, str]:
    values = {name: str(parameter.default) for name, parameter in file.parameters.items()}
    for name, text in given.items():
        if name not in file.parameters:
            known = ", ".join((*file.parameters, RESTART))
            raise UserError(f"load {file.name} has no parameter {name!r}; there are: {known}")
        for problem in value_problems(text, file.parameters[name]):
            raise UserError(f"load {file.name}: {name}: {problem}")
        values[name] = text
    return values


def _part(part: LoadPart, restart: str, values: dict[str, str]) -> tuple[str, str]:
    if part.load:
        options = {name: fill_placeholders(str(value), values) for name, value in part.options.items()}
        return "--load", _named(
            fill_placeholders(part.load, values), {**options, **({RESTART: restart} if restart else {})}
        )
    options = dict(_program_options(part, restart, values))
    command = shlex.join(fill_placeholders(word, values) for word in part.program)
    return "--program", f"{_named(part_name(part), options)} {command}"


def part_name(part: LoadPart) -> str:
    """What the record calls a program: a name of its own, or that of its file."""
    return part.name or re.sub(r"[^a-z0-9_.-]", "-", part.program[0].rpartition("/")[2].lower())


def _program_options(part: LoadPart, restart: str, values: dict[str, str]) -> Iterator[tuple[str, str]]:
    yield "count", str(COUNTS.index(part.count))
    if part.again:
        yield "again", "1"
    if part.needs:
        yield "needs", fill_placeholders(part.needs, values)
    if part.rest:
        yield "rest", str(-(-units.parse_duration(part.rest) // units.UNITS_NS["s"]))
    for name in ("memory_mib", "processes", "space_mib"):
        if getattr(part, name) is not None:
            yield name, str(getattr(part, name))
    if restart:
        yield RESTART, restart


def _named(name: str, options: Mapping[str, str]) -> str:
    return f"{name}:{','.join(f'{key}={value}' for key, value in options.items())}" if options else name


def default_parts(file: LoadFile) -> Iterator[tuple[str, str]]:
    """What a load takes part of with its parameters as they are by default: ("load", NAME) and ("program", NAME)."""
    values = {name: str(parameter.default) for name, parameter in file.parameters.items()}
    for part in file.parts:
        needed = (part.needs, *part.program[:1])
        yield from (("program", fill_placeholders(each, values)) for each in needed if each)
        if part.load:
            yield "load", fill_placeholders(part.load, values)
