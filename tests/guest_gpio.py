# SPDX-License-Identifier: Apache-2.0
"""Drive the GPIO inputs of a guest from this host, and read the answers on its outputs.

QEMU's boards for ARM have a PL061, an ordinary GPIO chip with interrupts, for which kernels have a driver. QEMU's own
test interface (qtest: docs/devel/testing of its sources) sets the chip's inputs and reports its outputs. The interface
is added while the guest runs, which needs QEMU 7.0.
"""

import secrets
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtproof.core.errors import TargetError
from rtproof.vm.qemu_process import Guest, QemuLines

_CHIP = "pl061"
_DEVICES = "/machine/unattached"
_QTEST_NAME = "edges"
_REPLY_TIMEOUT_S = 60


LevelChange = tuple[int, bool]
"""One output of the guest changed: its line and its level."""


class GpioLines:
    """The lines of the GPIO chip as seen from outside of the guest, over a connection to QEMU's test interface."""

    def __init__(self, connection: socket.socket, chip: str) -> None:
        self._lines = QemuLines(connection)
        self._chip = chip
        self._changes: deque[LevelChange] = deque()
        self._command(f"irq_intercept_out {chip}")

    def drive(self, line: int, level: bool) -> None:
        """Set the level of an input. TargetError if there is no such line or the guest has ended."""
        self._command(f"set_irq_in {self._chip} unnamed-gpio-in {line} {level:d}")

    def change(self, timeout_s: float) -> LevelChange | None:
        """The oldest change of an output that was not returned before. None if there is no change within the time."""
        end = time.monotonic() + timeout_s
        while not self._changes:
            word = self._line(end - time.monotonic())
            if word is None:
                return None
            self._note(word)
        return self._changes.popleft()

    def answer(self, line: int, level: bool, output: int, timeout_s: float) -> bool:
        """Set the level of an input. Whether an output changes to the same level within the time."""
        self._changes.clear()
        self.drive(line, level)
        end = time.monotonic() + timeout_s
        while change := self.change(end - time.monotonic()):
            if change == (output, level):
                return True
        return False

    def _command(self, text: str) -> None:
        try:
            self._lines.socket.sendall(f"{text}\n".encode())
        except OSError as error:
            raise TargetError("QEMU ended before its lines could be driven") from error
        word = ""
        while not word.startswith("OK"):
            word = self._line(_REPLY_TIMEOUT_S) or "FAIL it does not answer"
            if word.startswith("FAIL"):
                raise TargetError(f"QEMU refuses the command {text}: {word.removeprefix('FAIL').strip()}")
            self._note(word)

    def _note(self, word: str) -> None:
        if word.startswith("IRQ "):
            _, what, line = word.split()
            self._changes.append((int(line), what == "raise"))

    def _line(self, timeout_s: float) -> str | None:
        """The next line from QEMU; None if no line arrives within the time. TargetError if QEMU has ended."""
        line = self._lines.next(timeout_s)
        return None if line is None else line.decode()


@contextmanager
def gpio_lines(guest: Guest) -> Iterator[GpioLines]:
    """The lines of a running guest's first PL061. TargetError if the guest has none or QEMU is older than 7.0."""
    chip = _find_chip(guest)
    address = f"rtproof-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen(1)
        listener.settimeout(_REPLY_TIMEOUT_S)
        where = {"type": "unix", "data": {"path": address, "abstract": True}}
        backend = {"type": "socket", "data": {"addr": where, "server": False}}
        guest.monitor.command("chardev-add", id=_QTEST_NAME, backend=backend)
        connection, _ = listener.accept()
    with connection:
        qtest: dict[str, Any] = {"qom-type": "qtest", "id": _QTEST_NAME, "chardev": _QTEST_NAME, "log": "/dev/null"}
        guest.monitor.command("object-add", **qtest)
        yield GpioLines(connection, chip)


def _find_chip(guest: Guest) -> str:
    for device in guest.monitor.command("qom-list", path=_DEVICES):
        if _CHIP in device["type"]:
            return f"{_DEVICES}/{device['name']}"
    raise TargetError("this guest's board has no PL061, so it has no GPIO lines: QEMU's boards for ARM have one")
