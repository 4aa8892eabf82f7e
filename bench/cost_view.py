# SPDX-License-Identifier: Apache-2.0
"""Measure what the live view costs: CPU time of ``rtproof run`` on a terminal, its agent apart, while it measures."""

import os
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from part import Bound, Figure, Part

from rtproof.agents.build import build_agent
from tools import children

ROUNDS, SECONDS, START_S = 5, 8.0, 3.0
"""START_S: time until the program has started and the view is drawn."""
ENOUGH = "600s"
ERASE = b"\x1b[J"
"""The view is erased before it is drawn again."""


def measure(_: str) -> dict[str, Any]:
    """CPU time of the host's process while it draws, in percent of one CPU: the median of several runs."""
    agent = build_agent()
    with tempfile.TemporaryDirectory() as scratch:
        shares = [_one_share(agent, Path(scratch) / f"live-{number}") for number in range(ROUNDS)]
    print(f"    {', '.join(f'{share:.2f}' for share in shares)} % of a CPU in {SECONDS:g} s each", flush=True)
    return {"cpu_percent": statistics.median(shares), "runs": len(shares)}


def _one_share(agent: Path, folder: Path) -> float:
    command = [sys.executable, "-m", "rtproof", "run", "--agent", str(agent), "--output", str(folder), "--no-report"]
    command += ["--duration", ENOUGH]
    terminal = {**os.environ, "TERM": "xterm"}
    ours, theirs = pty.openpty()
    with (
        subprocess.Popen(command, stdout=theirs, stderr=theirs, start_new_session=True, env=terminal) as host,
        _drained(ours, theirs) as drawn,
    ):
        try:
            time.sleep(START_S)
            before, began = _cpu_s(host.pid), time.monotonic()
            time.sleep(SECONDS)
            if len(children(host.pid)) < 2 or ERASE not in b"".join(drawn):
                raise RuntimeError("the run ended too early, or drew nothing")
            return 100 * (_cpu_s(host.pid) - before) / (time.monotonic() - began)
        finally:
            host.send_signal(signal.SIGINT)
            host.wait()


def _cpu_s(pid: int) -> float:
    """CPU time of a process without its children, in s."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@contextmanager
def _drained(ours: int, theirs: int) -> Iterator[list[bytes]]:
    """Read what is written to a terminal, so that the program never waits for its reader. Yields what was read."""
    drawn: list[bytes] = []

    def drain() -> None:
        try:
            while part := os.read(ours, 65_536):
                drawn.append(part)
        except OSError:
            return

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield drawn
    finally:
        os.close(theirs)
        reader.join(5)
        os.close(ours)


PART = Part(
    goal="the live view takes at most 1 % of a CPU",
    measure=measure,
    figures=(Figure("cpu_percent", "CPU of the live view on a terminal, of one CPU", "%", Bound(most=1), "runs"),),
)
