# SPDX-License-Identifier: Apache-2.0
"""What a simulated agent says while it plays, never further ahead than whoever listens, and when it is told to stop."""

import array
import fcntl
import os
import select
import signal
import stat
import sys
import termios
import time
from collections.abc import Iterable
from types import FrameType

from rtproof.record import EndReason

PAUSE_S = 0.0001
EAGER = 200
"""Looks at the pipe without a pause: the reader is mostly quick."""


class Listener:
    """Whoever listens on standard error. ``stop``: why the run has to end now, None while it goes on."""

    def __init__(self, stops_with_input: bool) -> None:
        self.stop: EndReason | None = None
        self._fd = sys.stderr.fileno()
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._fd).st_mode)
        self._output = select.poll()
        self._output.register(self._fd, 0)
        self._input = select.poll() if stops_with_input else None
        if self._input:
            self._input.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)

    def tell(self, lines: Iterable[str]) -> None:
        """Say lines and wait until they are read; nobody there any more is a reason to stop."""
        try:
            self._write("".join(line + "\n" for line in lines).encode())
            self._wait_until_read()
        except BrokenPipeError:
            self.stop = EndReason.HOST_GONE
        if self._input and self._input.poll(0) and not os.read(sys.stdin.fileno(), 4096):
            self.stop = EndReason.HOST_GONE

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._fd, text) :]

    def _wait_until_read(self) -> None:
        """Nobody is told when a pipe becomes empty, so it is looked at."""
        looks = 0
        while self._is_pipe and not self.stop and self._unread():
            looks += 1
            time.sleep(0 if looks < EAGER else PAUSE_S)

    def _unread(self) -> int:
        """Bytes that wait in the pipe. A pipe without a reader keeps them for ever, and is in error."""
        if self._output.poll(0):
            raise BrokenPipeError
        waiting = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, waiting)
        return waiting[0]

    def _asked_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop = EndReason.INTERRUPTED
