# SPDX-License-Identifier: Apache-2.0
"""The table of checks. Each runs in a process of its own, all at once, until a common deadline.

So a check that hangs or dies does not affect the others, and nothing stays of what it tries on itself, such as a
real-time policy.
"""

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import msgspec

from rtproof.core.printable import one_line
from rtproof.doctor import machine_checks as machine
from rtproof.doctor import program_checks as program
from rtproof.doctor.findings import FEATURES, Examination, Finding, State, feature_state
from rtproof.doctor.host import Host

PATIENCE_S = 2.4
"""How long all checks together may take on a machine that has time for them."""
MOST_BUSY = 4
"""So many times as long they may take on a busy machine."""
GRACE_S = 0.15
"""How long a check that takes too long may take to stop the programs that it has started."""
PIPE_BYTES = 1 << 16
"""A pipe holds so much. A check that finds more does not end."""
END = b"\n"
"""It ends each finding in the pipe. Another one stands behind the last, if the check came to its end."""


@dataclass(frozen=True)
class Check:
    """A row of the table. name: of the thing, where a finding has no other. features: words; what needs the thing."""

    name: str
    features: str
    look: Callable[[Host], Finding | Iterable[Finding]]


CHECKS = (
    Check("agent", "measure explain audit loads kernel-module", program.agent),
    Check("current folder", "measure", machine.current_folder),
    Check("idle states", "measure", machine.idle_states),
    Check("locked memory", "measure", machine.locked_memory),
    Check("numpy", "measure explain reports exports plots", program.numpy),
    Check("choice of CPUs", "measure", machine.choice_of_cpus),
    Check("real-time policy", "measure", machine.real_time),
    Check("kernel symbols", "explain", machine.kernel_symbols),
    Check("kernel trace", "explain", machine.kernel_trace),
    Check("temporary folder", "loads", machine.temporary_folder),
    Check("loads", "loads", program.loads),
    Check("agents for boards", "boards", program.board_agents),
    Check("serial ports", "boards", machine.serial_ports),
    Check("ssh", "boards", program.ssh),
    Check("labgrid", "labgrid", program.labgrid),
    Check("cache folder", "lab several-cpus", machine.cache_folder),
    Check("lab's compiler", "lab several-cpus", program.lab_compiler),
    Check("QEMU", "lab", program.qemu),
    Check("kernels", "lab several-cpus", program.lab_kernels),
    Check("QEMU for several CPUs", "several-cpus", program.qemu_for_several_cpus),
    Check("module rtproof.ko", "kernel-module", machine.kernel_module),
    Check("matplotlib", "plots", program.matplotlib),
    Check("pyarrow", "exports", program.pyarrow),
    Check("export formats", "exports", program.export_formats),
)
"""What is looked at, in the order of the features that need it."""


def examine(asked: Sequence[str], only_asked: bool, host: Host, patience_s: float | None = None) -> Examination:
    """The findings of all checks, or of those that the asked features need, and the state of each such feature."""
    busy = min(MOST_BUSY, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    patience_s = patience_s or PATIENCE_S * busy
    features = [name for name in FEATURES if name in asked or not only_asked]
    with contextlib.suppress(Exception):
        importlib.import_module("numpy")  # Once, before the processes of the checks that need it begin.
    found = _run_all([each for each in CHECKS if set(each.features.split()) & set(features)], host, patience_s)
    return Examination(tuple(found), tuple(feature_state(name, found) for name in features), tuple(asked))


def _run_all(checks: Sequence[Check], host: Host, patience_s: float) -> list[Finding]:
    """What the checks find until the time is over. Then their processes end, with the programs they have started."""
    running: dict[int, tuple[Check, int]] = {}
    try:
        for check in checks:
            process, pipe = _start(check, host)
            running[process] = check, pipe
        _wait(running, patience_s)
        late = {process for process in running if not _has_ended(process)}
    finally:
        # A process is waited for after its group was killed, because until then nothing else can have its number.
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process, number)
            # A process that waits for a device without an end cannot be killed, and nobody waits for it.
            _wait(running, GRACE_S)
        for process in running:
            _has_ended(process, 0)
    found: list[Finding] = []
    for process, (check, pipe) in running.items():
        with os.fdopen(pipe, "rb", buffering=0) as file:
            received = file.read(PIPE_BYTES) or b""
        *answers, after_the_last = received.split(END)
        found += (msgspec.json.decode(answer, type=Finding) for answer in answers if answer)
        if after_the_last or answers[-1:] != [b""]:
            why = f"did not end within {patience_s:g} s" if process in late else "ended without an answer"
            found.append(_no_answer(check, why))
    return found


def _start(check: Check, host: Host) -> tuple[int, int]:
    """The process of a check, and the end of a pipe where its findings arrive."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        _work(check, host, theirs)
    os.close(theirs)
    os.set_blocking(ours, False)
    with contextlib.suppress(OSError):
        os.setpgid(process, process)
    return process, ours


def _work(check: Check, host: Host, pipe: int) -> NoReturn:
    """Run a check in the new process, write its findings into the pipe, and end the process."""
    with contextlib.suppress(BaseException):
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        nothing = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(nothing, each)
        sys.stdout = sys.stderr = os.fdopen(nothing, "w")
        for finding in look(check, host):
            os.write(pipe, msgspec.json.encode(finding) + END)
        os.write(pipe, END)
    os._exit(0)


def look(check: Check, host: Host) -> Iterator[Finding]:
    """What a check finds, in this process. What it has found before it fails stays."""
    features = tuple(check.features.split())
    try:
        found = check.look(host)
        for each in [found] if isinstance(found, Finding) else found:
            yield replace(each, name=each.name or check.name, features=features)
    except Exception as problem:
        yield _no_answer(check, f"failed ({one_line(f'{type(problem).__name__}: {problem}', 200)})")


def _no_answer(check: Check, why: str) -> Finding:
    return Finding(State.CANNOT_TELL, f"The check {why}.", name=check.name, features=tuple(check.features.split()))


def _wait(processes: Iterable[int], longest_s: float) -> None:
    """Wait until all have ended or the time is over."""
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline and not all(_has_ended(each) for each in processes):
        time.sleep(0.004)


def _has_ended(process: int, more: int = os.WNOWAIT) -> bool:
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | more) is not None
    except ChildProcessError:
        return True
