# SPDX-License-Identifier: Apache-2.0
"""Measure threads of the user's own application, by the kernel's trace alone: a run of the probe ``foreign``."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.experiment import run_request, target_runs
from rtproof.experiment.mark_options import agent_marks
from rtproof.experiment.run_request import ExperimentRequest, Measurement
from rtproof.judge.analysis_model import Requirement
from rtproof.run.live_view import clock_text

DEFAULT_NS = 10_000_000_000
PROC = Path("/proc")
REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR, 6)
"""Policies of real-time threads; 6 is SCHED_DEADLINE, for which Python has no name."""
NAME_BYTES = 15
"""The kernel keeps so many of a thread's name."""
NOT_IN_A_NAME = frozenset('+,;"\\')
MOST_CALLS = 24
"""The filter of system calls has room for so many threads."""
GRACE_S = 5


@dataclass(frozen=True)
class ForeignRequest:
    """What shall be measured: a process, threads by name, or a program that is started for it.

    marks: what begins and ends an activation, in the user's words. keep_mib: the most events that are kept.
    """

    command: tuple[str, ...]
    pid: int | None = None
    names: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    duration_ns: int = DEFAULT_NS
    limit_ns: int | None = None
    output: Path | None = None
    marks: tuple[str, str] | None = None
    keep_mib: int | None = None


@dataclass(frozen=True)
class FoundThread:
    tid: int
    name: str
    real_time: bool


def measure(asked: ForeignRequest) -> Path:
    """Measure, and return the new run folder. UserError for a process or a thread that there is not."""
    folder = run_request.new_folder(asked.output, "explained")
    marks = agent_marks(*asked.marks) if asked.marks else ()
    with _program(asked.program) as process:
        pid = process.pid if process else asked.pid
        words = ["--probe", probe_words(asked, pid), "--trace", _trace_words(asked, pid)]
        words += [word for pair in zip(("--begin", "--end"), marks, strict=False) for word in pair]
        words += ["--duration", units.format_duration(asked.duration_ns)]
        wanted = Measurement(tuple(words), "foreign", clock_text(asked.duration_ns), asked.duration_ns, 0)
        limits = () if asked.limit_ns is None else (Requirement.usual(asked.limit_ns, Requirement.at_most_ns),)
        request = ExperimentRequest(asked.command, "local", limits, output=folder, report=False)
        target_runs.measure_folder(request, wanted)
        if process and process.poll():
            click.echo(f"rtproof: {one_line(asked.program[0])} ended with {_ending(process.returncode)}", err=True)
    return folder


def _trace_words(asked: ForeignRequest, pid: int | None) -> str:
    words = ["explain", "whole"]
    words += [f"keep_mib={asked.keep_mib}"] if asked.keep_mib else []
    calls = _calls_of(asked, pid) if pid or asked.names else []
    return ",".join(words + ([f"calls_of={'+'.join(calls)}"] if calls else []))


def _ending(code: int) -> str:
    """What is told of a program that failed: its exit code, or the signal that ended it."""
    names = {each.value: each.name for each in signal.Signals}
    return names.get(-code, f"signal {-code}") if code < 0 else f"exit code {code}"


@contextmanager
def _program(words: Sequence[str]) -> Iterator["subprocess.Popen[bytes] | None"]:
    """A new process of this program, which ends with the block; None without a program."""
    if not words:
        yield None
        return
    try:
        process = subprocess.Popen(words)
    except OSError as problem:
        raise UserError(f"cannot start {one_line(words[0])}: {problem.strerror}") from None
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def probe_words(asked: ForeignRequest, pid: int | None) -> str:
    """The probe with the process and the threads as its options. UserError for those that there are not."""
    for name in asked.names:
        if set(name) & NOT_IN_A_NAME or not name.isprintable() or len(name.encode()) > NAME_BYTES:
            raise UserError(
                f"{one_line(name)!r} is no name of a thread: the kernel keeps {NAME_BYTES} characters of it"
            )
    options = [f"pid={pid}"] if pid else []
    if asked.names:
        if not asked.program:
            _refuse_absent(asked.names, _threads_of(pid) if pid else _every_thread())
        options.append(f"thread={'+'.join(asked.names)}")
    elif pid and not asked.program:
        _refuse_without_threads(pid)
    return ":".join(filter(None, ("foreign", ",".join(options))))


def _refuse_without_threads(pid: int) -> None:
    if not _threads_of(pid):
        raise UserError(f"there is no process {pid}, or it has ended")


def _refuse_absent(names: Sequence[str], there: Sequence[FoundThread]) -> None:
    """UserError for a name that no thread has."""
    missing = [name for name in names if name not in {each.name for each in there}]
    if missing:
        urgent = sorted({each.name for each in there if each.real_time})[:8]
        instead = f"; real-time threads are: {', '.join(map(one_line, urgent))}" if urgent else ""
        raise UserError(f"there is no thread {missing[0]!r}{instead}")


def _calls_of(asked: ForeignRequest, pid: int | None) -> list[str]:
    """The threads whose system calls are traced, by name or by number."""
    if asked.names:
        return list(asked.names)
    if asked.program:
        return [_filter_name(asked.program[0]) or str(pid)]
    found = _threads_of(pid or 0)
    chosen = [each for each in found if each.real_time] or found
    return [str(each.tid) for each in chosen[:MOST_CALLS]]


def _filter_name(program: str) -> str:
    """The name that the program's threads begin with; "" if a filter cannot have it."""
    name = os.fsencode(Path(program).name)[:NAME_BYTES].decode(errors="replace")
    usable = name.isprintable() and not name.isdecimal() and "\ufffd" not in name and not set(name) & NOT_IN_A_NAME
    return name if usable else ""


def _threads_of(pid: int) -> list[FoundThread]:
    """The threads of a process; none if it has ended."""
    found = []
    with suppress(OSError):
        for place in sorted((PROC / str(pid) / "task").iterdir()):
            with suppress(OSError):
                tid = int(place.name)
                name = (place / "comm").read_text(errors="replace").rstrip("\n")
                policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
                found.append(FoundThread(tid, name, policy in REAL_TIME))
    return found


def _every_thread() -> list[FoundThread]:
    return [thread for place in PROC.iterdir() if place.name.isdecimal() for thread in _threads_of(int(place.name))]
