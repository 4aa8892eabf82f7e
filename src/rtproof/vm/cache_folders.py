# SPDX-License-Identifier: Apache-2.0
"""The lab's folders on this host: its cache, a scratch folder for each guest, and folders with a list of their files.

Such a list has size, time of change and SHA-256 of each file of the folder (see rtproof.lab.stored_folders).
"""

import fcntl
import hashlib
import json
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.agents.build import cache_dir
from rtproof.core import files, scratch
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
    """As ``scratch.scratch_folder``, for one guest. TargetError if no folder can be made."""
    base = lab_cache() / "scratch"
    with ExitStack() as stack:
        try:
            base.mkdir(parents=True, exist_ok=True)
            scratch.sweep(base)
            check_room(base, SCRATCH_MIB, "a guest")
            folder = stack.enter_context(scratch.scratch_folder(base))
        except OSError as error:
            raise TargetError(f"no temporary folder can be made in {base}: {error.strerror}") from error
        yield folder


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """Hold the lock of a file within the context. Other processes wait for it. A missing file is created."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_cache_file(path: Path, content: bytes) -> None:
    """Write a file of the cache whole, so that no other process ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, content)


FILE_LIST = "files.json"


@dataclass(frozen=True)
class StoredFolder:
    """A folder of the cache. ``facts``: what it contains. ``size``: bytes of its files."""

    folder: Path
    facts: Mapping[str, str]
    size: int


def find_stored(place: Path) -> StoredFolder | None:
    """The folder that the cache has at ``place``. None if there is none or it is damaged."""
    try:
        listed = json.loads((place / FILE_LIST).read_text())
        files: dict[str, Any] = listed["files"]
        if not all(_is_as_listed(place / name, entry) for name, entry in files.items()):
            return None
        dict.items(listed["facts"])
        size = sum(entry["size"] for entry in files.values())
        return StoredFolder(place, listed["facts"], size)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_as_listed(path: Path, entry: Mapping[str, Any]) -> bool:
    now = path.lstat()
    if not stat.S_ISREG(now.st_mode) or now.st_size != entry["size"]:
        return False
    return bool(now.st_mtime_ns == entry["mtime_ns"] or file_sha256(path) == entry["sha256"])


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
