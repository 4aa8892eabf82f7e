# SPDX-License-Identifier: Apache-2.0
"""Measure threads of the user's own application, by the kernel's trace alone: a run of the probe ``foreign``."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from rtproof.core import units
from rtproof.core.errors import TargetError, UserError
from rtproof.core.printable import one_line
from rtproof.experiment import program_supervisor, run_request, target_runner, target_runs
from rtproof.experiment.mark_options import agent_marks, refuse_replaced
from rtproof.experiment.run_request import ExperimentRequest, Measurement
from rtproof.record.requirement import Requirement
from rtproof.run.live_view import clock_text

DEFAULT_NS = 10_000_000_000
PROC = Path("/proc")
REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR, 6)
"""Policies of real-time threads; 6 is SCHED_DEADLINE, for which Python has no name."""
NAME_BYTES = 15
"""The kernel keeps so many of a thread's name."""
ENDED = ("Z", "X")
"""States of threads that run no more."""
NOT_IN_A_NAME = frozenset('+,;"\\')
MOST_CALLS = 24
"""The filter of system calls has room for so many threads."""
KEEPER_S = 3 * (program_supervisor.GRACE_S + program_supervisor.LEFT_S)


@dataclass(frozen=True)
class ForeignRequest:
    """What shall be measured: a process, threads by name, or a program that is started for it.

    marks: what begins and ends an activation, in the user's words. keep_mib: the most events that are kept.
    stacks: whether functions are wanted, too.
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
    stacks: bool = False


@dataclass(frozen=True)
class FoundThread:
    tid: int
    name: str
    real_time: bool


def measure(asked: ForeignRequest) -> tuple[Path, TargetError | None]:
    """Measure. The new run folder, and why not all could be measured. UserError for what there is not."""
    folder = run_request.new_folder(asked.output, "explained")
    marks = agent_marks(*asked.marks) if asked.marks else ()
    if asked.pid:
        refuse_replaced(marks, PROC / str(asked.pid) / "maps")
    with _program(asked.program) as process:
        pid = process.pid if process else asked.pid
        traced = ["explain", "whole", *([f"keep_mib={asked.keep_mib}"] if asked.keep_mib else [])]
        traced += ["stacks"] if asked.stacks else []
        traced += [f"process={process_id}"] if (process_id := pid or _process_of(asked.names)) else []
        calls = _calls_of(asked, pid) if pid or asked.names else []
        traced += [f"calls_of={'+'.join(calls)}"] if calls else []
        words = ["--probe", probe_words(asked, pid), "--trace", ",".join(traced)]
        words += [word for pair in zip(("--begin", "--end"), marks, strict=False) for word in pair]
        words += ["--duration", units.format_duration(asked.duration_ns)]
        wanted = Measurement(tuple(words), "foreign", clock_text(asked.duration_ns), asked.duration_ns, 0)
        wanted = replace(wanted, when_traced=process.begin) if process else wanted
        limits = () if asked.limit_ns is None else (Requirement(asked.limit_ns),)
        request = ExperimentRequest(asked.command, "local", limits, output=folder, report=False)
        _, outcome = target_runs.measure_once(request, wanted)
        failure = target_runner.agent_failure(outcome)
        if process:
            process.tell_end()
    return folder, failure


class WaitingProgram:
    """A program that waits until the trace is on. A keeper starts it, and ends it even if rtproof is killed."""

    def __init__(self, words: Sequence[str]) -> None:
        """UserError for a program that there is not."""
        self._name = one_line(words[0])
        theirs, self._control = os.pipe()
        self._report, report = os.pipe()
        keeper = [sys.executable, "-I", program_supervisor.__file__, str(theirs), str(report), *words]
        self._keeper = subprocess.Popen(keeper, pass_fds=(theirs, report))
        os.close(theirs)
        os.close(report)
        self._begun = False
        self._told = b""
        if not (pid := self._awaited("PID")):
            self.end()
            raise UserError(f"cannot start {self._name}: the process that starts it ended")
        self.pid = pid

    def begin(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._control, b"g")
        self._begun = True

    def tell_end(self) -> None:
        """Print how the program ended, if it did and failed. UserError if it could not be started."""
        if not self._begun:
            return
        if why := self._awaited("BEGAN"):
            raise UserError(f"cannot start {self._name}: {os.strerror(why)}")
        if not _threads_of(self.pid) and (code := self._awaited("ENDED")):
            signals = {-each.value: each.name for each in signal.Signals}
            how = signals.get(code, f"signal {-code}" if code < 0 else f"exit code {code}")
            click.echo(f"rtproof: {self._name} ended with {how}", err=True)

    def end(self) -> None:
        """End the program and all that it started."""
        os.close(self._control)
        try:
            self._keeper.wait(KEEPER_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        os.close(self._report)

    def _awaited(self, word: str) -> int | None:
        """What the keeper tells after this word; None if it ends without."""
        while not (found := re.search(rf"(?m)^{word} (-?\d+)\n", self._told.decode())):
            if not (more := os.read(self._report, 4096)):
                return None
            self._told += more
        return int(found[1])


@contextmanager
def _program(words: Sequence[str]) -> Iterator[WaitingProgram | None]:
    """A new process that becomes this program when it is told to, and ends with the block; None without a program."""
    if not words:
        yield None
        return
    name = words[0]
    if not shutil.which(name):
        path, why = Path(name), os.strerror(errno.ENOENT)
        if "/" in name and path.exists():
            why = os.strerror(errno.EISDIR if path.is_dir() else errno.EACCES)
        raise UserError(f"cannot start {one_line(name)}: {why}")
    program = WaitingProgram(words)
    try:
        yield program
    finally:
        program.end()


def probe_words(asked: ForeignRequest, pid: int | None) -> str:
    """The probe with the process and the threads as its options. UserError for those that there are not."""
    for name in asked.names:
        if set(name) & NOT_IN_A_NAME or not name.isprintable() or len(name.encode()) > NAME_BYTES:
            raise UserError(
                f"{one_line(name)!r} is no name of a thread: the kernel keeps {NAME_BYTES} characters of it"
            )
    if asked.pid:
        _refuse_unmeasurable(asked.pid)
    there = _there(asked, pid)
    numbers = {str(each.tid) for each in there}
    known = {each.name for each in there} | numbers
    missing = [] if asked.program else [name for name in asked.names if name not in known]
    if missing:
        urgent = sorted({each.name for each in there if each.real_time})[:8]
        instead = f"; real-time threads are: {', '.join(map(one_line, urgent))}" if urgent else ""
        raise UserError(f"there is no thread {missing[0]!r}{instead}")
    tids = "+".join(name for name in asked.names if name in numbers)
    names = "+".join(name for name in asked.names if name not in numbers)
    options = {"pid": pid, "tid": tids, "thread": names}
    given = ",".join(f"{name}={value}" for name, value in options.items() if value)
    return f"foreign:{given}" if given else "foreign"


def _there(asked: ForeignRequest, pid: int | None) -> list[FoundThread]:
    """The threads that may be named, by their numbers too: of a program that waits there are none yet."""
    if asked.program or not asked.names:
        return []
    processes = [pid] if pid else [int(place.name) for place in PROC.iterdir() if place.name.isdecimal()]
    return [thread for process in processes for thread in _threads_of(process)]


def _refuse_unmeasurable(pid: int) -> None:
    """UserError for a process that there is not, that has ended, or that is a thread of another one."""
    if _threads_of(pid):
        with suppress(OSError):
            told = re.search(r"(?m)^Tgid:\s*(\d+)$", (PROC / str(pid) / "status").read_text(errors="replace"))
            if told and int(told[1]) != pid:
                raise UserError(f"{pid} is a thread of process {told[1]}: give --thread {pid}, or --pid {told[1]}")
        return
    if (PROC / str(pid)).exists():
        raise UserError(f"process {pid} has ended, and only waits for its parent: there is nothing to measure")
    raise UserError(f"there is no process {pid}, or it has ended")


def _process_of(names: Sequence[str]) -> int | None:
    """The process that has the first of these threads."""
    for place in PROC.iterdir() if names else ():
        found = _threads_of(int(place.name)) if place.name.isdecimal() else []
        if any(names[0] in (each.name, str(each.tid)) for each in found):
            return int(place.name)
    return None


def _calls_of(asked: ForeignRequest, pid: int | None) -> list[str]:
    """The threads whose system calls are traced, by name or by number."""
    if asked.names:
        return list(asked.names)
    if asked.program:
        # A program's threads begin with its name; a filter cannot have every name.
        name = os.fsencode(Path(asked.program[0]).name)[:NAME_BYTES].decode(errors="replace")
        usable = name.isprintable() and not name.isdecimal() and not set(name) & {*NOT_IN_A_NAME, "\ufffd"}
        return [name if usable else str(pid)]
    found = _threads_of(pid or 0)
    chosen = [each for each in found if each.real_time] or found
    return [str(each.tid) for each in chosen[:MOST_CALLS]]


def _threads_of(pid: int) -> list[FoundThread]:
    """The threads of a process that live; none if it has ended."""
    found = []
    with suppress(OSError):
        for place in sorted((PROC / str(pid) / "task").iterdir()):
            with suppress(OSError):
                tid = int(place.name)
                name = (place / "comm").read_text(errors="replace").rstrip("\n")
                if (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in ENDED:
                    continue
                policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
                found.append(FoundThread(tid, name, policy in REAL_TIME))
    return found
