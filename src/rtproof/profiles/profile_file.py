# SPDX-License-Identifier: Apache-2.0
"""Reads the TOML file of a profile and makes its cells. docs/reference/profile-files.md explains the keys.

The classes are the tables of the file. Each of them refuses an unknown key.
"""

import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from rtproof.core import toml, units
from rtproof.core.errors import UserError
from rtproof.profiles.profile import (
    Bins,
    CellPlan,
    Count,
    Parameter,
    Profile,
    ProfilePart,
    ProfileWords,
    PublishedFile,
    Way,
    merge_options,
)
from rtproof.record.requirement import Requirement

PROFILE_SCHEMA = 1


class OptionsFile(ProfilePart, frozen=True, omit_defaults=True):
    """Options of ``rtproof run``. Durations are texts with their unit."""

    probe: str | None = None
    method: str | None = None
    period: str | None = None
    period_step: str | None = None
    duration: str | None = None
    samples: Count | None = None
    warmup: str | None = None
    cpus: str | None = None
    threads: int | None = None
    policy: Literal["fifo", "rr", "other", "deadline"] | None = None
    priority: int | None = None
    phase: str | None = None
    dma_latency: str | None = None
    no_lock_memory: bool | None = None
    record: Literal["samples", "summary"] | None = None
    checkpoint: str | None = None
    allow_unprivileged: bool | None = None
    load: tuple[str, ...] | None = None
    probe_options: dict[str, str] | None = None


class ValueFile(ProfilePart, frozen=True):
    """One value of an axis: the options that it adds to each cell. way: of these cells, else those of the profile."""

    name: str
    label: str = ""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    way: tuple[Way, ...] = ()


class AxisFile(ProfilePart, frozen=True):
    """An axis of the matrix. Each cell has one value of each axis."""

    name: str
    value: tuple[ValueFile, ...]


class ProfileRowFile(ProfilePart, frozen=True):
    """The article's rows that some cells repeat. when: the values, by axis, of those cells; keys: keys of the rows."""

    when: dict[str, str]
    keys: tuple[str, ...]


class ClaimFile(ProfilePart, frozen=True):
    """The requirement of the profile as texts with units. A gap or longest length of its own is optional."""

    limit: str
    at_most: str = "never"
    gap: str | None = None
    longest: str | None = None
    bunches: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.0


class ProfileFile(ProfileWords, frozen=True, kw_only=True):
    """The whole file of a profile."""

    schema: int
    options: dict[str, Any]
    requirement: ClaimFile | None = None
    axis: tuple[AxisFile, ...] = ()
    way: tuple[Way, ...] = ()
    exclude: tuple[dict[str, str], ...] = ()
    row: tuple[ProfileRowFile, ...] = ()
    bin: tuple[dict[str, Any], ...] = ()
    file: tuple[PublishedFile, ...] = ()
    parameter: tuple[Parameter, ...] = ()


Parsed = TypeVar("Parsed")
WARMUP = "warmup"
"""The only duration option that may be 0."""
DURATION_OPTIONS = ("period", "period_step", "duration", WARMUP, "checkpoint")
MOST_CELLS = 64
TOML = ".toml"
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
ONLY = "only"
"""Key of the only cell of a profile without axes."""


def read_profile(path: Path) -> Profile:
    """The profile in this file; UserError, with the file and the key, if a value is wrong."""
    file = toml.read_toml(path, ProfileFile)
    try:
        return _profile(path, file)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from None


def _profile(path: Path, file: ProfileFile) -> Profile:
    if file.schema != PROFILE_SCHEMA:
        raise UserError(f"schema: it is {file.schema}, and this version knows {PROFILE_SCHEMA} only")
    bins = tuple(_bins(f"bin[{at}]", each) for at, each in enumerate(file.bin))
    names = [each.file for each in bins if each.file] + [each.name for each in file.file]
    for name in names:
        if not FILE_NAME.fullmatch(name):
            raise UserError(f"file: {name!r} is no name of a file: letters, digits, '.', '_' and '-' are allowed")
    _refuse_twice("file", names)
    told: dict[str, Any] = {name: getattr(file, name) for name in ProfileWords.__struct_fields__}
    if file.article.endswith(TOML):
        told["article"] = str(path.parent / file.article)
    return Profile(
        name=path.stem,
        cells=tuple(_cells(file)),
        axes={axis.name: tuple(value.name for value in axis.value) for axis in file.axis},
        claims=(_claim(file.requirement),) if file.requirement else (),
        bins=bins,
        kept=file.file,
        parameters=file.parameter,
        **told,
    )


def _bins(place: str, told: dict[str, Any]) -> Bins:
    width = told.get("width")
    if not isinstance(width, str) or "width_ns" in told:
        raise UserError(f"{place}.width: it has to be a time with its unit, such as '2us'")
    rest = {key: value for key, value in told.items() if key != "width"}
    return toml.convert_toml({**rest, "width_ns": _parsed_at(f"{place}.width", units.parse_length, width)}, Bins, place)


def _claim(asked: ClaimFile) -> Requirement:
    limit_ns, gap_ns, longest_ns = (
        _parsed_at(f"requirement.{name}", units.parse_length, text) if text else 0
        for name, text in (("limit", asked.limit), ("gap", asked.gap), ("longest", asked.longest))
    )
    at_most_ns = _parsed_at("requirement.at_most", units.parse_judged_rate, asked.at_most)
    return Requirement(limit_ns, at_most_ns, gap_ns=gap_ns, longest_ns=longest_ns, bunches=asked.bunches)


def _parsed_at(key: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
    """The parsed value; a UserError begins with the key of the value."""
    try:
        return parse(text)
    except UserError as problem:
        raise UserError(f"{key}: {problem}") from None


def _cells(file: ProfileFile) -> Iterable[CellPlan]:
    _check_names(file)
    names, values_of_axes = [axis.name for axis in file.axis], [axis.value for axis in file.axis]
    chosen = [dict(zip(names, values, strict=True)) for values in product(*values_of_axes)]
    cells = [_cell(file, values) for values in chosen if not any(_matches(pairs, values) for pairs in file.exclude)]
    if not 0 < len(cells) <= MOST_CELLS:
        raise UserError(f"its axes make {len(cells)} cells; there must be 1 to {MOST_CELLS}")
    return cells


def _check_names(file: ProfileFile) -> None:
    """UserError for a name that stands twice, and for an exclusion or a row that names an unknown value."""
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


def _matches(pairs: dict[str, str], values: dict[str, ValueFile]) -> bool:
    return all(values[name].name == value for name, value in pairs.items())


def _cell(file: ProfileFile, values: dict[str, ValueFile]) -> CellPlan:
    own = [_options(f"axis {name}, {value.name}", value.options) for name, value in values.items()]
    options = merge_options(_options("options", file.options), *own)
    duration, samples = options.pop("duration", None), options.pop("samples", None)
    if (duration is None) == (samples is None):
        raise UserError("options: give one of duration and samples, which is the article's length")
    period_ns = units.parse_duration(options.get("period", "1ms"))
    duration_ns = units.parse_duration(duration) if duration else None
    ways = [way for value in values.values() for way in value.way] or list(file.way) or [Way(ONLY)]
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
        ways=tuple(
            msgspec.structs.replace(way, options=_options(f"way {way.name}.options", way.options)) for way in ways
        ),
    )


def _key(values: dict[str, ValueFile]) -> str:
    """The key of a cell, which is also a valid name for its folder."""
    return "--".join(re.sub(r"[^A-Za-z0-9.]+", "-", value.name) for value in values.values()) or ONLY


def _options(place: str, told: dict[str, Any]) -> dict[str, Any]:
    """The options that the file gives, with durations checked and in one form."""
    read = msgspec.structs.asdict(toml.convert_toml(told, OptionsFile, place))
    found = {name: value for name, value in read.items() if value is not None}
    for name in DURATION_OPTIONS:
        if name in found:
            parse = units.parse_duration if name == WARMUP else units.parse_length
            found[name] = units.format_duration(_parsed_at(f"{place}.{name}", parse, found[name]))
    return found
