# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, one file for each format.

An importer module has ``TOOL: str``, the name of the tool, ``looks_like(text: str) -> bool`` and
``read(text: str) -> ImportedHistogram``. Its docstring says what the format holds and what it loses. ``read`` raises a
UserError for a text of that tool that makes no sense: one sentence without the file's name.
"""

import re
import sys
from pathlib import Path
from types import ModuleType

from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.summary.imported_histogram import ImportedHistogram

__all__ = ("LARGEST_BYTES", "ImportedHistogram", "read", "recognised")

READABLE = "a run folder, a record (.rtrec), the folder of a profile, and the output of "
"""Begins the message that refuses a file. The names of the tools follow."""
LEAD_BYTES = 4_096
_JSON_BEGIN = re.compile(r"^\{\s*\"", re.M)
LARGEST_BYTES = 64 * 1024 * 1024
"""More than the longest histogram that any of these tools writes."""


def read(path: Path) -> ImportedHistogram:
    """The measurement in a file of any known tool; UserError if no importer knows the file or it cannot be read."""
    found = recognised(path)
    if found is None:
        raise UserError(f"{path} is not the output of a tool that can be read here: {', '.join(tools())}")
    return found


def recognised(path: Path) -> ImportedHistogram | None:
    """The measurement in a file of any known tool, None if no importer knows it; UserError if it cannot be read."""
    text = _text(path)
    readers = [module for module in plugins.load_plugins(_here()) if module.looks_like(text)]
    if len(readers) > 1:
        names = " and of ".join(module.TOOL for module in readers)
        raise UserError(f"{path} looks like the output of {names}: give each in a file of its own")
    return _read_with(readers[0], text, path) if readers else None


def read_text(text: str, name: str) -> ImportedHistogram | None:
    """The measurement in a text, read by the importer module of this name; None if the text does not look like its own.

    UserError if it does, and makes no sense.
    """
    module = plugins.load_plugin(_here(), name)
    found: ImportedHistogram | None = module.read(text) if module.looks_like(text) else None
    return found


def tools() -> list[str]:
    """The names of the tools whose output can be read."""
    return [module.TOOL for module in plugins.load_plugins(_here())]


def tool_of(path: Path) -> str | None:
    """The name of the tool whose output a file looks like, None if no importer knows it; OSError if open fails."""
    with path.open("rb") as file:
        text = without_lead(file.read(LARGEST_BYTES).decode(errors="replace"))
    return next((module.TOOL for module in plugins.load_plugins(_here()) if module.looks_like(text)), None)


def _read_with(module: ModuleType, text: str, path: Path) -> ImportedHistogram:
    try:
        found: ImportedHistogram = module.read(text)
    except UserError as problem:
        raise UserError(f"{path} looks like the output of {module.TOOL}, but {problem}") from None
    return found


def _text(path: Path) -> str:
    try:
        files.refuse_what_waits(path)
        if path.stat().st_size > LARGEST_BYTES:
            raise UserError(f"{path} is larger than {LARGEST_BYTES // 1024 // 1024} MiB, more than any such output")
        # Editors and shells of other systems put a mark of the byte order at the beginning.
        return without_lead(path.read_text("utf-8-sig", errors="replace"))
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None


def without_lead(text: str) -> str:
    """A JSON document without the lines before it, such as those of sudo; any other text unchanged."""
    begin = _JSON_BEGIN.search(text[:LEAD_BYTES])
    if begin and text.rstrip().endswith("}") and "{" not in text[: begin.start()]:
        return text[begin.start() :]
    return text


def _here() -> ModuleType:
    return sys.modules[__name__]
