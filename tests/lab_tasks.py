# SPDX-License-Identifier: Apache-2.0
"""What processes of the lab's tests do; they import it by its name."""

import os
import signal
import time
from pathlib import Path

from rtproof.core.errors import TargetError

DEADLINE_S = 300


def say(value: str) -> str:
    return value


def refuse() -> None:
    raise TargetError("the guest never spoke")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def meet(mine: Path, other: Path) -> str:
    """Returns only if somebody else does the same at the same time."""
    mine.touch()
    deadline = time.monotonic() + DEADLINE_S
    while not other.exists():
        if time.monotonic() > deadline:
            raise TargetError("nobody came")
        time.sleep(0.01)
    return "met"


def linger(began: Path, cleaned: Path) -> None:
    """Works until it is interrupted, and then cleans up."""
    try:
        began.with_suffix(".part").write_text(str(os.getpid()))
        began.with_suffix(".part").rename(began)
        time.sleep(DEADLINE_S)
    finally:
        cleaned.touch()
