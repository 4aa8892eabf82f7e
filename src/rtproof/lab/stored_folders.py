# SPDX-License-Identifier: Apache-2.0
"""Folders in the lab's cache: filled once, checked when used, and removed when the cache grows too large.

A folder is filled under another name and then renamed. A lock is held meanwhile, so that two labs at once fetch only
once. A list in the folder has size, time of change and SHA-256 of each file. A file with the listed size and time
counts as unchanged. Any other file is read again. If its SHA-256 is not the listed one, the folder is damaged and is
filled again.

When a cache has grown beyond its size, the folders unused for longest are removed: a folder's time of change
is its last use. Each program that uses the cache holds a shared lock until it ends. A program that begins and finds no
other one cuts the cache.
"""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from rtproof.core.errors import RtproofError, UserError
from rtproof.vm.cache_folders import FILE_LIST, StoredFolder, file_sha256, find_stored


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


def obtain_folder(
    place: Path, fill: Callable[[Path], Mapping[str, str]], again: bool = False, *, keep_failed: bool = False
) -> StoredFolder:
    """The folder ``place``. It is filled unless it exists undamaged. ``again``: fill it in any case.

    ``fill`` gets an empty folder and returns the facts. If ``fill`` fails, the old folder stays. ``keep_failed``: what
    it left when it failed with a sentence stays too, for its logs, until the next attempt.
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
        files = {str(path.relative_to(part)): _file_entry(path) for path in _regular_files(part)}
        (part / FILE_LIST).write_text(json.dumps({"facts": dict(facts), "files": files}, indent=0))
        discard(place)
        part.rename(place)
    except BaseException as problem:
        if not (keep_failed and isinstance(problem, RtproofError)):
            discard(part)
        raise


def discard(path: Path) -> None:
    """Remove a folder or a file, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _file_entry(path: Path) -> dict[str, Any]:
    status = path.lstat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": file_sha256(path)}


def _regular_files(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(base, name)
            if not path.is_symlink():
                yield path


# Keep a cache within its size: remove the folders that were not used for longest (see the module docstring).


MOST_CACHE_BYTES = 1 << 30
"""Disk space for all finished cells together. It holds many thousand cells of a few seconds each."""
LOCK_NAME = "lock"
_used: dict[Path, TextIO] = {}


def use_cache(root: Path, cut: Callable[[], None]) -> None:
    """Keep others from removing anything of the cache until this process ends.

    ``cut``: is called first, unless this or another process uses the cache already. UserError if it can't be written.
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


def bound_cache(root: Path, most_bytes: int = MOST_CACHE_BYTES) -> None:
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
    return sorted(_entries_with_use(root)) if root.is_dir() else []


def _is_entry(path: Path) -> bool:
    """Whether a path is content of the cache instead of its book-keeping."""
    return path.name != LOCK_NAME and path.suffix != ".lock"


def _entries_with_use(root: Path) -> Iterator[tuple[int, Path]]:
    """Entries that vanish meanwhile are left out. Of a link, only the link counts: it may lead nowhere."""
    for path in filter(_is_entry, root.iterdir()):
        with suppress(FileNotFoundError):
            yield path.lstat().st_mtime_ns, path


def entry_bytes(entry: Path) -> int:
    """The bytes of a file, or of all files in a folder. Links count nothing, and files that vanish count nothing."""
    total = 0
    for path in (entry, *(entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else ())):
        with suppress(FileNotFoundError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
