# SPDX-License-Identifier: Apache-2.0
"""The lab's folders on this host: its cache, and a scratch folder for each guest while it runs."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtproof.agents.build import cache_dir
from rtproof.core.errors import TargetError


def lab_cache() -> Path:
    """The lab's part of the cache (XDG base directory specification)."""
    return cache_dir().parent / "lab"


SCRATCH_MIB = 128
"""Disk space for the files of one guest: its first file system, the memory shared with it, and logs."""


def check_room(folder: Path, mib: int, what: str) -> None:
    """Raise TargetError if the disk of the folder has less than ``mib`` MiB free. ``what`` begins the sentence."""
    free = shutil.disk_usage(folder).free >> 20
    if free < mib:
        raise TargetError(f"{what} may need {mib} MiB of disk in {folder}, and {free} MiB are free")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for one guest, removed at the end of the context.

    Folders that killed programs left behind are removed at the next use. TargetError if no folder can be made.
    """
    base = lab_cache() / "scratch"
    try:
        base.mkdir(parents=True, exist_ok=True)
        check_room(base, SCRATCH_MIB, "a guest")
        with lock_held(base / "lock"):
            _sweep(base)
            folder = Path(tempfile.mkdtemp(dir=base))
            held = (folder / "lock").open("w")
            fcntl.flock(held, fcntl.LOCK_EX)
    except OSError as error:
        raise TargetError(f"no temporary folder can be made in {base}: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        held.close()


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """Hold the lock of a file within the context. Other processes wait for it. A missing file is created."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_cache_file(path: Path, content: bytes) -> None:
    """Write a file of the cache whole, so that no other process ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _sweep(base: Path) -> None:
    """Remove the folders of dead programs. A program that still runs holds the lock in its folder."""
    for lock in base.glob("*/lock"):
        with suppress(OSError), lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
