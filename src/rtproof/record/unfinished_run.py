# SPDX-License-Identifier: Apache-2.0
"""What a run folder holds while its run goes on on a board, so that any host with the folder can take the run up.

Whoever takes it up runs what it names. So it is signed, and others than its writer are asked first.
"""

import hashlib
import hmac
import os
import secrets
import shlex
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from rtproof.core import files
from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import UserError
from rtproof.core.files import home_folder

RECORD_NAME, GENERATOR_NAME = "run.rtrec", "generator.rtrec"
"""The records of a run folder: of the run, and of the second board that gave it its signals."""
NAME = "unfinished.json"
OF_RECORD = {RECORD_NAME: NAME, GENERATOR_NAME: "generator-unfinished.json"}
"""The file for each record of the folder that is still on a board."""


class UnfinishedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of ``unfinished.json``. It is removed when the record has arrived.

    target: name of its plug-in, and target_options for it. where: what the target needs to find the run again.
    goal: how long it measures, for people; length_ns: the same. signature: of all else, by the user who began the run.
    """

    target: str
    target_options: dict[str, str]
    where: dict[str, str]
    goal: str
    length_ns: int
    signature: str = ""

    def content(self) -> bytes:
        """What is signed. Keys that came later are in it only if they say something."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=""))


def write(folder: Path, run: UnfinishedRun, record: str = RECORD_NAME) -> None:
    """Write it whole. UserError if it cannot be written. record: what its record is called in the folder."""
    place = folder / OF_RECORD[record]
    signed = msgspec.structs.replace(run, signature=_sign(run.content()))
    try:
        files.write_whole(place, msgspec.json.format(msgspec.json.encode(signed)) + b"\n")
    except OSError as problem:
        raise UserError(f"cannot write {place}: {problem.strerror}") from None


def read(folder: Path, record: str = RECORD_NAME) -> UnfinishedRun:
    """UserError if the folder has no unfinished run, or what it has cannot be read."""
    place = folder / OF_RECORD[record]
    try:
        run = decode_json(read_bounded(place), UnfinishedRun, f"{place} is not a file that a run writes")
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} is no run that goes on on a board: it has no {NAME}") from None
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    words = (*run.target_options.values(), *run.where.values())
    if any("\0" in word for word in words):
        raise UserError(f"{place} is not a file that a run writes: it has a NUL in a word")
    return run


def is_there(folder: Path, record: str = RECORD_NAME) -> bool:
    """Whether the folder has an unfinished run for this record."""
    return (folder / OF_RECORD[record]).exists()


def is_own(run: UnfinishedRun) -> bool:
    """Whether this user began the run on this computer, by its signature."""
    return bool(run.signature) and hmac.compare_digest(_signature(run.content()).encode(), run.signature.encode())


def way_back(folder: Path, record: str = RECORD_NAME) -> str:
    """What fetches the record, after a colon; nothing of a run that this user did not begin here."""
    with suppress(UserError):
        if is_own(read(folder, record)):
            return f": rtproof attach {shlex.quote(str(folder))} fetches it"
    return ""


def remove(folder: Path, record: str = RECORD_NAME) -> None:
    """The record has arrived."""
    (folder / OF_RECORD[record]).unlink(missing_ok=True)
    files.flush_folder(folder)


# The key of this user on this computer. It signs what makes rtproof run commands, so that a stranger's file is known.
# Where there is no key and none can be made, nothing is signed, and nothing counts as signed.


KEY_SIZE = 32


def _sign(content: bytes) -> str:
    """The signature. The first one makes the key."""
    with suppress(OSError, UserError):
        path = _key_path()
        if not os.path.lexists(path):
            _make_key(path)
    return _signature(content)


def _signature(content: bytes) -> str:
    key = _read_key()
    return hmac.new(key, content, hashlib.sha256).hexdigest() if key else ""


def _key_path() -> Path:
    """In the state folder (XDG base directory specification). UserError if this user has no home folder."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else home_folder() / ".local" / "state") / "rtproof" / "key"


def _make_key(path: Path) -> None:
    """Whole or not at all: two runs may begin at once, and then the first key stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    with suppress(FileExistsError):
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(secrets.token_bytes(KEY_SIZE))
            path.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)


def _read_key() -> bytes:
    """Empty if there is no key that only this user can have written and read."""
    try:
        opened = os.open(_key_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
            key = file.read(KEY_SIZE + 1) if own else b""
    except (OSError, UserError):
        return b""
    return key if len(key) == KEY_SIZE else b""
