# SPDX-License-Identifier: Apache-2.0
"""Consoles of boards without a board: a shell on a terminal of this machine, behind a socket that can do what lines do.

The kernel's messages are put into the stream, the speed is that of a serial line, and the connection can be cut.
"""

import itertools
import os
import pty
import random
import select
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOGIN_SCRIPT = r"""
cd "$HOME"
trap : INT
while :; do
    stty sane || exit
    printf '\nDemo board\nboard login: '; read -r name || continue
    [ "$name" ] || continue
    stty -echo; printf 'Password: '; read -r word; stty echo; echo
    if [ "$name/$word" = root/secret ]; then
        printf 'Last login: today, an attempt was denied\nWelcome! An invalid login: is a failure.\n'
        %s
    else
        echo 'Login incorrect'
    fi
done
"""
"""A login on a terminal, with this command as the shell."""


@dataclass
class Manners:
    """What the line does. bytes_per_s: 0 is no limit. noise: words of the kernel every so many s. late_s: delay."""

    bytes_per_s: int = 0
    noise_s: float = 0
    noise: bytes = b"[%5d.%06d] rtproof: the kernel says number %d into it\r\n"
    late_s: float = 0
    lost_per_byte: float = 0
    """Probability that a byte to the board is lost."""


class Lane:
    """Bytes on their way in one direction, as fast as the line is."""

    def __init__(self, rate: Callable[[], int]) -> None:
        self._rate = rate
        self._queue: deque[tuple[float, bytes]] = deque()
        self._room, self._last = 0.0, time.monotonic()

    @property
    def full(self) -> bool:
        return sum(len(piece) for _, piece in self._queue) > 8192

    def add(self, piece: bytes, late_s: float = 0) -> None:
        self._queue.append((time.monotonic() + late_s, piece))

    def cut_in(self, piece: bytes) -> None:
        """Before what waits, and so into the middle of it."""
        self._queue.appendleft((0, piece))

    def give_back(self, piece: bytes) -> None:
        """What could not be passed on yet."""
        if piece:
            self.cut_in(piece)
            self._room += len(piece)

    def arrived(self) -> bytes:
        """What is at the other end by now."""
        now, rate = time.monotonic(), self._rate() or 1 << 30
        self._room, self._last = min(rate / 50, self._room + (now - self._last) * rate), now
        arrived = b""
        while self._queue and self._queue[0][0] <= now and self._room >= 1:
            _, piece = self._queue.popleft()
            most = int(min(len(piece), self._room))
            self._room -= most
            arrived += piece[:most]
            if piece[most:]:
                self.cut_in(piece[most:])
        return arrived


class ConsoleBoard:
    """A terminal server with one port. The next host waits until one is gone.

    What the board prints while nobody is connected is lost, as at a real one.

    master: the terminal's other side, which does not block. shown: the last that went over the line to the host.
    """

    def __init__(self, master: int, manners: Manners) -> None:
        self.master, self.manners = master, manners
        self.shown = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._closed, self._open = False, True
        self._down, self._up = Lane(lambda: manners.bytes_per_s), Lane(lambda: manners.bytes_per_s)
        self._random = random.Random(1)
        self._messages = itertools.count(1)
        self._next_message = time.monotonic()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """End the connection, and take no other until ``mend``."""
        self._open = False

    def mend(self) -> None:
        """Take connections again."""
        self._open = True

    def close(self) -> None:
        self._closed = True
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._closed:
            if not self._open:
                self._hang_up()
            waiting: list[int | socket.socket] = [] if self._client else [self._listener]
            waiting += [self._client] if self._client and not self._up.full else []
            waiting += [] if self._down.full else [self.master]
            readable, _, _ = select.select(waiting, [], [], 0.002)
            if self._listener in readable:
                self._accept()
            if self.master in readable:
                self._take_from_board()
            if self._client in readable:
                self._take_from_host()
            self._print_message()
            self._pass_on()
        self._hang_up()

    def _hang_up(self) -> None:
        if self._client:
            self._client.close()
            self._client = None

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._open:
            self._client = client
        else:
            client.close()

    def _take_from_board(self) -> None:
        try:
            self._down.add(os.read(self.master, 4096), self.manners.late_s)
        except OSError:
            self._open = False  # the board is gone

    def _take_from_host(self) -> None:
        assert self._client
        piece = b""
        with suppress(OSError):
            piece = self._client.recv(4096)
        if not piece:
            self._hang_up()
        lost = self.manners.lost_per_byte
        self._up.add(bytes(byte for byte in piece if self._random.random() >= lost) if lost else piece)

    def _print_message(self) -> None:
        now = time.monotonic()
        if self.manners.noise_s and now >= self._next_message:
            self._next_message = now + self.manners.noise_s
            number, noise = next(self._messages), self.manners.noise
            self._down.cut_in(noise % (number // 10, number, number) if b"%" in noise else noise)

    def _pass_on(self) -> None:
        arrived = self._down.arrived()
        self.shown = (self.shown + arrived)[-(1 << 20) :]
        if self._client and arrived:
            with suppress(OSError):
                self._client.sendall(arrived)
        typed = self._up.arrived()
        written = 0
        with suppress(OSError):
            written = os.write(self.master, typed) if typed else 0
        self._up.give_back(typed[written:])


@contextmanager
def console(argv: Sequence[str], home: Path, manners: Manners | None = None) -> Iterator[ConsoleBoard]:
    """A board whose console runs this program."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "vt100"}
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *argv],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=given,
        start_new_session=True,
    )
    os.close(slave)
    board = ConsoleBoard(master, manners or Manners())
    try:
        yield board
    finally:
        board.close()
        os.close(master)  # hangs up: everything on the terminal ends
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def login_board(
    home: Path, shell: str = "busybox sh -i", manners: Manners | None = None
) -> AbstractContextManager[ConsoleBoard]:
    """A board that asks for root and the password secret first."""
    return console(["sh", "-c", LOGIN_SCRIPT % shell], home, manners)
