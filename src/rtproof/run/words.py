# SPDX-License-Identifier: Apache-2.0
"""Lines of the agent that are words of a name and a number."""

from dataclasses import MISSING, fields
from typing import TypeVar

Kind = TypeVar("Kind")


def numbers(line: str, prefix: str, kind: type[Kind]) -> Kind | None:
    """A line that begins with a prefix, as a dataclass of whole numbers; None if it is none, or lacks one."""
    if not line.startswith(prefix):
        return None
    pairs = dict(word.partition("=")[::2] for word in line.removeprefix(prefix).split())
    known = [field for field in fields(kind) if field.name in pairs or field.default is MISSING]  # type: ignore[arg-type]
    try:
        return kind(**{field.name: int(pairs[field.name]) for field in known})
    except (KeyError, ValueError):
        return None
