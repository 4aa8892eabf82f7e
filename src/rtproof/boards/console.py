# SPDX-License-Identifier: Apache-2.0
"""A console's bytes for those who wait for words in them, and the line behind it opened anew when it is gone."""

import itertools
import time
from collections.abc import Callable

from rtproof.boards.console_line import ConsoleLine
from rtproof.core.errors import LinkError, UserError

PACE = 512
"""Bytes that are sent before what came meanwhile is taken, because a board may wait until its echo is read."""

MOST_SEEN = 16 << 20
"""Bytes in which words are looked for. A console takes longer for them than any answer."""


class Console:
    """A line to a console. open_line: opens it; UserError or LinkError if it cannot."""

    def __init__(self, open_line: Callable[[], ConsoleLine]) -> None:
        self._open_line = open_line
        self._line: ConsoleLine | None = open_line()
        self._tokens = itertools.count(time.time_ns() // 1_000_000 % 1_000_000)
        self._waiting = b""

    def token(self) -> str:
        """A word that was not used before on this console."""
        return f"rt{next(self._tokens)}x"

    def reopen(self) -> None:
        """Close the line and open it again. LinkError if it cannot be opened any more."""
        self.close()
        try:
            self._line = self._open_line()
        except UserError as problem:
            raise LinkError(str(problem)) from None

    def close(self) -> None:
        """Give the line back."""
        line, self._line, self._waiting = self._line, None, b""
        if line:
            line.close()

    def send(self, content: bytes) -> None:
        """LinkError if the line is gone. A signal handler may call this."""
        self._open().send(content)

    def send_much(self, content: bytes) -> None:
        """As ``send``, and keeps for later what comes meanwhile."""
        for at in range(0, len(content), PACE):
            self.send(content[at : at + PACE])
            while len(self._waiting) <= MOST_SEEN and (piece := self._open().receive(0)):
                self._waiting += piece

    def receive(self, timeout_s: float) -> bytes | None:
        """What came; None if nothing did in time."""
        if self._waiting:
            piece, self._waiting = self._waiting, b""
            return piece
        return self._open().receive(timeout_s)

    def wait_for(self, seen_it: Callable[[bytes], bool], timeout_s: float, seen: bytes = b"") -> tuple[bytes, bool]:
        """What came until this is true of it, and whether it was in time. seen: what came before."""
        end = time.monotonic() + timeout_s
        while not seen_it(seen):
            left_s = end - time.monotonic()
            if left_s <= 0 or len(seen) > MOST_SEEN:
                return seen, False
            seen += self.receive(left_s) or b""
        return seen, True

    def _open(self) -> ConsoleLine:
        if not self._line:
            raise LinkError("the console is not connected")
        return self._line
