# SPDX-License-Identifier: Apache-2.0
"""A cache of folders held to a size: those not used for longest go first, but none that a running program has used.

A folder's time of change is that of its last use. Who uses the cache has a locked file in it until the end, whose time
is that of the beginning: whatever was used since the first of these began stays.
"""

import fcntl
import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rtproof.errors import UserError
from rtproof.vm.places import locked

KEPT_BYTES = 1 << 30
"""What all finished cells may take together: many thousand of a few seconds."""
USERS = "users"
LOCK = "lock"


@functools.cache
def enrol(root: Path) -> TextIO:
    """Keep what this process uses from now on, until it ends. UserError if the cache can't be written."""
    with _held(root):
        users = root / USERS
        users.mkdir(exist_ok=True)
        file = (users / str(os.getpid())).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        return file


def use(folder: Path) -> bool:
    """Note that a folder of the cache is used now; whether it is still there."""
    if not folder.is_dir():
        return False
    with _held(folder.parent):
        try:
            os.utime(folder)
        except FileNotFoundError:
            return False
    return True


def bound(root: Path, most_bytes: int = KEPT_BYTES) -> None:
    """Remove what is beyond the size, the longest unused first, and nothing that a user may hold."""
    with _held(root):
        since_ns = min(_users(root), default=None)
        folders = sorted((_used_ns(folder), folder) for folder in root.iterdir() if _is_entry(folder))
        total = sum(_size(folder) for _, folder in folders)
        for used_ns, folder in folders:
            if total <= most_bytes or (since_ns is not None and used_ns >= since_ns):
                return
            total -= _size(folder)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(root: Path) -> Iterator[None]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / LOCK):
            yield
    except OSError as error:
        raise UserError(f"cannot keep the cells in {root}: {error.strerror}") from error


def _users(root: Path) -> Iterator[int]:
    """When each that still runs began. The kernel has let go of the lock of one that was killed."""
    for file in (root / USERS).glob("*"):
        with file.open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield file.stat().st_mtime_ns
            else:
                file.unlink()


def _is_entry(path: Path) -> bool:
    return path.is_dir() and path.name != USERS


def _used_ns(folder: Path) -> int:
    return folder.stat().st_mtime_ns


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
