# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, one file for each format.

An importer module has ``TOOL: str`` (whose format it is), ``looks_like(text: str) -> bool`` and
``read(text: str) -> Imported``. Its docstring says what the format holds and what it loses. UserError, one sentence
without the file's name, for a text of that tool that makes no sense.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from rtproof import plugins
from rtproof.analysis.counts import Counts
from rtproof.errors import UserError

LARGEST_BYTES = 64 * 1024 * 1024
"""More than the longest histogram that any of these tools writes."""


@dataclass(frozen=True)
class Imported:
    """What a tool printed about one measurement; None where it does not say. Latencies may be negative (early).

    tool, title: whose it is and what it measured. duration_ns: how long it ran by its own account; asked_duration_ns:
    what it was asked for. overruns, mode_switches: as it counted them. histogram: of single samples. notes: sentences
    on what the format cannot tell.
    """

    tool: str
    title: str
    period_ns: int | None = None
    priority: int | None = None
    duration_ns: int | None = None
    asked_duration_ns: int | None = None
    count: int | None = None
    min_ns: int | None = None
    mean_ns: int | None = None
    max_ns: int | None = None
    overruns: int | None = None
    mode_switches: int | None = None
    histogram: Counts | None = None
    notes: tuple[str, ...] = ()


def read(path: Path) -> Imported:
    """Read a file of any tool that is known; UserError if it cannot be read, or is of none of them."""
    text = _text(path)
    for module in plugins.load_all(_here()):
        if module.looks_like(text):
            return _read_with(module, text, path)
    known = ", ".join(module.TOOL for module in plugins.load_all(_here()))
    raise UserError(f"{path} is not the output of a tool that can be read here: {known}")


def _read_with(module: ModuleType, text: str, path: Path) -> Imported:
    try:
        found: Imported = module.read(text)
    except UserError as problem:
        raise UserError(f"{path} looks like the output of {module.TOOL}, but {problem}") from None
    return found


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise UserError(f"{path} is larger than {LARGEST_BYTES // 1024 // 1024} MiB, more than any such output")
        return path.read_text(errors="replace")
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror}") from None


def _here() -> ModuleType:
    return sys.modules[__name__]
