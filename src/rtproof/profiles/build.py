# SPDX-License-Identifier: Apache-2.0
"""From a profile's file to its cells."""

import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rtproof import tomlfile, units
from rtproof.errors import UserError
from rtproof.profiles.model import Bins, CellPlan, Claim, Guest, Kept, Parameter, Profile, Program, Way
from rtproof.profiles.plan import merged
from rtproof.profiles.schema import (
    SCHEMA,
    AxisFile,
    BinsFile,
    OptionsFile,
    ProfileFile,
    ProgramFile,
    ValueFile,
    WayFile,
)

Parsed = TypeVar("Parsed")
WARMUP = "warmup"
"""The only length that may be 0."""
LENGTHS = ("period", "period_step", "duration", WARMUP, "checkpoint")
MOST_CELLS = 64
TOML = ".toml"
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
SECONDS = "{seconds}"
"""Stands for the length in a program's command."""
ONLY = "only"
"""Key of the only cell of a profile without axes."""


def read_profile(path: Path) -> Profile:
    """UserError, with the file and the key, for one that makes no sense."""
    file = tomlfile.read(path, ProfileFile)
    try:
        return _profile(path, file)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from None


def _profile(path: Path, file: ProfileFile) -> Profile:
    if file.schema != SCHEMA:
        raise UserError(f"schema: it is {file.schema}, and this version knows {SCHEMA} only")
    _check_files(file)
    return Profile(
        name=path.stem,
        title=file.title,
        article=str(path.parent / file.article) if file.article.endswith(TOML) else file.article,
        about=file.about,
        differs=tuple(file.differs),
        cells=tuple(_cells(file)),
        axes={axis.name: tuple(value.name for value in axis.value) for axis in file.axis},
        claims=_claims(file),
        bins=tuple(_bins(at, each) for at, each in enumerate(file.bin)),
        kept=tuple(Kept(each.name, each.format, each.options) for each in file.file),
        columns=tuple(file.columns),
        extras=tuple(file.extras),
        zooms=tuple(file.zooms),
        parameters=tuple(Parameter(each.name, each.help, each.default) for each in file.parameter),
        given=file.given,
        programs=tuple(_program(at, each) for at, each in enumerate(file.program)),
        guest=Guest(**msgspec.structs.asdict(file.guest)),
    )


def _bins(at: int, file: BinsFile) -> Bins:
    width_ns = _at(f"bin[{at}].width", units.parse_length, file.width)
    return Bins(file.name, file.stage, width_ns, file.count, file.zooms, file.file)


def _check_files(file: ProfileFile) -> None:
    """They lie in the run folder of each cell, beside the record."""
    names = [each.file for each in file.bin if each.file] + [each.name for each in file.file]
    for name in names:
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"file: {name!r} is no name of a file: letters, digits, '.', '_' and '-' are allowed")
    _refuse_twice("file", names)


def _program(at: int, file: ProgramFile) -> Program:
    if not file.command or SECONDS not in " ".join(file.command):
        raise UserError(f"program[{at}].command: it needs words, and {SECONDS} in one of them")
    return Program(file.label, file.command, file.needs)


def _claims(file: ProfileFile) -> tuple[Claim, ...]:
    asked = file.requirement
    if asked is None:
        return ()
    limit_ns = _at("requirement.limit", units.parse_length, asked.limit)
    at_most_ns = _at("requirement.at_most", units.parse_at_most, asked.at_most)
    gap_ns, longest_ns = (
        _at(f"requirement.{name}", units.parse_length, text) if text else 0
        for name, text in (("gap", asked.gap), ("longest", asked.longest))
    )
    return (Claim(limit_ns, at_most_ns, gap_ns, longest_ns, asked.bunches),)


def _at(key: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
    """A value parsed; UserError that begins with its key."""
    try:
        return parse(text)
    except UserError as problem:
        raise UserError(f"{key}: {problem}") from None


def _cells(file: ProfileFile) -> Iterable[CellPlan]:
    _check_names(file)
    chosen = [dict(zip((axis.name for axis in file.axis), values, strict=True)) for values in _product(file.axis)]
    cells = [_cell(file, values) for values in chosen if not _excluded(file, values)]
    if not 0 < len(cells) <= MOST_CELLS:
        raise UserError(f"its axes make {len(cells)} cells; there must be 1 to {MOST_CELLS}")
    return cells


def _product(axes: tuple[AxisFile, ...]) -> Iterable[tuple[ValueFile, ...]]:
    return product(*(axis.value for axis in axes))


def _check_names(file: ProfileFile) -> None:
    """Every name stands once, and what exclusions and rows speak of is there."""
    _refuse_twice("axis", [axis.name for axis in file.axis])
    known = {axis.name: [value.name for value in axis.value] for axis in file.axis}
    _refuse_twice("axis or parameter", [*known, *(parameter.name for parameter in file.parameter)])
    for name, values in known.items():
        _refuse_twice(f"the axis {name}", values)
    places = [(f"exclude[{at}]", pairs) for at, pairs in enumerate(file.exclude)]
    places += [(f"row[{at}].when", row.when) for at, row in enumerate(file.row)]
    for place, name, value in ((place, *pair) for place, pairs in places for pair in pairs.items()):
        if value not in known.get(name, ()):
            raise UserError(f"{place}: there is no {name} = {value!r} on any axis")


def _refuse_twice(where: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"{where}: {twice[0]!r} stands twice")


def _excluded(file: ProfileFile, values: dict[str, ValueFile]) -> bool:
    return any(_matches(pairs, values) for pairs in file.exclude)


def _matches(pairs: dict[str, str], values: dict[str, ValueFile]) -> bool:
    return all(values[name].name == value for name, value in pairs.items())


def _cell(file: ProfileFile, values: dict[str, ValueFile]) -> CellPlan:
    own = [_options(f"axis {name}, {value.name}", value.options) for name, value in values.items()]
    options = merged(_options("options", file.options), *own)
    duration, samples = options.pop("duration", None), options.pop("samples", None)
    if (duration is None) == (samples is None):
        raise UserError("options: give one of duration and samples, which is the article's length")
    period_ns = units.parse_duration(options.get("period", "1ms"))
    duration_ns = units.parse_duration(duration) if duration else None
    ways = [way for value in values.values() for way in value.way] or list(file.way) or [WayFile(ONLY)]
    return CellPlan(
        key=_key(values),
        label=", ".join(value.label or value.name for value in values.values()) or file.title,
        axes={name: value.name for name, value in values.items()},
        options=options,
        duration_ns=duration_ns,
        samples=samples,
        period_ns=period_ns,
        article_ns=duration_ns or samples * period_ns,
        article_rows=tuple(key for row in file.row if _matches(row.when, values) for key in row.keys),
        ways=tuple(_way(way) for way in ways),
    )


def _key(values: dict[str, ValueFile]) -> str:
    """A name for a folder."""
    return "--".join(re.sub(r"[^A-Za-z0-9.]+", "-", value.name) for value in values.values()) or ONLY


def _way(way: WayFile) -> Way:
    return Way(way.name, way.says, _options(f"way {way.name}", way.options), way.stage, way.replace)


def _options(place: str, file: OptionsFile) -> dict[str, Any]:
    """What the file gives, its durations held to their units."""
    found = {name: value for name, value in msgspec.structs.asdict(file).items() if value is not None}
    for name in LENGTHS:
        if name in found:
            parse = units.parse_duration if name == WARMUP else units.parse_length
            found[name] = units.format_duration(_at(f"{place}.{name}", parse, found[name]))
    if "load" in found:
        found["load"] = tuple(found["load"])
    return found
