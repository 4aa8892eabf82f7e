# SPDX-License-Identifier: Apache-2.0
"""Archives that Linux unpacks at boot: cpio in the "newc" form.

Source: Documentation/driver-api/early-userspace/buffer-format.rst.
The same entries give the same bytes: no times, owners or inode numbers of this host are in them.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_MAGIC = "070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True, order=True)
class Entry:
    """One file or folder. ``path``: without a leading slash; ``mode``: type and permissions as in ``st_mode``."""

    path: str
    mode: int
    content: bytes = b""


def file(path: str, content: bytes, executable: bool = False) -> Entry:
    """A regular file."""
    return Entry(_relative(path), stat.S_IFREG | (0o755 if executable else 0o644), content)


def folder(path: str) -> Entry:
    """A folder."""
    return Entry(_relative(path), stat.S_IFDIR | 0o755)


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive of the entries and of all folders on their ways, sorted, each path once: the last one counts."""
    given = list(entries)
    parents = {str(parent) for entry in given for parent in PurePosixPath(entry.path).parents if str(parent) != "."}
    by_path = {entry.path: entry for entry in (*map(folder, parents), *given)}
    parts = [_member(number, by_path[path]) for number, path in enumerate(sorted(by_path), start=1)]
    return b"".join([*parts, _member(0, Entry(_TRAILER, 0))])


def _relative(path: str) -> str:
    return str(PurePosixPath(path)).lstrip("/")


def _member(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    head = _MAGIC + "".join(f"{number:08x}" for number in numbers)
    return _padded(head.encode() + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
