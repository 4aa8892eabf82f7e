# SPDX-License-Identifier: Apache-2.0
"""Loads as data. Each is a TOML file, made of the agent's loads and of the target's programs; see docs/loads.md.

A file in this folder or in the user's folder gives its name to its load. Any other file is named by its path. Every
other name means one of the agent's own loads.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.loads.definition import LoadFile, agent_load_options, default_parts, read_load

__all__ = ["LoadFile", "agent_load_options", "default_parts", "find", "names", "resolve", "user_folder"]
SUFFIX = ".toml"


def user_folder() -> Path:
    """The folder of the user's own definitions."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
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
    """The agent's arguments for loads that the user names as ``NAME`` or ``NAME:key=value,...``."""
    return tuple(word for text in texts for word in _resolved(text))


def _resolved(text: str) -> tuple[str, ...]:
    name, _, options = text.partition(":")
    file = find(name)
    return agent_load_options(file, _settings(name, options)) if file else ("--load", text)


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
