# SPDX-License-Identifier: Apache-2.0
"""The one thing that is asked of a board: run a command line, with standard input and output, and an exit status."""

import os
import select
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from rtproof.core.errors import LinkError
from rtproof.core.printable import clean

PIECE = 65536
LONGEST_COMPLAINT = 65536
LONGEST_STALL_S = 60
MOST_ANSWER = 64 << 20
"""More bytes than any answer has. A program that prints without end is not waited for."""
BEGIN = b"=rtproof-begin"
"""Printed before what a command prints, because some shells greet everybody first."""
LAST_WORDS_S = 1
"""How long a program may take to end once its files are closed. What it started may hold standard error longer."""


@dataclass(frozen=True)
class Answer:
    """What a command line printed, and its exit status."""

    status: int
    output: bytes
    complaint: bytes

    def words(self) -> str:
        """The last line of standard error, else of standard output, for a message."""
        said = (self.complaint.strip() or self.output.strip()).decode(errors="replace").splitlines()
        lines = [line for line in said if line != BEGIN.decode()]
        return clean(lines[-1]) if lines else "it said nothing"


class Channel(Protocol):
    """A command line that runs on the board."""

    def send(self, content: bytes) -> None:
        """Bytes for its standard input. LinkError if the connection is gone."""

    def end_input(self) -> None:
        """Close its standard input."""

    def receive(self, timeout_s: float) -> bytes | None:
        """What it printed on standard output; None if nothing came in time, and b"" once no more will come."""

    def finish(self, timeout_s: float) -> Answer:
        """Wait for its end. The answer has what ``receive`` has not taken. LinkError if it does not come in time."""

    def close(self) -> None:
        """Give the connection up. Whether the command goes on is the board's affair."""


class Shell(ABC):
    """How command lines get to a board. ``name``: for messages. ``binary``: it changes no byte on the way."""

    name: str
    binary: bool

    @abstractmethod
    def start(self, command: str) -> Channel:
        """Begin a command line of POSIX's sh. LinkError if the board cannot be reached."""

    def ask(self, command: str, given: bytes = b"", timeout_s: float = 60) -> Answer:
        """Run a command line to its end. LinkError if the connection breaks, or it takes longer than the time."""
        channel = self.start(f"echo {BEGIN.decode()}; {command}")
        try:
            if given:
                channel.send(given)
            channel.end_input()
            answer = channel.finish(timeout_s)
        finally:
            channel.close()
        _, begin, own = answer.output.partition(BEGIN)
        return Answer(answer.status, own.partition(b"\n")[2] if begin else answer.output, answer.complaint)


class ProgramChannel:
    """A program of this host whose standard files are those of a command line on the board.

    It has a session of its own, so that Ctrl-C does not break the connection. link_lost: why there is none, or "".
    """

    def __init__(self, arguments: Sequence[str], link_lost: Callable[[Answer], str]) -> None:
        try:
            self._popen = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise LinkError(f"{arguments[0]} cannot be started: {error.strerror}") from error
        assert self._popen.stdin
        assert self._popen.stdout
        assert self._popen.stderr
        self._input, self._output, self._error = self._popen.stdin, self._popen.stdout, self._popen.stderr
        os.set_blocking(self._input.fileno(), False)
        self._link_lost = link_lost
        self._complaint = bytearray()
        # Standard error is taken all the time, so that a program that complains much never waits.
        self._listener = threading.Thread(target=self._take_complaint, daemon=True)
        self._listener.start()

    def _take_complaint(self) -> None:
        while piece := os.read(self._error.fileno(), PIECE):
            self._complaint += piece
            del self._complaint[:-LONGEST_COMPLAINT]

    def send(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            if not select.select([], [self._input], [], LONGEST_STALL_S)[1]:
                raise LinkError(f"nothing went through for {LONGEST_STALL_S} s")
            try:
                rest = rest[os.write(self._input.fileno(), rest[: select.PIPE_BUF]) :]
            except BrokenPipeError:
                raise LinkError(self._ended(LONGEST_STALL_S, b"").words()) from None

    def end_input(self) -> None:
        self._input.close()

    def receive(self, timeout_s: float) -> bytes | None:
        if not select.select([self._output], [], [], timeout_s)[0]:
            return None
        return os.read(self._output.fileno(), PIECE)

    def finish(self, timeout_s: float) -> Answer:
        end = time.monotonic() + timeout_s
        output = bytearray()
        while (piece := self.receive(max(0.0, end - time.monotonic()))) != b"":
            if piece is None or time.monotonic() > end:
                raise LinkError(f"no answer within {timeout_s:g} s")
            output += piece
            if len(output) > MOST_ANSWER:
                raise LinkError(f"it prints without end: more than {MOST_ANSWER >> 20} MiB")
        return self._ended(max(0.1, end - time.monotonic()), bytes(output))

    def _ended(self, timeout_s: float, output: bytes) -> Answer:
        try:
            status = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise LinkError(f"no answer within {timeout_s:g} s") from None
        self._listener.join(LAST_WORDS_S)
        answer = Answer(status, output, bytes(self._complaint))
        if lost := self._link_lost(answer):
            raise LinkError(lost)
        return answer

    def close(self) -> None:
        self._input.close()
        self._output.close()
        try:
            self._popen.wait(LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        self._listener.join(LAST_WORDS_S)
        if not self._listener.is_alive():
            self._error.close()
