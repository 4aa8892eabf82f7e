# SPDX-License-Identifier: Apache-2.0
"""What the file of a load may hold; docs/loads.md explains it. Every class refuses a key that it does not know."""

from typing import Literal

import msgspec

Value = str | int


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class ParameterFile(_Strict, frozen=True):
    """least, most: of a whole number. choices: of a text, if not just any will do."""

    default: Value
    help: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()


class PartFile(_Strict, frozen=True):
    """load: one of the agent's, with its options. Or program: a command; all keys behind it are for programs only."""

    load: str = ""
    options: dict[str, Value] = {}
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


class LoadFile(_Strict, frozen=True):
    """restart: of every part that has none of its own."""

    name: str
    help: str
    parts: tuple[PartFile, ...]
    source: str = ""
    restart: str = ""
    parameters: dict[str, ParameterFile] = {}
