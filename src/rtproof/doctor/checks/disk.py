# SPDX-License-Identifier: Apache-2.0
"""Whether records, built agents and the lab's guests have a place on the disk."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rtproof.agents.build import cache_dir
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host

FEATURES = ("measure", "lab", "several-cpus", "loads")
RUN_MIB, LAB_MIB = 64, 512
"""Room for some runs, and for a kernel, a QEMU and some guests."""
OTHER_CACHE = "export XDG_CACHE_HOME=/var/tmp/cache-of-$(id -u)"
NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR)
"""With these a file system says that it has no files without names."""


def check(host: Host) -> Iterator[Finding]:
    """Make a file without a name in each folder, or in the nearest folder above it that is there."""

    yield _current_folder()
    try:
        cache = cache_dir().parent
    except UserError as refusal:
        command = OTHER_CACHE
        for feature, needed in (("measure", False), ("lab", True), ("several-cpus", True)):
            yield Finding("cache folder", (feature,), State.MISSING, f"{refusal}.", command, needed)
        return
    command = OTHER_CACHE
    yield _place("cache folder", ("lab", "several-cpus"), cache, LAB_MIB, command)
    temporary = Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - the loads' own default
    yield _place("temporary folder", ("loads",), temporary, 2 * RUN_MIB, "export TMPDIR=/var/tmp")


def _current_folder() -> Finding:
    name, command = "current folder", "cd"
    try:
        return _place(name, ("measure",), Path.cwd(), RUN_MIB, command)
    except OSError as error:
        meaning = f"The current folder cannot be used ({error.strerror}), so no run can be kept in it."
        return Finding(name, ("measure",), State.MISSING, meaning, command)


def why_nothing_fits(folder: Path) -> str:
    """Why nothing can be written to a folder, or to the nearest one above it that is there; "" if it can."""
    return _why_not_writable(next(each for each in (folder, *folder.parents) if _is_seen(each)))


def _place(name: str, features: tuple[str, ...], folder: Path, needed_mib: int, command: str) -> Finding:
    there = next(each for each in (folder, *folder.parents) if _is_seen(each))
    refusal = _why_not_writable(there)
    if refusal:
        meaning = f"Nothing can be written to {folder} ({refusal})."
        return Finding(name, features, State.MISSING, meaning, command)
    free_mib = shutil.disk_usage(there).free >> 20
    if free_mib < needed_mib:
        meaning = f"{folder} has {free_mib} MiB of room, and {needed_mib} MiB are soon used."
        return Finding(name, features, State.LIMITED, meaning, command, needed=False)
    return Finding(name, features, State.OK, f"{folder} can be written to and has {free_mib:,} MiB of room.")


def _is_seen(folder: Path) -> bool:
    """Whether a folder is there. One inside of a folder that the user may not enter is not seen."""
    try:
        return folder.exists()
    except OSError:
        return False


def _why_not_writable(folder: Path) -> str:
    """Why no file can be made in a folder; "" if one can. The file has no name and is gone when it is closed."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except IsADirectoryError:
        return _why_not_accessible(folder)
    except OSError as error:
        return _why_not_accessible(folder) if error.errno in NO_UNNAMED_FILES else error.strerror or "error"
    return ""


def _why_not_accessible(folder: Path) -> str:
    with suppress(OSError):
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            return "Read-only file system"
    return "" if os.access(folder, os.W_OK | os.X_OK) else "Permission denied"
