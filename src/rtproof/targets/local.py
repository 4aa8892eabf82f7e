# SPDX-License-Identifier: Apache-2.0
"""This machine: the agent runs beside the host program and writes straight into the run folder."""

import contextlib
import os
import platform
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rtproof.core.errors import TargetError

OPTIONS: dict[str, str] = {}
LONGEST_LINE = 65_536


class LocalProcess:
    """A program in a session of its own, so that the terminal's Ctrl-C reaches it only through this process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._popen = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lock = threading.RLock()
        self._reaped = False
        self._reaper = threading.Thread(target=self._reap, daemon=True)
        self._reaper.start()

    def _reap(self) -> None:
        """Kill the process group of a program that has ended, and only then release its id, which names the group."""
        os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
            self._reaped = True

    def _signal(self, number: int, everything: bool = False) -> None:
        """Send a signal. The lock is re-entrant, because a signal handler may interrupt a thread that holds it."""
        with self._lock:
            if not self._reaped:
                (os.killpg if everything else os.kill)(self._popen.pid, number)

    def lines(self) -> Iterator[str]:
        pipe = self._popen.stderr
        assert pipe is not None
        for line in iter(lambda: pipe.readline(LONGEST_LINE), b""):
            yield line.decode(errors="replace").rstrip("\n")

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL, everything=True)

    def wait(self) -> int:
        self._reaper.join()
        self._close()
        return self._popen.returncode

    def _close(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class LocalTarget:
    """The machine that runs this program."""

    def machine(self) -> str:
        return platform.machine()

    def host_name(self) -> str:
        return platform.node() or "localhost"

    def push(self, program: Path) -> str:
        return str(program.resolve())

    def place(self, file: Path) -> str:
        return str(file.resolve())

    def pull(self, remote: str, file: Path) -> None:
        """Do nothing: the program wrote to the file itself."""

    def start(self, arguments: Sequence[str]) -> LocalProcess:
        try:
            return LocalProcess(arguments)
        except OSError as error:
            raise TargetError(f"the program {arguments[0]} cannot be started: {error.strerror}") from error


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[LocalTarget]:
    yield LocalTarget()
