# SPDX-License-Identifier: Apache-2.0
"""Drive the GPIO inputs of a guest from outside, and see what it answers on its outputs.

The boards that QEMU has for ARM come with a PL061, an ordinary GPIO chip with interrupts for which kernels have a
driver. QEMU's own test interface (qtest: docs/devel/testing of its sources) sets its inputs and tells of its outputs.
It is added while the guest runs, which needs QEMU 7.0.
"""

import secrets
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rtproof.errors import TargetError
from rtproof.vm.process import Guest

_CHIP = "pl061"
_DEVICES = "/machine/unattached"
_NAME = "edges"
_PATIENCE_S = 60


@dataclass(frozen=True)
class Change:
    """An output of the guest went to another level."""

    line: int
    level: bool


class Lines:
    """The chip's lines, as seen from outside, over a connection to the test interface."""

    def __init__(self, connection: socket.socket, chip: str) -> None:
        self._socket = connection
        self._chip = chip
        self._rest = b""
        self._changes: deque[Change] = deque()
        self._command(f"irq_intercept_out {chip}")

    def drive(self, line: int, level: bool) -> None:
        """Give an input a level. TargetError if there is no such line, or no guest any more."""
        self._command(f"set_irq_in {self._chip} unnamed-gpio-in {line} {level:d}")

    def change(self, timeout_s: float) -> Change | None:
        """The oldest change of an output that was not asked for yet; None if none comes within that time."""
        end = time.monotonic() + timeout_s
        while not self._changes:
            word = self._line(end - time.monotonic())
            if word is None:
                return None
            self._note(word)
        return self._changes.popleft()

    def answer(self, line: int, level: bool, output: int, timeout_s: float) -> bool:
        """Give an input a level, and wait until an output has the same; whether it came in time."""
        self._changes.clear()
        self.drive(line, level)
        end = time.monotonic() + timeout_s
        while change := self.change(end - time.monotonic()):
            if change == Change(output, level):
                return True
        return False

    def _command(self, text: str) -> None:
        try:
            self._socket.sendall(f"{text}\n".encode())
        except OSError as error:
            raise TargetError("QEMU ended before its lines could be driven") from error
        word = ""
        while not word.startswith("OK"):
            word = self._line(_PATIENCE_S) or "FAIL it does not answer"
            if word.startswith("FAIL"):
                raise TargetError(f"QEMU refuses to {text}: {word.removeprefix('FAIL').strip()}")
            self._note(word)

    def _note(self, word: str) -> None:
        if word.startswith("IRQ "):
            _, what, line = word.split()
            self._changes.append(Change(int(line), what == "raise"))

    def _line(self, timeout_s: float) -> str | None:
        """The next line; None if it does not come within that time."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            if not self._receive(end - time.monotonic()):
                return None
        word, self._rest = self._rest.split(b"\n", 1)
        return word.decode()

    def _receive(self, timeout_s: float) -> bool:
        """Whether more came within that time."""
        if timeout_s <= 0:
            return False
        self._socket.settimeout(timeout_s)
        received = b""
        try:
            received = self._socket.recv(4096)
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        if not received:
            raise TargetError("QEMU ended unexpectedly")
        self._rest += received
        return True


@contextmanager
def lines_of(guest: Guest) -> Iterator[Lines]:
    """The lines of a running guest's first PL061. TargetError if it has none, or QEMU is older than 7.0."""
    chip = _find_chip(guest)
    address = f"rtproof-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen(1)
        listener.settimeout(_PATIENCE_S)
        where = {"type": "unix", "data": {"path": address, "abstract": True}}
        backend = {"type": "socket", "data": {"addr": where, "server": False}}
        guest.monitor.command("chardev-add", id=_NAME, backend=backend)
        connection, _ = listener.accept()
    with connection:
        qtest: dict[str, Any] = {"qom-type": "qtest", "id": _NAME, "chardev": _NAME, "log": "/dev/null"}
        guest.monitor.command("object-add", **qtest)
        yield Lines(connection, chip)


def _find_chip(guest: Guest) -> str:
    for device in guest.monitor.command("qom-list", path=_DEVICES):
        if _CHIP in device["type"]:
            return f"{_DEVICES}/{device['name']}"
    raise TargetError("this guest's board has no PL061, so it has no GPIO lines: QEMU's boards for ARM have one")
