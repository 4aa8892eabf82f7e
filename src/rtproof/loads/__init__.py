# SPDX-License-Identifier: Apache-2.0
"""Loads as data. Each is a TOML file, made of the agent's loads and of the target's programs; see docs/loads.md.

A file here or in the user's folder gives its name to its load. Any other is named by its path. Every other name means
one of the agent's own loads.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rtproof.core import toml, units
from rtproof.core.errors import UserError
from rtproof.core.files import home_folder

SUFFIX = ".toml"
ParameterValue = str | int


class LoadParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One parameter of a load: a number with ``least`` and ``most``, or a text with ``choices``, or any text."""

    default: ParameterValue
    help: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()


class LoadPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of a load: either ``load``, one of the agent's with its ``options``, or ``program``, a command.

    The keys after ``program`` are for programs only.
    """

    load: str = ""
    options: dict[str, ParameterValue] = {}
    restart: str = ""
    program: tuple[str, ...] = ()
    name: str = ""
    needs: str = ""
    count: Literal["runs", "cpu_ms", "lines", "bytes"] = "cpu_ms"
    again: bool = False
    rest: str = ""
    memory_mib: int | None = None
    processes: int | None = None
    space_mib: int | None = None


class LoadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A load as its file defines it. ``restart``: for every part without a restart of its own."""

    name: str
    help: str
    parts: tuple[LoadPart, ...]
    source: str = ""
    restart: str = ""
    parameters: dict[str, LoadParameter] = {}


MOST_PARTS = 16
"""The agent runs at most this many loads at once."""
RESTART = "restart"
SHORTEST_NS = 100 * units.UNITS_NS["ms"]
"""Between two starts of a load."""
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_ONLY_OF_PROGRAMS = ("name", "needs", "rest", "memory_mib", "processes", "space_mib", "again")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def read_load(path: Path) -> LoadFile:
    """Read and check a load's file, which must have its name. UserError with the file and the key."""
    file = toml.read_toml(path, LoadFile)
    for problem in _problems(file, path.stem):
        raise UserError(f"{path}: {problem}")
    return file


def fill_placeholders(text: str, values: dict[str, str]) -> str:
    """The text with each name in braces replaced by the value of that name."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _problems(file: LoadFile, stem: str) -> Iterator[str]:
    if not _NAME.fullmatch(file.name):
        yield f"name: {file.name!r} is no name of small letters, digits and - _ . that begins with a letter"
    if file.name != stem:
        yield f"name: it is {file.name!r}, but the file is called {stem!r}"
    if not 0 < len(file.parts) <= MOST_PARTS:
        yield f"parts: there are {len(file.parts)}, and there must be 1 to {MOST_PARTS}"
    yield from _time_problems("restart", file.restart)
    for name, parameter in file.parameters.items():
        yield from _parameter_problems(f"parameters.{name}", name, parameter)
    for at, part in enumerate(file.parts):
        yield from _part_problems(f"parts[{at}]", part, set(file.parameters))


def _parameter_problems(key: str, name: str, parameter: LoadParameter) -> Iterator[str]:
    if name == RESTART or not name.isidentifier():
        yield f"{key}: a parameter can't have this name"
    if isinstance(parameter.default, int) and parameter.choices:
        yield f"{key}.choices: they are for texts; a number has least and most"
    if isinstance(parameter.default, str) and (parameter.least is not None or parameter.most is not None):
        yield f"{key}: least and most are for numbers; a text has choices"
    for problem in value_problems(str(parameter.default), parameter):
        yield f"{key}.default: {problem}"


def value_problems(text: str, parameter: LoadParameter) -> Iterator[str]:
    """The reasons why the parameter can't have this value; none if it can."""
    if isinstance(parameter.default, int):
        least, most = parameter.least or 0, parameter.most
        range_ = f"from {least}" if most is None else f"from {least} to {most}"
        if not re.fullmatch(r"[0-9]{1,15}", text) or not least <= int(text) <= (int(text) if most is None else most):
            yield f"{text!r} is not a whole number {range_}"
    elif parameter.choices and text not in parameter.choices:
        yield f"{text!r} is none of {', '.join(parameter.choices)}"
    elif not text or not text.isprintable():
        yield f"{text!r} is not a text of at least one character"


def _part_problems(key: str, part: LoadPart, parameters: set[str]) -> Iterator[str]:
    if bool(part.load) == bool(part.program):
        yield f"{key}: it must have a load of the agent or a program, one of the two"
    given = [name for name in _ONLY_OF_PROGRAMS if getattr(part, name) not in ("", None, False)]
    if part.load and given:
        yield f"{key}.{given[0]}: this is for programs only"
    if part.program and part.options:
        yield f"{key}.options: a program has none, only the words of its command"
    if part.name and not _NAME.fullmatch(part.name):
        yield f"{key}.name: {part.name!r} is no name of small letters, digits and - _ . that begins with a letter"
    for name in ("memory_mib", "processes", "space_mib"):
        least: int | None = getattr(part, name)
        if least is not None and least < 1:
            yield f"{key}.{name}: it must be at least 1"
    yield from _time_problems(f"{key}.restart", part.restart)
    yield from _time_problems(f"{key}.rest", part.rest)
    yield from _text_problems(key, part, parameters)


def _text_problems(key: str, part: LoadPart, parameters: set[str]) -> Iterator[str]:
    options = [str(value) for value in part.options.values()]
    texts = (part.load, part.needs, *part.program, *options)
    unknown = [name for text in texts for name in _PLACEHOLDER.findall(text) if name not in parameters]
    if unknown:
        yield f"{key}: there is no parameter {unknown[0]!r}"
    for text in (part.load, part.needs, *part.options, *options):
        if re.search(r"[,\s]", text):
            yield f"{key}: {text!r} may hold no comma and no space"


def _time_problems(key: str, text: str) -> Iterator[str]:
    if not text:
        return
    try:
        if units.parse_duration(text) < SHORTEST_NS:
            yield f"{key}: {text!r} is less than 100ms"
    except UserError as problem:
        yield f"{key}: {problem}"


COUNTS = ("runs", "cpu_ms", "lines", "bytes")
"""What a program's work is counted in. The agent knows each by its position here."""


def load_name(text: str) -> str:
    """The name of a load as the user names it, without its options and its CPUs."""
    return units.split_cpus(text)[0].partition(":")[0]


def agent_load_options(file: LoadFile, given: Mapping[str, str], binding: str = "") -> tuple[str, ...]:
    """The agent's arguments for a load. given: parameters and ``restart``. binding: the CPUs of every part."""
    settings = dict(given)
    asked = settings.pop(RESTART, "")
    if asked and units.parse_duration(asked) < SHORTEST_NS:
        raise UserError(f"load {file.name}: {RESTART} must be at least 100ms, not {asked!r}")
    restart, values = asked or file.restart, _values(file, settings)
    return tuple(word for part in file.parts for word in _part(file, part, part.restart or restart, (values, binding)))


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


def _part(file: LoadFile, part: LoadPart, restart: str, filled: tuple[dict[str, str], str]) -> tuple[str, str]:
    values, binding = filled
    if part.load:
        options = {name: fill_placeholders(str(value), values) for name, value in part.options.items()}
        name = fill_placeholders(part.load, values)
        return "--load", _named(file, name, {**options, **({RESTART: restart} if restart else {})}) + binding
    # The program's name in the record is its own if it has one, otherwise that of its file.
    own = part.name or re.sub(r"[^a-z0-9_.-]", "-", part.program[0].rpartition("/")[2].lower())
    command = shlex.join(fill_placeholders(word, values) for word in part.program)
    return "--program", f"{_named(file, own, dict(_program_options(part, restart, values)))}{binding} {command}"


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


def _named(file: LoadFile, name: str, options: Mapping[str, str]) -> str:
    """A part as the agent names it. UserError if it ends as if it named CPUs: a value may end so, such as a path."""
    text = f"{name}:{','.join(f'{key}={value}' for key, value in options.items())}" if options else name
    if units.split_cpus(text)[1]:
        raise UserError(f"load {file.name}: {text!r} ends with {units.split_cpus(text)[1]!r}, which would name CPUs")
    return text


def default_parts(file: LoadFile) -> Iterator[tuple[str, str]]:
    """What a load with default parameters needs on the target: pairs ("load", NAME) and ("program", NAME)."""
    values = {name: str(parameter.default) for name, parameter in file.parameters.items()}
    for part in file.parts:
        needed = (part.needs, *part.program[:1])
        yield from (("program", fill_placeholders(each, values)) for each in needed if each)
        if part.load:
            yield "load", fill_placeholders(part.load, values)


def user_folder() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or home_folder() / ".config"
    return Path(config) / "rtproof" / "loads"


def names() -> list[str]:
    """The names of the definitions that come with the program and of those in the user's folder."""
    return sorted(_files())


def find(name: str) -> LoadFile | None:
    """The definition with this name or path; None if no definition has the name. UserError if the file is wrong."""
    path = Path(name) if _is_path(name) else _files().get(name)
    if path and path.exists() and not path.is_file():
        raise UserError(f"{path} is no file")
    return read_load(path) if path else None


def resolve(texts: Sequence[str]) -> tuple[str, ...]:
    """The agent's arguments for loads that the user names as ``NAME[:key=value,...][@CPUS]``."""
    words: list[str] = []
    for text in texts:
        unbound, binding = units.split_cpus(text)
        name, _, options = unbound.partition(":")
        for problem in _binding_problems(text, name):
            raise UserError(problem)
        file = find(name)
        words += agent_load_options(file, _settings(name, options), binding) if file else ("--load", text)
    return tuple(words)


def _binding_problems(text: str, name: str) -> Iterator[str]:
    """The reasons why a load cannot be bound as its text says, in the agent's words; none if it can or is not bound."""
    unbound, binding = units.split_cpus(text)
    if binding and units.split_cpus(unbound)[1]:
        yield f"load {text!r} is bound twice: give one @ with all of its CPUs, such as @0-2,5"
    if "@" in name and not _is_path(name):
        yield f"load {text!r}: an @ stands at the end, with a list of CPUs behind it: NAME[:key=value,...]@0-2,5"
    try:
        units.parse_cpus(binding[1:] or "0")
    except UserError:
        yield f"load {unbound!r} can't be bound to {binding!r}: a list of CPUs is such as 0-2,5"


def _settings(name: str, options: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair in filter(None, options.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or not value:
            raise UserError(f"load {name}: {pair!r} is not of the form key=value")
        if key in settings:
            raise UserError(f"load {name}: {key} is given twice")
        settings[key] = value
    return settings


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(SUFFIX)


def _files() -> dict[str, Path]:
    """The file of each definition, by its name. A user's definition replaces a built-in one of the same name."""
    ours, theirs = Path(__file__).parent, user_folder()
    return {path.stem: path for folder in (ours, theirs) for path in sorted(folder.glob(f"*{SUFFIX}"))}
