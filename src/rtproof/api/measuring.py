# SPDX-License-Identifier: Apache-2.0
"""Measure from Python: ``rtproof run`` in a process of its own, which ends with this one.

So a notebook, a thread or a worker of ``multiprocessing`` measures as the command line does, with its sentences, and
none of their signals is touched.
"""

import contextlib
import os
import platform
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import IO

from rtproof.api.arguments import (
    Duration,
    Limits,
    duration_text,
    for_system,
    one_kind_of_error,
    path_of,
    rate_text,
)
from rtproof.api.opened_run import Run
from rtproof.api.opened_run import open as open_one
from rtproof.core import files
from rtproof.core.errors import RtproofError
from rtproof.core.printable import clean

VOICE = "rtproof: "
ERROR_CODE = 2
LARGEST_TAIL = 1 << 16
"""Bytes of what the command says at its end. The last line says why it failed."""
START = """
import sys
place = sys.argv.pop(1)
sys.path.insert(0, place)
import rtproof
sys.path.remove(place)
sys.path.append(place)
from rtproof.api.measuring import run_command_line
sys.exit(run_command_line())
"""
"""The package is the one that this process uses, also if another is installed. Nothing beside it hides a module."""
FIRMNESS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
"""What the first Ctrl-C sends, the second, and all others."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C ended ``rtproof.run`` early. What was measured until then is kept.

    It is a ``KeyboardInterrupt``, so a loop of runs ends, too.

    Attributes:
        run: The shortened run, which can be judged as any other; None if nothing was measured yet.
    """

    def __init__(self, sentence: str, run: Run | None = None) -> None:
        super().__init__(sentence)
        self.run = run


def run(  # noqa: PLR0913 - one for each option of rtproof run that measures one run
    *,
    duration: Duration | None = None,
    samples: int | None = None,
    limit: Limits = None,
    at_most: Duration | Sequence[Duration] | None = None,
    longest: Duration | None = None,
    gap: Duration | None = None,
    confidence: float | None = None,
    bunches: float | None = None,
    shows: Duration | None = None,
    until_decided: bool = False,
    max_duration: Duration | None = None,
    load: str | Sequence[str] = (),
    probe: str | None = None,
    method: str | None = None,
    period: Duration | None = None,
    warmup: Duration | None = None,
    cpus: str | None = None,
    threads: int | None = None,
    policy: str | None = None,
    priority: int | None = None,
    record: str | None = None,
    trace: bool | str = False,
    explain: bool | str = False,
    allow_unprivileged: bool = False,
    target: str = "local",
    target_options: Mapping[str, object] | None = None,
    agent: str | PathLike[str] | None = None,
    output: str | PathLike[str] | None = None,
    note: str = "",
) -> Run:
    """Measure how late a system reacts, as ``rtproof run`` does, and return the run.

    It waits until the run has ended. Ctrl-C ends the run early: what was measured is kept, and ``RunInterrupted`` has
    it. Each argument is the option of the command line of the same name, which ``rtproof run --help`` explains, and
    None is its default. A list repeats an option. ``trace`` and ``explain`` take True, or text with options. Without
    ``output``, the new folder is runs/TIME-HOST-NUMBER.

    RtproofError with the sentence of the command line if nothing can be measured, or if the measurement failed.
    """
    given = {name: value for name, value in locals().items() if name not in ("output", "target_options")}
    words = _target_words(target_options)
    words += [word for name, value in given.items() for word in option_words(name, value)]
    folder = _usual_folder() if output is None else path_of(output)
    with one_kind_of_error():
        files.refuse_existing(folder)
        return _measured(folder, words)


TIMES = ("duration", "limit", "longest", "gap", "max_duration", "period", "warmup")
RATES = ("at_most", "shows")
LISTS = ("limit", "at_most", "load", "percentile")
FLAGS = {"until_decided", "allow_unprivileged", "no_lock_memory", "stream", "observer", "report", "trace", "explain"}
"""Options that True stands for. The last two may have a text."""


def option_words(name: str, value: object) -> list[str]:
    """An argument as options of the command line. RtproofError for a value that no text can stand for."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, list | tuple):
        if name not in LISTS:
            raise RtproofError(f"{name}: one value is needed, and no list")
        return [word for one in value for word in option_words(name, one)]
    if value is None or (name, value) == ("note", ""):
        return []
    if isinstance(value, bool) and name in FLAGS:
        off = [f"--no-{name}"] if name in ("observer", "report") else []
        return [option] if value else off
    if name in TIMES:
        value = duration_text(name, value)
    elif name in RATES:
        value = rate_text(name, value)
    if isinstance(value, bool) or not isinstance(value, str | Real | PathLike):
        raise RtproofError(f"{name}: text or a number is needed, and no {type(value).__name__}")
    text = str(path_of(value)) if isinstance(value, PathLike) else str(value)
    return [f"{option}={for_system(name, text)}"]


def _target_words(options: object) -> list[str]:
    if options is not None and not isinstance(options, Mapping):
        raise RtproofError(
            f"target_options: a dict such as {{'host': 'board'}} is needed, and no {type(options).__name__}"
        )
    return [for_system("target_options", f"--target-option={key}={value}") for key, value in (options or {}).items()]


def _usual_folder() -> Path:
    """A folder named by the time, with a random end: other threads and processes may begin in the same second."""
    host = clean(platform.node() or "localhost").replace("/", "-")[:64]
    return Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host}-{secrets.token_hex(2)}"


def _measured(folder: Path, words: Sequence[str]) -> Run:
    with tempfile.TemporaryFile() as said:
        code, interrupted = _wait_for(_command(folder, words), said)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(size - LARGEST_TAIL, 0))
        lines = [clean(line) for line in said.read().decode(errors="replace").splitlines()]
    if interrupted:
        try:
            kept = open_one(folder)
        except RtproofError:
            raise RunInterrupted("interrupted before anything was measured") from None
        raise RunInterrupted(f"interrupted; what was measured until then is kept in {folder}", kept)
    # The last line that the command said about itself.
    sentence = next((line.removeprefix(VOICE) for line in reversed(lines) if line.startswith(VOICE)), "")
    if code == ERROR_CODE or not folder.exists():
        raise RtproofError(sentence or f"the measuring process ended with exit code {code}")
    return open_one(folder)


def _command(folder: Path, words: Sequence[str]) -> list[str]:
    if not sys.executable:
        raise RtproofError("this Python does not know its own program (sys.executable), so it cannot measure")
    package = str(Path(__file__).parents[2])
    # -P: no file of the working folder may stand in for a module.
    return [sys.executable, "-P", "-c", START, package, "run", "--quiet", "--no-report", f"--output={folder}", *words]


def _wait_for(command: Sequence[str], said: IO[bytes]) -> tuple[int, bool]:
    """The exit code, and whether Ctrl-C ended the run.

    The other process has a session of its own, so that a terminal's Ctrl-C reaches it only from here, once. It ends
    when its standard input ends, so also if this process is killed.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
    )
    assert process.stdin is not None
    interrupts = 0
    with process.stdin:
        while True:
            try:
                return process.wait(), interrupts > 0
            except KeyboardInterrupt:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(FIRMNESS[min(interrupts, len(FIRMNESS) - 1)])
                interrupts += 1


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_command_line() -> int:
    """In the measuring process: run the command line with its arguments, and return the exit code.

    The process that asked may ignore or block the signals that end a run, as a shell's background job does. This one
    inherits that, so it is undone. It sends itself Ctrl-C once the process that asked has gone.
    """
    from rtproof.__main__ import run as run_program

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    asking = os.dup(sys.stdin.fileno())

    def interrupt_at_end() -> None:
        os.read(asking, 1)  # it writes nothing, so any input is the end
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_at_end, daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    return run_program()
