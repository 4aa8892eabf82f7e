# SPDX-License-Identifier: Apache-2.0
"""Open and write the user's files. Reading never waits. Writing never leaves half a file.

A new file and its name are on the disk before the program says that the file exists. So a power cut does not lose it.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from rtproof.core.errors import UserError

STANDARD_OUTPUT = Path("-")
"""The path that stands for standard output, as in many programs."""


def home_folder() -> Path:
    """The user's home folder. UserError if the user has none, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        raise UserError("this user has no home folder: set HOME to one") from None


def refuse_what_waits(path: Path) -> None:
    """Raise UserError if the path is a pipe, a socket or a device, because reading one may wait for ever.

    OSError if there is nothing at the path.
    """
    # The kind is checked before the file is opened, because opening a pipe waits for a writer.
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise UserError(f"cannot read {path}: it is a pipe or a device and not a file")
    # Reading /proc/kmsg waits for the kernel's next message, although /proc/kmsg has the mode of a regular file.
    if not found.st_size and found.st_dev == _device_of_proc():
        raise UserError(f"cannot read {path}: the kernel makes it up as it is read, so it is not a file to keep")


def _device_of_proc() -> int | None:
    try:
        return Path("/proc/self").stat().st_dev
    except OSError:
        return None


def refuse_existing(path: Path) -> None:
    """Raise UserError if there is anything at the path."""
    if path.exists() or path.is_symlink():
        raise UserError(f"{path} exists already: nothing is ever written over, so give another name")


def free_path(path: Path) -> Path:
    """The path, or if there is something the first free one of the same name with a number behind: a-2.html."""
    names = chain([path], (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2)))
    return next(each for each in names if not os.path.lexists(each))


@contextmanager
def removing_empty_folders(path: Path) -> Iterator[None]:
    """If the body fails, remove the empty folders on the way to the path that did not exist before."""
    new = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        yield
    except BaseException:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def whole_file(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Another name in the same folder, for the body to write to. Then the file is flushed and gets its own name.

    So a kill or a power cut leaves the old file or the new one. new: the name must be free (UserError). If the body
    fails, what it wrote is removed. An OSError of it names the path that was asked for.
    """
    if new:
        refuse_existing(path)
    part = path.with_name(f".rtproof-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield part
        _fsync(part)
        if new:
            refuse_existing(path)
        part.rename(path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            error.filename, error.filename2 = str(path), None
        raise
    flush_folder(path.parent)


def write_whole(path: Path, content: bytes, *, new: bool = False) -> None:
    """Write a file as ``whole_file`` does. OSError if it cannot be written."""
    with whole_file(path, new=new) as part:
        part.write_bytes(content)


def flush_file(path: Path) -> None:
    """Flush a written file and its name to the medium. OSError if the content cannot be flushed."""
    _fsync(path)
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to the medium, if the folder's file system supports that."""
    with suppress(OSError):
        _fsync(path)


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # such file systems have no medium to flush to
            raise
    finally:
        os.close(opened)
