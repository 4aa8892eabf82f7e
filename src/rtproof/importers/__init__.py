# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, one file for each format.

An importer module has ``TOOL: str`` (whose format it is), ``looks_like(text: str) -> bool`` and
``read(text: str) -> Imported``. Its docstring says what the format holds and what it loses. UserError, one sentence
without the file's name, for a text of that tool that makes no sense.
"""

import sys
from pathlib import Path
from types import ModuleType

from rtproof.core import files, plugins
from rtproof.core.errors import UserError
from rtproof.summary.imported_histogram import ImportedHistogram

__all__ = ("LARGEST_BYTES", "ImportedHistogram", "read", "recognised")

READABLE = "a run folder, a record (.rtrec), the folder of a profile, and the output of "
"""What comes before the names of the tools where a file is refused."""
LARGEST_BYTES = 64 * 1024 * 1024
"""More than the longest histogram that any of these tools writes."""


def read(path: Path) -> ImportedHistogram:
    """Read a file of any tool that is known; UserError if it cannot be read, or is of none of them."""
    found = recognised(path)
    if found is None:
        raise UserError(f"{path} is not the output of a tool that can be read here: {', '.join(tools())}")
    return found


def recognised(path: Path) -> ImportedHistogram | None:
    """The same, but None for a file of no tool that is known."""
    text = _text(path)
    readers = (module for module in plugins.load_plugins(_here()) if module.looks_like(text))
    module = next(readers, None)
    return _read_with(module, text, path) if module else None


def tools() -> list[str]:
    """Whose output can be read."""
    return [module.TOOL for module in plugins.load_plugins(_here())]


def tool_of(path: Path) -> str | None:
    """Whose output a file looks like; None for a file of no tool that is known. OSError as of open."""
    with path.open("rb") as file:
        text = file.read(LARGEST_BYTES).decode(errors="replace")
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
        return path.read_text(errors="replace")
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None


def _here() -> ModuleType:
    return sys.modules[__name__]
