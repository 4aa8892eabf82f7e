# SPDX-License-Identifier: Apache-2.0
"""Read a TOML file against a schema. An unknown key or a wrong type gives one sentence with the file and the key."""

import re
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from rtproof.core.bounded import TOML_BYTES, TOO_DEEP, read_bounded
from rtproof.core.errors import UserError

Kind = TypeVar("Kind")
TOO_LONG = re.compile(r"Exceeds the limit \(\d+ digits\).*")
"""What Python says of a number that it does not convert."""


def read_toml(path: Path, kind: type[Kind]) -> Kind:
    """Read a TOML file as an object of a msgspec class that forbids unknown fields.

    UserError if the file cannot be read, is too large, is no TOML or does not fit the class.
    """
    try:
        return parse_toml(read_bounded(path, TOML_BYTES), kind, str(path))
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None


def parse_toml(content: bytes, kind: type[Kind], name: str) -> Kind:
    """Convert the bytes of a TOML file to an object of the class. ``name`` names the file in a UserError."""
    try:
        data = tomllib.loads(content.decode())
    except RecursionError:
        raise UserError(f"{name} is not TOML that can be read: {TOO_DEEP}") from None
    except ValueError as problem:
        raise UserError(f"{name} is not TOML: {TOO_LONG.sub('a number has too many digits', str(problem))}") from None
    return convert_toml(data, kind, name)


def convert_toml(data: object, kind: type[Kind], name: str) -> Kind:
    """Convert parsed TOML data to an object of the class. ``name`` names the part of the file in a UserError.

    The data may hold objects of the model that were made of its texts.
    """
    try:
        return msgspec.convert(data, kind, from_attributes=True)
    except msgspec.ValidationError as problem:
        raise UserError(f"{name}: {_sentence(str(problem))}") from None


def _sentence(problem: str) -> str:
    """The complaint of msgspec as a sentence that begins with the place in TOML's notation, such as axis[0].name."""
    what, _, place = problem.partition(" - at ")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what)
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    key = place.strip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    if unknown:
        return f"there is no key {unknown[1]!r}{f' in {key}' if key else ''}"
    if missing:
        return f"the key {missing[1]!r} is missing{f' in {key}' if key else ''}"
    return f"{key}: {what}" if key else what
