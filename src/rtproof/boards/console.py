# SPDX-License-Identifier: Apache-2.0
"""The bytes of a console: a tty of this host, a socket of a terminal server, or a program such as socat.

``Console`` waits for words in them, and opens the line anew when it is gone.
"""

import fcntl
import itertools
import os
import select
import socket
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rtproof.core.errors import LinkError, UserError

PIECE = 4096
CONNECT_S = 15
LONGEST_STALL_S = 60
IAC, DO_NOT, DO, WILL_NOT, WILL, SB, SE = 255, 254, 253, 252, 251, 250, 240
"""Telnet's commands (RFC 854)."""


class ConsoleLine(Protocol):
    """A console's bytes, both ways."""

    def send(self, content: bytes) -> None:
        """LinkError if the line is gone."""

    def receive(self, timeout_s: float) -> bytes | None:
        """None if nothing came in time; LinkError if the line is gone."""

    def close(self) -> None:
        """Give the line back as it was found."""


class FileLine:
    """A line that is two file descriptors."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing

    def send(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            if not select.select([], [self._writing], [], LONGEST_STALL_S)[1]:
                raise LinkError(f"nothing went through for {LONGEST_STALL_S} s")
            try:
                rest = rest[os.write(self._writing, rest[:PIECE]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise LinkError(f"the console is gone: {error.strerror}") from None

    def receive(self, timeout_s: float) -> bytes | None:
        if not select.select([self._reading], [], [], max(0.0, timeout_s))[0]:
            return None
        try:
            content = os.read(self._reading, PIECE)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkError(f"the console is gone: {error.strerror}") from None
        if not content:
            raise LinkError("the console is gone: it ended")
        return content

    def close(self) -> None:
        """Nothing: the owner of the files closes them."""


class TtyLine(FileLine):
    """A serial port (termios(3)), raw, eight bits, at this speed. Closing it brings its settings from before back.

    Other programs that lock what they open, such as picocom, are kept out meanwhile.
    """

    def __init__(self, device: Path, baud: int) -> None:
        speed = getattr(termios, f"B{baud}", None)
        if not speed:
            raise UserError(f"baud={baud} is no speed of a serial port here")
        try:
            self._file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise UserError(f"the serial port {device} cannot be opened: {error.strerror}") from None
        super().__init__(self._file, self._file)
        try:
            self._before = termios.tcgetattr(self._file)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # As cfmakeraw(3), without flow control, and without a modem's lines.
            flags = termios.CS8 | termios.CREAD | termios.CLOCAL
            termios.tcsetattr(self._file, termios.TCSANOW, [0, 0, flags, 0, speed, speed, self._before[-1]])
        except termios.error:
            os.close(self._file)
            raise UserError(f"{device} is no serial port") from None
        except OSError:
            os.close(self._file)
            raise UserError(f"another program uses the serial port {device}") from None
        if termios.tcgetattr(self._file)[5] != speed:
            self.close()
            raise UserError(f"the serial port {device} cannot do {baud} baud")

    def close(self) -> None:
        with suppress(termios.error):
            termios.tcsetattr(self._file, termios.TCSANOW, self._before)
        os.close(self._file)


class SocketLine:
    """A TCP connection to a terminal server such as ser2net: raw, or telnet, whose commands are refused."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isascii() or not port.isdecimal():
            raise UserError(f"address={address} is not HOST:PORT")
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), CONNECT_S)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise LinkError(f"the console at {address} cannot be reached: {why}") from None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)  # what waits here cannot be taken back
        self._files = FileLine(self._socket.fileno(), self._socket.fileno())
        self._command = bytearray()

    def send(self, content: bytes) -> None:
        self._files.send(content)

    def receive(self, timeout_s: float) -> bytes | None:
        content = self._files.receive(timeout_s)
        return self._without_telnet(content) if content else content

    def _without_telnet(self, content: bytes) -> bytes:
        plain = bytearray()
        for byte in content:
            if self._command:
                self._take(byte, plain)
            elif byte == IAC:
                self._command.append(byte)
            else:
                plain.append(byte)
        return bytes(plain)

    def _take(self, byte: int, plain: bytearray) -> None:
        """One more byte of a command. Every offer and wish is refused, as a plain terminal would."""
        self._command.append(byte)
        kind = self._command[1]
        if kind == IAC:
            plain.append(IAC)
        elif kind in (DO, WILL) and len(self._command) == 3:
            self.send(bytes((IAC, WILL_NOT if kind == DO else DO_NOT, byte)))
        elif kind == SB:
            if self._command[-2:] != bytes((IAC, SE)):
                return
        elif kind in (DO, DO_NOT, WILL, WILL_NOT) and len(self._command) < 3:
            return
        self._command.clear()

    def close(self) -> None:
        self._socket.close()


class ProgramLine(FileLine):
    """A program whose standard input and output are the console, such as ``virsh console NAME``."""

    def __init__(self, words: Sequence[str]) -> None:
        try:
            self._popen = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise UserError(f"{words[0]} cannot be started: {error.strerror}") from None
        assert self._popen.stdin
        assert self._popen.stdout
        super().__init__(self._popen.stdout.fileno(), self._popen.stdin.fileno())

    def close(self) -> None:
        self._popen.terminate()
        try:
            self._popen.wait(2)
        except subprocess.TimeoutExpired:
            self._popen.kill()
        self._popen.communicate()


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
