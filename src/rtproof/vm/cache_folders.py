# SPDX-License-Identifier: Apache-2.0
"""The lab's folders on this host: its cache, a scratch folder for each guest, and folders with a list of their files.

A folder with a list is filled under another name and then renamed, under a lock. A file with the listed size and time
counts as unchanged; another one is read again. If its SHA-256 is not the listed one, the folder is filled again.

When a part of the cache has grown beyond its size, the entries unused for longest are removed. Each program that uses
the cells holds a shared lock until it ends; one that begins and finds no other cuts the cache.
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rtproof.agents.build import cache_dir
from rtproof.core import files, scratch
from rtproof.core.errors import RtproofError, TargetError, UserError


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
def cache_locked(place: Path) -> Iterator[None]:
    """Hold the lock of a place of the cache within the context. UserError if the cache cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.with_name(place.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"cannot keep {place.name} in {place.parent}: {error.strerror or error}") from error


def write_cache_file(path: Path, content: bytes) -> None:
    """Write a file of the cache whole, so that no other process ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, content)


# Folders with a list of their files.


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
        for name, entry in files.items():
            now = (place / name).lstat()
            if not stat.S_ISREG(now.st_mode) or now.st_size != entry["size"]:
                return None
            if now.st_mtime_ns != entry["mtime_ns"] and file_sha256(place / name) != entry["sha256"]:
                return None
        dict.items(listed["facts"])
        size = sum(entry["size"] for entry in files.values())
        return StoredFolder(place, listed["facts"], size)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def obtain_folder(
    place: Path, fill: Callable[[Path], Mapping[str, str]], again: bool = False, *, keep_failed: bool = False
) -> StoredFolder:
    """The folder ``place``. It is filled unless it exists undamaged. again: fill it in any case.

    fill gets an empty folder and returns the facts. If it fails, the old folder stays. keep_failed: what it left when
    it failed with a sentence stays too, until the next attempt.
    """
    with cache_locked(place):
        found = None if again else find_stored(place)
        if found is None:
            _make_folder(place, fill, keep_failed)
            found = find_stored(place)
    if found is None:
        raise UserError(f"{place} changes while it is being written: is another program writing there?")
    return found


def _make_folder(place: Path, fill: Callable[[Path], Mapping[str, str]], keep_failed: bool) -> None:
    part = place.with_name(place.name + ".part")
    discard(part)
    part.mkdir()
    try:
        facts = fill(part)
        listed = {}
        for path in sorted(part.rglob("*")):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                entry = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": file_sha256(path)}
                listed[str(path.relative_to(part))] = entry
        (part / FILE_LIST).write_text(json.dumps({"facts": dict(facts), "files": listed}, indent=0))
        discard(place)
        part.rename(place)
    except BaseException as problem:
        if not (keep_failed and isinstance(problem, RtproofError)):
            discard(part)
        raise


def discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# Keep a part of the cache within its size: remove the entries that were not used for longest.


LOCK_NAME = "lock"
_used: dict[Path, TextIO] = {}


def use_cache(root: Path, cut: Callable[[], None]) -> None:
    """Keep others from removing anything of the cache until this process ends. UserError if it can't be written.

    cut: is called first, unless this or another process uses the cache already.
    """
    if root in _used:
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / LOCK_NAME).open("w")
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            cut()
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError as error:
        raise UserError(f"cannot keep the cells in {root}: {error.strerror}") from error
    _used[root] = file


@contextmanager
def unused_cache(root: Path) -> Iterator[None]:
    """Keep others from using the cache within the context. UserError if a running program uses it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / LOCK_NAME).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError("a lab is running and uses the cache: try again when it has ended") from None
        yield


def mark_used(folder: Path) -> bool:
    """Note that a folder of the cache is used now. Whether it is there."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return True


def bound_cache(root: Path, most_bytes: int) -> None:
    """Remove entries until the cache fits its size, the longest unused first."""
    entries = cache_entries(root)
    total = sum(entry_bytes(entry) for _, entry in entries)
    for _, entry in entries:
        # With no bytes allowed, also what counts none is removed: links, and folders of failed attempts.
        if most_bytes and total <= most_bytes:
            return
        total -= entry_bytes(entry)
        discard(entry)


def cache_entries(root: Path) -> list[tuple[int, Path]]:
    """The entries of a part of the cache with the time of their last use in ns, the longest unused first."""
    found = []
    for path in root.iterdir() if root.is_dir() else ():
        with suppress(FileNotFoundError):
            if path.name != LOCK_NAME and path.suffix != ".lock":
                found.append((path.lstat().st_mtime_ns, path))
    return sorted(found)


def entry_bytes(entry: Path) -> int:
    """The bytes of a file, or of all files in a folder. Links count nothing, and files that vanish count nothing."""
    total = 0
    for path in (entry, *(entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else ())):
        with suppress(FileNotFoundError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
