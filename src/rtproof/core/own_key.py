# SPDX-License-Identifier: Apache-2.0
"""The key of this user on this computer. It signs what makes rtproof run commands, so that a stranger's file is known.

Where there is no key and none can be made, nothing is signed, and nothing counts as signed.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from rtproof.core.errors import UserError
from rtproof.core.files import home_folder

SIZE = 32


def sign(content: bytes) -> str:
    """The signature. The first one makes the key."""
    with contextlib.suppress(OSError, UserError):
        path = _path()
        if not os.path.lexists(path):
            _make(path)
    return _signature(content)


def has_signed(content: bytes, signature: str) -> bool:
    """Whether this user's key on this computer made the signature."""
    return bool(signature) and hmac.compare_digest(_signature(content).encode(), signature.encode())


def _signature(content: bytes) -> str:
    key = _read()
    return hmac.new(key, content, hashlib.sha256).hexdigest() if key else ""


def _path() -> Path:
    """In the state folder (XDG base directory specification). UserError if this user has no home folder."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else home_folder() / ".local" / "state") / "rtproof" / "key"


def _make(path: Path) -> None:
    """Whole or not at all: two runs may begin at once, and then the first key stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    with contextlib.suppress(FileExistsError):
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SIZE))
            path.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)


def _read() -> bytes:
    """Empty if there is no key that only this user can have written and read."""
    try:
        opened = os.open(_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
            key = file.read(SIZE + 1) if own else b""
    except (OSError, UserError):
        return b""
    return key if len(key) == SIZE else b""
