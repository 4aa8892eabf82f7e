# SPDX-License-Identifier: Apache-2.0
"""Files of the target that the record keeps: their text, or why they could not be read."""

import os
from errno import EISDIR, ENOENT

from rtproof.record import Moment, Record, SystemFile


def find(record: Record, path: str, moment: Moment = Moment.START) -> SystemFile | None:
    """What became of the attempt to read a file; None where the agent did not try."""
    for file in record.files:
        if file.path == path and file.moment is moment:
            return file
    return None


def text(record: Record, path: str, moment: Moment = Moment.START) -> str | None:
    """The content of a file, None where it could not be read."""
    file = find(record, path, moment)
    return file.content.decode(errors="replace") if file and file.errno == 0 else None


def line(record: Record, path: str, moment: Moment = Moment.START) -> str | None:
    """The content without white space at its ends (the device tree ends strings with a zero byte)."""
    found = text(record, path, moment)
    return None if found is None else found.strip(" \t\n\0")


def is_there(record: Record, path: str) -> bool | None:
    """Whether the target has a file or folder of that path; None where nobody looked, or was not let in."""
    file = find(record, path)
    if file is None:
        return None
    return {0: True, EISDIR: True, ENOENT: False}.get(file.errno)


def why_not(record: Record, path: str) -> str:
    """Why a file has no text, in words."""
    file = find(record, path)
    if file is None:
        return "not in the record"
    return os.strerror(file.errno) if file.errno else "it was empty"
