# SPDX-License-Identifier: Apache-2.0
"""Files of the user's: those that are read do not wait; new ones are never over another, and whole or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtproof.errors import UserError


def refuse_what_waits(path: Path) -> None:
    """UserError for a pipe, a socket or a device, whose reader may wait for ever. OSError if there is nothing."""
    # Asked before it is opened: opening a pipe waits for a writer.
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UserError(f"cannot read {path}: it is a pipe or a device and not a file")


def refuse_existing(path: Path) -> None:
    """UserError if there is anything at the path."""
    if path.exists() or path.is_symlink():
        raise UserError(f"{path} exists already: nothing is ever written over, so give another name")


@contextmanager
def no_empty_folders(path: Path) -> Iterator[None]:
    """If anything fails, of the folders down to the path those that were not there before are removed where empty."""
    new = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        yield
    except BaseException:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def new_path(path: Path) -> Iterator[Path]:
    """A path that nothing has yet; what was written there is removed if writing fails, and the error has its name."""
    refuse_existing(path)
    try:
        yield path
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
