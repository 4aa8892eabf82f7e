# SPDX-License-Identifier: Apache-2.0
"""Measure threads of the user's own application, by the kernel's trace alone: a run of the probe ``foreign``."""

import ctypes
import errno
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from rtproof.core import units
from rtproof.core.elf_symbols import checked_offset, function_offset
from rtproof.core.errors import TargetError, UserError
from rtproof.core.printable import one_line
from rtproof.experiment import run_request, target_runner, target_runs
from rtproof.experiment.run_request import RunRequest
from rtproof.explain.marks import EVENT, LEFT, REACHED, WRITTEN, Marks, parse_mark
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
PR_SET_PDEATHSIG = 1
GRACE_S, LOOK_S = 5.0, 0.05
"""So long a program may take to end by itself."""


class FoundThread(NamedTuple):
    tid: int
    name: str
    real_time: bool


def measure(
    command: tuple[str, ...], program: tuple[str, ...], values: Mapping[str, Any]
) -> tuple[Path, TargetError | None]:
    """Measure threads by their process or their names, or a program that is started for it.

    command: as typed. values: of the options of ``rtproof explain``. The new run folder, and why not all could be
    measured. UserError for what there is not.
    """
    folder = run_request.new_folder(values["output"], "explained")
    names, duration_ns = values["names"], values["duration_ns"] or DEFAULT_NS
    of_user = next(iter(values["pids"]), None)
    marks = agent_marks(values["begin"], values["end"]) if values["begin"] else ()
    if of_user:
        refuse_replaced(marks, PROC / str(of_user) / "maps")
    with _program(program) as process:
        pid = process.pid if process else of_user
        traced = ["explain", "whole", *([f"keep_mib={values['keep_mib']}"] if values["keep_mib"] else [])]
        traced += ["stacks"] if values["stacks"] else []
        traced += [f"process={process_id}"] if (process_id := pid or _process_of(names)) else []
        calls = _calls_of(names, program, pid) if pid or names else []
        traced += [f"calls_of={'+'.join(calls)}"] if calls else []
        words = ["--probe", probe_words(names, pid, waits=bool(program)), "--trace", ",".join(traced)]
        words += [word for pair in zip(("--begin", "--end"), marks, strict=False) for word in pair]
        words += ["--duration", units.format_duration(duration_ns)]
        limits = () if values["limit_ns"] is None else (Requirement(values["limit_ns"]),)
        asked = RunRequest(
            *(command, "local", limits),
            output=folder,
            report=False,
            arguments=tuple(words),
            probe="foreign",
            length=clock_text(duration_ns),
            length_ns=duration_ns,
        )
        _, outcome = target_runs.measure_once(replace(asked, when_traced=process.begin) if process else asked)
        failure = target_runner.agent_failure(outcome)
        if process:
            process.tell_end()
    return folder, failure


class WaitingProgram:
    """A program that waits until the trace is on, in a session of its own. It is killed if rtproof is killed."""

    def __init__(self, words: Sequence[str]) -> None:
        self._name = one_line(words[0])
        self._begun = False
        gate, self._gate = os.pipe()
        self._failure, failure = os.pipe()
        rtproof = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._gate)
            _become(words, gate, failure, rtproof)
        os.close(gate)
        os.close(failure)

    def begin(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._gate, b"g")
        self._begun = True

    def tell_end(self) -> None:
        """Print how the program ended, if it did and failed. UserError if it could not be started."""
        if not self._begun:
            return
        if why := os.read(self._failure, 16):
            raise UserError(f"cannot start {self._name}: {os.strerror(int(why))}")
        ended = self._end()
        if ended and ended.si_status:
            signals = {each.value: each.name for each in signal.Signals}
            number = ended.si_status
            exited = ended.si_code == os.CLD_EXITED
            how = f"exit code {number}" if exited else signals.get(number, f"signal {number}")
            click.echo(f"rtproof: {self._name} ended with {how}", err=True)

    def end(self) -> None:
        """End the program and its session: what it started, unless that has begun another session."""
        os.close(self._gate)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        while not self._end() and time.monotonic() < until:
            time.sleep(LOOK_S)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._failure)

    def _end(self) -> os.waitid_result | None:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def _become(words: Sequence[str], gate: int, failure: int, rtproof: int) -> NoReturn:
    """Wait at the gate, then become the program."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for each in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these.
            signal.signal(each, signal.SIG_DFL)
        if os.getppid() == rtproof and os.read(gate, 1):
            os.execvp(words[0], list(words))  # noqa: S606 - the user's program
    except OSError as problem:
        os.write(failure, str(problem.errno).encode())
    finally:
        os._exit(127)


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


def probe_words(names: Sequence[str], pid: int | None, *, waits: bool = False) -> str:
    """The probe with the process and the threads as its options. UserError for those that there are not.

    waits: the process is a program that waits, whose threads are not there yet.
    """
    for name in names:
        if set(name) & NOT_IN_A_NAME or not name.isprintable() or len(name.encode()) > NAME_BYTES:
            raise UserError(
                f"{one_line(name)!r} is no name of a thread: the kernel keeps {NAME_BYTES} characters of it"
            )
    if pid and not waits:
        _refuse_unmeasurable(pid)
    numbers: set[str] = set()
    if names and not waits:
        processes = [pid] if pid else [int(place.name) for place in PROC.iterdir() if place.name.isdecimal()]
        there = [thread for process in processes for thread in _threads_of(process)]
        numbers = {str(each.tid) for each in there}
        known = {each.name for each in there} | numbers
        if missing := [name for name in names if name not in known]:
            urgent = sorted({each.name for each in there if each.real_time})[:8]
            instead = f"; real-time threads are: {', '.join(map(one_line, urgent))}" if urgent else ""
            raise UserError(f"there is no thread {missing[0]!r}{instead}")
    tids = "+".join(name for name in names if name in numbers)
    others = "+".join(name for name in names if name not in numbers)
    options = {"pid": pid, "tid": tids, "thread": others}
    given = ",".join(f"{name}={value}" for name, value in options.items() if value)
    return f"foreign:{given}" if given else "foreign"


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


def _calls_of(names: Sequence[str], program: Sequence[str], pid: int | None) -> list[str]:
    """The threads whose system calls are traced, by name or by number."""
    if names:
        return list(names)
    if program:
        # A program's threads begin with its name; a filter cannot have every name.
        name = os.fsencode(Path(program[0]).name)[:NAME_BYTES].decode(errors="replace")
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


# The marks of the user's own application, from the words of the command line to those that the agent takes.


MOST_CHARACTERS = 400
_PLACE = re.compile(r"(?P<function>[^+]*)(\+(?P<plus>0x[0-9a-fA-F]{1,15}|[0-9]{1,15}))?")


def agent_marks(begin: str, end: str) -> tuple[str, str]:
    """Both marks as the agent takes them. UserError for a mark that makes no sense, or is the other one."""
    words = _agent_words(begin), _agent_words(end)
    first, last = map(parse_mark, words)
    if (first.kind, first.what) == (last.kind, last.what):
        raise UserError(f"--begin and --end are the same mark, {first.shown}, so an activation would have no length")
    return words


def refuse_replaced(marks: tuple[str, ...], maps: Path) -> None:
    """UserError if a process runs an older file than that in which the kernel would look for its marks.

    marks: as the agent takes them. maps: the process's file of this name below /proc.
    """
    in_files = [words for words in marks if words.startswith((f"{REACHED}:", f"{LEFT}:"))]
    places = [words.partition(" ")[0].split(":", 1)[1].rpartition(":")[0] for words in in_files]
    with suppress(OSError):
        loaded = maps.read_text(errors="replace").splitlines()
        for path in places:
            if any(line.endswith(f" {os.path.realpath(path)} (deleted)") for line in loaded):
                raise UserError(f"{path} was replaced after the process had begun, which runs the old one: restart it")


def trace_marks(begin: str, end: str) -> Marks:
    """Both marks for a trace that is there already. UserError for what only a new trace can have."""
    for words in (begin, end):
        kind = words.partition(":")[0]
        if kind in (REACHED, LEFT) or (kind == EVENT and words.count(":") > 1):
            raise UserError(
                f"{one_line(words, 80)} is for a new trace; for one that is there name an event:SYSTEM/NAME of it"
            )
    first, last = map(parse_mark, agent_marks(begin, end))
    return first, last


def _agent_words(words: str) -> str:
    """A mark with the place of a function in its file."""
    mark = parse_mark(words)
    if len(words) > MOST_CHARACTERS:
        raise UserError(f"a mark has {MOST_CHARACTERS} characters at most, not {len(words):,}")
    if mark.kind == WRITTEN and (not mark.what.isprintable() or mark.what != mark.what.strip()):
        raise UserError(f"{mark.shown!r} is no text of one line without blanks around it")
    if not words.isprintable() and mark.kind == EVENT:
        raise UserError(f"{mark.shown!r} has characters that no filter of the kernel can have")
    if mark.kind in (REACHED, LEFT):
        return _uprobe(mark.kind, words.partition(":")[2])
    return words


def _uprobe(kind: str, words: str) -> str:
    """``FILE:FUNCTION``, ``FILE:FUNCTION+OFFSET`` or ``FILE:+OFFSET`` as FILE:PLACE and the words for people."""
    file, _, place = words.rpartition(":")
    match = _PLACE.fullmatch(place)
    if not file or not match or not place:
        raise UserError(
            f"{one_line(f'{kind}:{words}', 80)} is no mark: write {kind}:FILE:FUNCTION, maybe with +OFFSET behind it"
        )
    path = Path(file).absolute()
    if any(letter.isspace() or letter == "#" for letter in str(path)) or not str(path).isprintable():
        raise UserError(
            f"the kernel's uprobes take no path with blanks or #, such as {one_line(str(path))!r}: make a link"
        )
    plus, function = int(match["plus"] or "0", 0), match["function"]
    if kind == LEFT and (plus or not function):
        raise UserError(f"{kind} marks the return of a function, so it takes no +OFFSET")
    offset = function_offset(path, function, plus) if function else checked_offset(path, plus)
    return f"{kind}:{path}:{offset:#x} {place}"
