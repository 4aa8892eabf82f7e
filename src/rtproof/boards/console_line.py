# SPDX-License-Identifier: Apache-2.0
"""The bytes of a console: a tty of this host, a socket of a terminal server, or a program such as socat."""

import fcntl
import os
import select
import socket
import subprocess
import termios
from collections.abc import Sequence
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
            termios.tcsetattr(self._file, termios.TCSANOW, _raw(self._before, speed))
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


def _raw(before: list[int | list[bytes | int]], speed: int) -> list[int | list[bytes | int]]:
    """The settings of cfmakeraw(3) at a speed, without flow control, and without a modem's lines."""
    *_, controls = before
    flags = termios.CS8 | termios.CREAD | termios.CLOCAL
    return [0, 0, flags, 0, speed, speed, controls]


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
        elif not self._is_whole(kind):
            return
        self._command.clear()

    def _is_whole(self, kind: int) -> bool:
        if kind == SB:
            return self._command[-2:] == bytes((IAC, SE))
        return kind not in (DO, DO_NOT, WILL, WILL_NOT) or len(self._command) == 3

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
