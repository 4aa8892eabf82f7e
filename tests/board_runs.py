# SPDX-License-Identifier: Apache-2.0
"""Runs on boards, as the tests of every way to a board start, await and check them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from board_servers import is_followed

from rtproof.record.contents import Record
from rtproof.record.reading import open_record

ENDED_WELL = (0, 3)
"""Exit codes of a run that was made. On a busy machine its verdict may be INVALID."""


def rtproof(*words: str) -> "subprocess.CompletedProcess[str]":
    """The program, to its end."""
    command = [sys.executable, "-m", "rtproof", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)


def start(*words: str) -> "subprocess.Popen[str]":
    """The program, in a process group of its own."""
    command = [sys.executable, "-m", "rtproof", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def ended(process: "subprocess.Popen[str]", *, interrupt: bool = False) -> str:
    """What a program that makes a run, or takes one up, said on standard error. It must have ended well."""
    if interrupt:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=1800)
    assert process.returncode in ENDED_WELL, said
    return said


def wait_until(condition: Callable[[], bool], what: str = "it does not come true", bound_s: float = 600) -> None:
    """Fails with ``what`` after the bound."""
    end = time.monotonic() + bound_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def wait_until_measured(process: "subprocess.Popen[str]", folder: Path) -> None:
    """Until the agent records on the board, so that a signal leaves a record, and this host follows it."""
    wait_until(lambda: is_followed(folder) or process.poll() is not None, "the run does not begin")
    assert process.poll() is None, process.communicate()[1]


def wait_until_grown(place: Path) -> int:
    """Until more is in the record of the only run that a board keeps there; the seconds that it then has at least."""
    (record,) = place.glob("rtproof-*/run-*/run.rtrec")

    def obtained() -> int:
        seconds = open_record(record).seconds.values() if record.stat().st_size else ()
        return min((int(each.obtained.sum()) for each in seconds), default=0)

    goal = obtained() + 1000
    wait_until(lambda: obtained() >= goal, "nothing more is recorded")
    return goal // 1000


def assert_whole(folder: Path, seconds: int, reason: str = "AS_ASKED") -> Record:
    """Every due time of the run is accounted for, and it ended as it should."""
    record = open_record(folder / "run.rtrec")
    assert record.end is not None
    assert not record.damage
    assert record.end.reason.name == reason
    for total in record.end.totals:
        assert total.obtained + total.missed >= seconds * 1000
        assert total.lost == 0
    return record
