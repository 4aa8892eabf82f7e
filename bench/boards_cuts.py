# SPDX-License-Identifier: Apache-2.0
"""Runs on boards whose links are cut and whose hosts are killed at random moments: what is missing of their records?

    make bench-boards CASES=100 SEED=1    # so many by chance, and one whose link is away for 60 s

Each case is one run over ssh to a real sshd or dropbear in a network namespace. Its link is pulled up to three times,
and its host is killed with SIGKILL up to twice; ``rtproof attach`` takes it up from another process. In the end the
record must be whole: no due time is lost, the run lasted as long as asked, nothing of it is left on the board.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import board_servers
from part import Bound, Figure, Part

from rtproof.record import unfinished_run
from rtproof.record.reading import open_record

BOARDS_AT_ONCE = 4
LENGTH_S = 12
LONGEST_CUT_S = 6.0
SURE_S = 240
"""A case that takes longer has failed."""
MIN_PERIODS_PER_S = 1000


@dataclass(frozen=True)
class Event:
    """What happens at_s after the run was started. pull_s: how long the link is away; 0: the host is killed."""

    at_s: float
    pull_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.at_s:.1f} s: " + (f"link away for {self.pull_s:.1f} s" if self.pull_s else "host killed")


@dataclass
class Case:
    """One run and what befell it. wrong: sentences; empty if all is there."""

    number: int
    server: str
    length_s: int
    events: list[Event]
    wrong: list[str] = field(default_factory=list)
    said: str = ""

    def __str__(self) -> str:
        happened = "; ".join(str(event) for event in self.events)
        return f"case {self.number} ({self.server}, {self.length_s} s): {happened}: {'; '.join(self.wrong) or 'whole'}"


def chosen(number: int, chance: random.Random) -> Case:
    """A case by chance: at least one event, in the order of their times."""
    events = [
        Event(chance.uniform(0, LENGTH_S), chance.uniform(0.2, LONGEST_CUT_S)) for _ in range(chance.randint(0, 3))
    ]
    events += [Event(chance.uniform(0, LENGTH_S + 3)) for _ in range(chance.randint(0 if events else 1, 2))]
    server = ("sshd", "dropbear")[number % 2]
    return Case(number, server, LENGTH_S, sorted(events, key=lambda event: event.at_s))


class Host:
    """``rtproof run``, and ``rtproof attach`` each time after it was killed."""

    def __init__(self, board: board_servers.Board, folder: Path, length_s: int) -> None:
        self._folder = folder
        self._said = (folder.parent / f"{folder.name}.said").open("w+")
        words = ("--duration", f"{length_s}s", "--no-report", "-q", "-o", str(folder))
        self._process = self._start("run", *board.options, *words)
        self._killed_late = False

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "rtproof", *words]
        return subprocess.Popen(command, stdout=self._said, stderr=self._said, stdin=subprocess.DEVNULL)

    def wait_until_started(self) -> None:
        """Until the run goes on there, and is followed."""
        end = time.monotonic() + SURE_S
        while not board_servers.is_followed(self._folder) and self._process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.02)

    def killed_and_followed(self) -> None:
        """Kill it, and let another process go on, if the run is not at home yet."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._killed_late = not unfinished_run.is_there(self._folder)
        if not self._killed_late:
            self._process = self._start("attach", "--no-report", str(self._folder))

    def wait(self, until: float) -> int:
        """The exit code; 0 if it was killed once the record was at home. AssertionError if it takes too long."""
        try:
            code = self._process.wait(max(1.0, until - time.monotonic()))
            return 0 if self._killed_late else code
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"not over after {SURE_S} s") from None

    def said(self) -> str:
        self._said.seek(0)
        return self._said.read()


def live(case: Case, board: board_servers.Board, folder: Path) -> None:
    """Let the run happen, and write down what is wrong with what it left."""
    host = Host(board, folder, case.length_s)
    begun = time.monotonic()
    try:
        host.wait_until_started()
        begun = time.monotonic()
        for event in case.events:
            time.sleep(max(0.0, begun + event.at_s - time.monotonic()))
            if event.pull_s:
                board.cable.pull()
                time.sleep(event.pull_s)
                board.cable.plug()
            else:
                host.killed_and_followed()
        if code := host.wait(begun + SURE_S):
            case.wrong.append(f"exit code {code}")
        case.wrong += missing(folder, case.length_s)
    except AssertionError as problem:
        case.wrong.append(str(problem))
    left = [line for line in board_servers.processes(board.cable.namespace) if "rtproof-agent" in line]
    case.wrong += [f"left running: {line}" for line in left]
    case.said = host.said()


def missing(folder: Path, length_s: int) -> Iterator[str]:
    """What a whole record would have. Sentences."""
    if unfinished_run.is_there(folder):
        yield "the folder says that the run goes on"
    if not (folder / "run.rtrec").exists():
        yield "no record"
        return
    record = open_record(folder / "run.rtrec")
    if record.damage:
        yield f"damage: {record.damage}"
    if record.end is None:
        yield "no end"
        return
    if record.end.reason.name != "AS_ASKED":
        yield f"ended {record.end.reason.name}"
    for thread, total in enumerate(record.end.totals):
        due = total.obtained + total.missed
        if due < length_s * MIN_PERIODS_PER_S or total.lost:
            yield f"thread {thread}: {due} due times accounted for, {total.lost} lost"


def all_cases(cases: list[Case], folder: Path) -> None:
    """Each board has one case at a time, because its link is pulled for it alone."""
    rest = iter(cases)
    turn = threading.Lock()
    with ExitStack() as stack:
        boards = []
        for number, server in enumerate(("sshd", "dropbear") * (BOARDS_AT_ONCE // 2)):
            place = folder / f"board-{number}"
            place.mkdir()
            boards.append((server, stack.enter_context(board_servers.board(place, server))))

        def work(server: str, board: board_servers.Board) -> None:
            while True:
                with turn:
                    case = next(rest, None)
                if case is None:
                    return
                case.server = server
                live(case, board, folder / f"run-{case.number}")
                print(f"    {case}", flush=True)

        with ThreadPoolExecutor(len(boards)) as workers:
            for done in [workers.submit(work, *each) for each in boards]:
                done.result()


def measure(_: str) -> dict[str, Any]:
    """Let all runs happen; prints each, and what those said that are not whole."""
    chance = random.Random(int(os.environ.get("SEED", "1")))  # noqa: S311 - moments of a test
    cases = int(os.environ.get("CASES", "100"))
    planned = [Case(cases, "sshd", 90, [Event(5, 60)]), *(chosen(number, chance) for number in range(cases))]
    with tempfile.TemporaryDirectory(prefix="rtproof-cuts-") as folder:
        all_cases(planned, Path(folder))
    failed = [case for case in planned if case.wrong]
    print(*(f"\n{case}\n{case.said}" for case in failed), sep="\n", flush=True)
    pulls = [event.pull_s > 0 for case in planned for event in case.events]
    return {"runs": len(planned), "cuts": sum(pulls), "kills": len(pulls) - sum(pulls), "not_whole": len(failed)}


PART = Part(
    goal="no cut of a link and no killed host costs a run on a board any of its record",
    measure=measure,
    figures=(
        Figure("cuts", "cuts of the link", of="runs"),
        Figure("kills", "hosts killed", of="runs"),
        Figure("not_whole", "runs that are not whole", bound=Bound(0, 0), of="runs"),
    ),
)
