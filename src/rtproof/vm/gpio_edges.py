# SPDX-License-Identifier: Apache-2.0
"""Drive the GPIO inputs of a guest from this host, and see the answers on its outputs.

QEMU's boards for ARM have a PL061, an ordinary GPIO chip with interrupts, for which kernels have a driver. QEMU's own
test interface (qtest: docs/devel/testing of its sources) sets the chip's inputs and reports its outputs. The interface
is added while the guest runs, which needs QEMU 7.0.

The edges stand for the second board and the scope of article 1. A generator inside the guest would share the guest's
only processor: the measured task would wait for the generator instead of the load. Edges come at this host's pace, so
the times of edges differ when a cell is run again. The lateness of each answer is counted in instructions of the
guest, like everything in virtual time. An edge waits for the answer to the edge before: a guest in virtual time can be
many times slower than this host, and would be buried under edges.
"""

import secrets
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from threading import Thread
from typing import Any

from rtproof.core.errors import TargetError
from rtproof.vm.qemu_process import Guest

_CHIP = "pl061"
_DEVICES = "/machine/unattached"
_QTEST_NAME = "edges"
_REPLY_TIMEOUT_S = 60


@dataclass(frozen=True)
class LevelChange:
    """An output of the guest went to another level."""

    line: int
    level: bool


class GpioLines:
    """The chip's lines, as seen from outside, over a connection to the test interface."""

    def __init__(self, connection: socket.socket, chip: str) -> None:
        self._socket = connection
        self._chip = chip
        self._rest = b""
        self._changes: deque[LevelChange] = deque()
        self._command(f"irq_intercept_out {chip}")

    def drive(self, line: int, level: bool) -> None:
        """Give an input a level. TargetError if there is no such line, or no guest any more."""
        self._command(f"set_irq_in {self._chip} unnamed-gpio-in {line} {level:d}")

    def change(self, timeout_s: float) -> LevelChange | None:
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
            if change == LevelChange(output, level):
                return True
        return False

    def _command(self, text: str) -> None:
        try:
            self._socket.sendall(f"{text}\n".encode())
        except OSError as error:
            raise TargetError("QEMU ended before its lines could be driven") from error
        word = ""
        while not word.startswith("OK"):
            word = self._line(_REPLY_TIMEOUT_S) or "FAIL it does not answer"
            if word.startswith("FAIL"):
                raise TargetError(f"QEMU refuses to {text}: {word.removeprefix('FAIL').strip()}")
            self._note(word)

    def _note(self, word: str) -> None:
        if word.startswith("IRQ "):
            _, what, line = word.split()
            self._changes.append(LevelChange(int(line), what == "raise"))

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
def gpio_lines(guest: Guest) -> Iterator[GpioLines]:
    """The lines of a running guest's first PL061. TargetError if it has none, or QEMU is older than 7.0."""
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


# What article 1's second board and its scope do: edges on a guest's input from outside, answered on its output.
#
# A generator inside of the guest would share its only processor, and the measured task would wait for it instead of
# for
# the load. So edges come from this host, over the input of the board's ordinary GPIO chip. When they come is not
# determined: they come at this host's pace, so a cell run again answers other edges. How late each answer is counts
# in
# instructions of the guest, as everything does in virtual time. An edge waits until the one before has been answered:
# a
# guest in virtual time can be many times slower than this host, and would be buried under them.


INPUT_LINE, OUTPUT_LINE = 0, 1
GPIO_PROBE = f"gpio:chip=0,in={INPUT_LINE},out={OUTPUT_LINE}"
"""Answers on one line of the board's chip what comes on the other."""
PACE_S = 0.002
"""From an answer to the next edge, by this host's clock: some hundred of them in a second of a guest under load."""
ANSWER_TIMEOUT_S = 0.5
"""Before the probe has taken the lines, and after, nobody answers."""


@contextmanager
def edges_beside(guest: Guest) -> Iterator[None]:
    """Edges while the caller attends to the guest and ends it."""
    with gpio_lines(guest) as lines:
        giver = Thread(target=_drive_edges, args=(guest, lines), daemon=True)
        giver.start()
        try:
            yield
        finally:
            giver.join(2 * ANSWER_TIMEOUT_S)


def _drive_edges(guest: Guest, lines: GpioLines) -> None:
    with suppress(TargetError, OSError):
        for number in count(1):
            if not guest.alive():
                return
            lines.answer(INPUT_LINE, number % 2 == 1, OUTPUT_LINE, ANSWER_TIMEOUT_S)
            _discard_changes(lines)


def _discard_changes(lines: GpioLines) -> None:
    """Other changes of outputs that come meanwhile are of no interest."""
    while lines.change(PACE_S):
        pass
