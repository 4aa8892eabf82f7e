# SPDX-License-Identifier: Apache-2.0
"""Runs the real agent for the tests, and finds every process that it has started."""

import functools
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rtproof.agents.build import find_agent
from rtproof.core.errors import UserError
from rtproof.record.contents import Record
from rtproof.record.reading import open_record

PATIENCE_S = 300
"""How long anything may take before a test fails; nothing here waits longer than it must.

A run that a test ends itself is asked for twice as long, so that it does not end first where all is slow.
"""

TOKEN = "RTPROOF_TEST_TOKEN"
MARK = f"{TOKEN}=".encode()


@functools.cache
def agent() -> str:
    """The agent for this machine; the test is skipped if nothing here can build it."""
    try:
        return str(find_agent())
    except UserError as error:
        pytest.skip(str(error))


@functools.cache
def may_use_fifo() -> bool:
    """Whether a real-time policy can be had, tried in a process of its own."""
    probe = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(81))"
    return subprocess.run(["python3", "-c", probe], capture_output=True, check=False).returncode == 0


needs_fifo = pytest.mark.skipif(not may_use_fifo(), reason="real-time policies are refused here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


def policy() -> tuple[str, ...]:
    """The best policy that can be had: what is tested with it holds with each."""
    return ("--policy", "fifo") if may_use_fifo() else ("--policy", "other")


def run(*arguments: str | Path, prefix: Sequence[str | Path] = ()) -> subprocess.CompletedProcess[str]:
    """The agent, run to its end."""
    command = [*prefix, agent(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def measured(path: Path, *arguments: str) -> Record:
    """The record of a run that must succeed, without damage."""
    done = run("run", "-o", path, "--warmup", "20ms", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return whole(path)


def whole(path: Path) -> Record:
    record = open_record(path)
    assert record.damage == ()
    assert record.end is not None
    return record


class Running:
    """An agent that is running. It says how far it is on standard error, and is asked for a line every 100 ms."""

    def __init__(self, arguments: Sequence[str | Path]) -> None:
        self.token = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [agent(), "run", "--warmup", "20ms", "--progress", "100ms", *arguments],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, TOKEN: self.token},
        )
        self.messages: list[str] = []
        self.record = Path(arguments[arguments.index("-o") + 1])

    def await_more(self, length_ns: int) -> int:
        """Waits until the agent has measured for so long from now on; lines from before may still wait in the pipe."""
        origin_ns = open_record(self.record).begin.origin_monotonic_ns
        return self.await_ns(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - origin_ns + length_ns)

    def stop_for(self, length_ns: int) -> tuple[int, int]:
        """Stops it for a while: the first and the last instant at which it surely stood still, CLOCK_MONOTONIC."""
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        stopped_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        time.sleep(length_ns / 1e9)
        woken_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.process.send_signal(signal.SIGCONT)
        return stopped_ns, woken_ns

    def await_ns(self, time_ns: int) -> int:
        """Waits until the agent has got to this time of the record; the time that it tells."""
        assert self.process.stderr
        for line in self.process.stderr:
            told = re.match(r"progress time_ns=(-?\d+)", line)
            if not told:
                self.messages.append(line)
            elif int(told[1]) >= time_ns:
                return int(told[1])
        pytest.fail(f"the agent ended too early: {self.messages}")

    def end(self) -> int:
        """Its exit code once it has ended by itself; ``messages`` is then what it said besides progress."""
        _, rest = self.process.communicate(timeout=PATIENCE_S)
        self.messages += [line for line in rest.splitlines() if not line.startswith("progress ")]
        return self.process.returncode

    def processes(self) -> list[int]:
        """The agent and all its loads, as far as they live."""
        return marked(self.token)


def marked(token: str) -> list[int]:
    """All living processes whose environment has the token, which they all have from the one that was given it."""
    return marked_by_token().get(token, [])


def marked_by_token() -> dict[str, list[int]]:
    """All living processes whose environment has a token, by the token, from one look at all processes."""
    found: dict[str, list[int]] = {}
    for pid in _pids():
        for word in _environment(pid):
            if word.startswith(MARK):
                found.setdefault(word.removeprefix(MARK).decode(), []).append(pid)
    return found


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


@contextmanager
def running(*arguments: str | Path) -> Iterator[Running]:
    """An agent that does not outlive the test, however that ends."""
    one = Running(arguments)
    try:
        yield one
    finally:
        for pid in one.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        one.process.communicate(timeout=PATIENCE_S)


def lives(pid: str) -> bool:
    """Whether the process with this number runs. A zombie does not."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true in time; looks often, and returns as soon as it does."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True
