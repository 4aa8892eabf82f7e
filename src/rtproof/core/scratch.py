# SPDX-License-Identifier: Apache-2.0
"""Temporary folders. A name tells the process and when it started, so that a later one removes what killed ones left.

A folder is locked while it is used: in a container, the process of a folder in a shared place may not be seen.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = re.compile(r"\.?rtproof-host-(\d+)-(\d+)-\w+")


@contextmanager
def scratch_folder(place: Path | None = None) -> Iterator[Path]:
    """A folder for the body, in a place (the user's for temporary files; in another one, it is hidden).

    OSError if none can be made.
    """
    sweep(place)
    prefix = f"{'.' if place else ''}rtproof-host-{os.getpid()}-{_start_of(os.getpid())}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as made:
        held = os.open(made, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            yield Path(made)
        finally:
            os.close(held)


def sweep(place: Path | None = None) -> None:
    """Remove this user's folders of processes that are gone."""
    with suppress(OSError), os.scandir(place or tempfile.gettempdir()) as entries:
        for entry in entries:
            told = NAME.fullmatch(entry.name)
            if told and _start_of(int(told[1])) != int(told[2]):
                _remove(Path(entry.path))


def _start_of(pid: int) -> int:
    """In clock ticks since the boot; 0 if no such process runs."""
    try:
        state, *more = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return 0 if state in b"ZX" else int(more[18])
    except (OSError, ValueError, IndexError):
        return 0


def _remove(folder: Path) -> None:
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(opened).st_uid == os.geteuid():
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(opened)
