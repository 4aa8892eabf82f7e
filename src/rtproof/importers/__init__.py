# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, one file for each format.

An importer module has ``TOOL: str``, the name of the tool, ``looks_like(text: str) -> bool`` and
``read(text: str) -> ImportedHistogram``. Its docstring says what the format holds and what it loses. ``read`` raises a
UserError for a text of that tool that makes no sense: one sentence without the file's name. A module that reads lines
has ``LINES: ToolLines``, by which a line that was cut off, or that cannot be read, is told. A module may set
``MOST_BYTES``, the largest text that it reads within 1 GiB of memory. ``_pasted.plain_text`` takes off what mails and
consoles add before ``read`` gets the text. ``_tool_output`` has what builds the result. ``linuxcnc`` is short to read.
"""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from rtproof.core import plugins
from rtproof.core.bounded import LARGEST_TEXT_BYTES, read_bounded
from rtproof.core.errors import UserError
from rtproof.summary.imported_histogram import ImportedHistogram

__all__ = ("LARGEST_BYTES", "ImportedHistogram", "plain_text_of", "read", "recognised")

LARGEST_BYTES = LARGEST_TEXT_BYTES
"""More than the longest histogram that any of these tools writes."""
MOST_BYTES = LARGEST_BYTES // 2
"""Of a text that is read by a module that does not say so itself: its words take up to thirty times as much."""
READABLE = "a run folder, a record (.rtrec), the folder of a profile, and the output of "
"""Begins the message that refuses a file. The names of the tools follow."""
STANDARD_INPUT = Path("-")
PlainText = tuple[str, tuple[str, ...]]
"""The text of a tool, and a sentence for each thing that was done to get it."""


def read(path: Path) -> ImportedHistogram:
    """The measurement in a file of any known tool; UserError if no importer knows the file or it cannot be read."""
    found = recognised(path)
    if found is None:
        name = "standard input" if path == STANDARD_INPUT else path
        raise UserError(f"{name} is not the output of a tool that can be read here: {', '.join(tools())}")
    return found


def recognised(path: Path) -> ImportedHistogram | None:
    """The measurement in a file of any known tool, None if no importer knows it; UserError if it cannot be read."""
    text, notes = plain_text_of(path)
    readers = _readers(text)
    if len(readers) > 1:
        names = " and of ".join(module.TOOL for module in readers)
        raise UserError(f"{path} looks like the output of {names}: give each in a file of its own")
    try:
        return _read_with(readers[0], text, notes) if readers else None
    except UserError as problem:
        raise UserError(f"{path} looks like the output of {readers[0].TOOL}, but {problem}") from None


def read_text(text: str) -> ImportedHistogram | None:
    """The measurement in a text of one tool; None if no importer knows it. UserError if it makes no sense."""
    from rtproof.importers import _pasted

    plain, notes = _pasted.plain_text(text.encode())
    readers = _readers(plain)
    return _read_with(readers[0], plain, notes) if readers else None


def tools() -> list[str]:
    """The names of the tools whose output can be read."""
    return [module.TOOL for module in plugins.load_plugins(sys.modules[__name__])]


def _readers(text: str) -> list[ModuleType]:
    return [module for module in plugins.load_plugins(sys.modules[__name__]) if module.looks_like(text)]


def tool_of(path: Path) -> str | None:
    """The name of the tool whose output a file looks like, None if no importer knows it.

    OSError if open fails; UserError for what cannot be unpacked and for a diff of such outputs.
    """
    from rtproof.importers import _pasted

    with path.open("rb") as file:
        content = file.read(LARGEST_BYTES)
    try:
        readers = _readers(_plain_text(content, path)[0])
    except UserError as problem:
        if isinstance(problem.__cause__, _pasted.DiffError) and not _readers(problem.__cause__.text):
            return None
        raise
    return readers[0].TOOL if readers else None


def _read_with(module: ModuleType, plain: str, done: tuple[str, ...]) -> ImportedHistogram:
    """The measurement in a plain text. done: what was done to get the text."""
    from rtproof.importers import _pasted

    most_bytes: int = getattr(module, "MOST_BYTES", MOST_BYTES)
    if len(plain) > most_bytes:
        raise UserError(f"it is larger than {most_bytes // 1024 // 1024} MiB, more than any such output")
    lines: _pasted.ToolLines | None = None if _pasted.is_document(plain) else getattr(module, "LINES", None)
    text, cut = _pasted.without_cut_line(plain, lines) if lines else (plain, ())
    found: ImportedHistogram = module.read(text)
    notes, unread = _pasted.unread_lines(text, lines, found.tool) if lines else ((), ())
    return replace(found, notes=(*found.notes, *done, *notes), doubts=(*found.doubts, *cut, *unread))


def plain_text_of(path: Path) -> PlainText:
    """The text in a file, or in standard input for "-", without what mails and consoles add. UserError if unreadable.

    The sentences say what was taken off.
    """
    try:
        source, name = (sys.stdin.buffer, "standard input") if path == STANDARD_INPUT else (path, None)
        content = read_bounded(source, LARGEST_BYTES, name)
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None
    return _plain_text(content, path)


def _plain_text(content: bytes, path: Path) -> PlainText:
    from rtproof.importers import _pasted  # a command that reads runs alone does not wait for it

    try:
        return _pasted.plain_text(content)
    except UserError as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
