# SPDX-License-Identifier: Apache-2.0
"""The process between rtproof and a program that it measures: a script of its own, on the standard library.

``program_supervisor.py CONTROL REPORT PROGRAM [ARGUMENT]...``, with the numbers of two open pipes. The program waits
for the first byte of CONTROL. The end of CONTROL, also if rtproof is killed, ends the program and all that it started:
SIGTERM, then SIGKILL after ``GRACE_S``. REPORT gets ``PID number``, ``BEGAN errno`` and ``ENDED code``, where a code
below zero is that of a signal. Processes whose parent died become children of the keeper, so it can end them.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 5.0
LEFT_S = 5.0
"""So long it waits for what was killed; a process that hangs in the kernel may take for ever."""
NOT_STARTED = 127
OF_A_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""The program gets these too, and decides; the keeper ends last."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Keeper:
    """The program, and the pipes by which its end and that of rtproof are seen."""

    def __init__(self, control: int, report: int, words: list[str]) -> None:
        self._control, self._report = control, report
        self._ended, waker = os.pipe()
        for end in (self._ended, waker):
            os.set_blocking(end, False)
        before = [(each, signal.signal(each, signal.SIG_IGN)) for each in OF_A_TERMINAL]
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        gate, self._gate = os.pipe()
        self._failure, failure = os.pipe()
        keeper = os.getpid()
        self._program = os.fork()
        if not self._program:
            os.close(self._gate)
            ignored = [each for each, handler in before if handler == signal.SIG_IGN]
            _become(words, gate, failure, keeper, ignored)
        os.close(gate)
        os.close(failure)
        self._tell(f"PID {self._program}")

    def keep(self) -> None:
        """Let the program begin, and wait until rtproof has ended or wants no more of it."""
        while True:
            ready, _, _ = select.select([self._control, self._ended], [], [])
            if self._ended in ready:
                self._reap()
            if self._control in ready and not os.read(self._control, 1):
                return
            if self._control in ready:
                os.write(self._gate, b"g")
                self._tell(f"BEGAN {int(os.read(self._failure, 16) or b'0')}")

    def end_all(self) -> None:
        """End the program and all that it left behind. Of a child that dies, the children come here."""
        self._signal_until(signal.SIGTERM, GRACE_S)
        self._signal_until(signal.SIGKILL, LEFT_S)

    def _signal_until(self, number: int, seconds: float) -> None:
        """Send every child a signal once, also those that come meanwhile, until none is left or the time is over."""
        until, sent = time.monotonic() + seconds, set[int]()
        while self._reap() and (left := until - time.monotonic()) > 0:
            for child in set(_children()) - sent:
                sent.add(child)
                with suppress(OSError):
                    os.kill(child, number)
                    os.kill(child, signal.SIGCONT)
            select.select([self._ended], [], [], left)

    def _reap(self) -> bool:
        """Take the children that have ended; whether there are others."""
        with suppress(BlockingIOError):
            os.read(self._ended, 4096)
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self._program:
                    self._tell(f"ENDED {os.waitstatus_to_exitcode(status)}")
        return False

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # rtproof may be gone
            os.write(self._report, f"{line}\n".encode())


def _become(words: list[str], gate: int, failure: int, keeper: int, ignored: list[signal.Signals]) -> None:
    """Wait at the gate, then become the program. Never returns."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for each in (*OF_A_TERMINAL, *IGNORED_BY_PYTHON, signal.SIGCHLD):
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)
        if os.getppid() == keeper and os.read(gate, 1):
            os.execvp(words[0], words)  # noqa: S606 - the user's program
    except OSError as problem:
        os.write(failure, str(problem.errno).encode())
    finally:
        os._exit(NOT_STARTED)


def _children() -> Iterator[int]:
    own = str(os.getpid())
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with suppress(OSError):
                stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
                if stat.rpartition(")")[2].split()[1] == own:
                    yield int(place.name)


def main(control: str, report: str, *words: str) -> None:
    """Keep the program of the command line."""
    for fd in (control, report):
        os.set_inheritable(int(fd), False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = Keeper(int(control), int(report), list(words))
    keeper.keep()
    keeper.end_all()


if __name__ == "__main__":
    main(*sys.argv[1:])
