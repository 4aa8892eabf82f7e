# SPDX-License-Identifier: Apache-2.0
"""What the lab fetches and builds: folders in the user's cache, whole or not there, with a list of their files beside.

A folder is filled under another name and renamed, under a lock, so that two labs at once fetch once. The list has size,
time of change and SHA-256 of each file. A file whose size and time are as listed is taken to be the same; any other is
read again, and if its SHA-256 is not the listed one, the folder counts as damaged and is made anew.
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.errors import UserError

LIST = "files.json"


@dataclass(frozen=True)
class Stored:
    """A folder of the cache. ``facts`` say what it is; ``size`` counts the bytes of its files."""

    folder: Path
    facts: Mapping[str, str]
    size: int
    sha256: Mapping[str, str]


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Hold the lock of a place of the cache; UserError if the cache cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.with_name(place.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"cannot keep {place.name} in {place.parent}: {error.strerror or error}") from error


def obtain(place: Path, fill: Callable[[Path], Mapping[str, str]], again: bool = False) -> Stored:
    """The folder ``place``, made by ``fill`` unless it is there and whole.

    ``fill`` gets an empty folder beside it and returns the facts. If it fails, what was there stays.
    """
    with locked(place):
        found = None if again else look(place)
        if found is None:
            _make(place, fill)
            found = look(place)
    if found is None:
        raise UserError(f"{place} changes while it is being written: is another program at work there?")
    return found


def _make(place: Path, fill: Callable[[Path], Mapping[str, str]]) -> None:
    part = place.with_name(place.name + ".part")
    discard(part)
    part.mkdir()
    try:
        facts = fill(part)
        files = {str(path.relative_to(part)): _entry(path) for path in _regular_files(part)}
        (part / LIST).write_text(json.dumps({"facts": dict(facts), "files": files}, indent=0))
        discard(place)
        part.rename(place)
    finally:
        discard(part)


def discard(path: Path) -> None:
    """Remove a folder or a file, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def look(place: Path) -> Stored | None:
    """What is in the cache at ``place``; None if it is not there, or damaged."""
    try:
        listed = json.loads((place / LIST).read_text())
        files: dict[str, Any] = listed["files"]
        if not all(_is_as_listed(place / name, entry) for name, entry in files.items()):
            return None
        size = sum(entry["size"] for entry in files.values())
        return Stored(place, listed["facts"], size, {name: entry["sha256"] for name, entry in files.items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_as_listed(path: Path, entry: Mapping[str, Any]) -> bool:
    now = path.lstat()
    if not stat.S_ISREG(now.st_mode) or now.st_size != entry["size"]:
        return False
    return bool(now.st_mtime_ns == entry["mtime_ns"] or file_sha256(path) == entry["sha256"])


def _entry(path: Path) -> dict[str, Any]:
    status = path.lstat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": file_sha256(path)}


def _regular_files(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(base, name)
            if not path.is_symlink():
                yield path


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
