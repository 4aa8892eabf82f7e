# SPDX-License-Identifier: Apache-2.0
"""Run the checks, each in a process of its own and all at once, until a common deadline.

A check tries things on itself, such as a real-time policy, and nothing of that stays when its process has ended.
"""

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector
from types import FrameType, ModuleType
from typing import Any, NoReturn

import msgspec

from rtproof.core import plugins
from rtproof.core.printable import one_line
from rtproof.doctor import apt_packages, checks
from rtproof.doctor.findings import FEATURES, Examination, Finding, State, feature_state
from rtproof.doctor.host import Host

PATIENCE_S = 2.4
"""How long all checks together may take on a machine that has time for them."""
MOST_BUSY = 4
"""So many times as long they may take on a busy machine."""
GRACE_S = 0.15
"""How long a check that takes too long may take to stop the programs that it has started."""
SHARED = ("numpy", "rtproof.experiment.foreign_tools", "rtproof.audit.check_file")
"""What several checks import. It is imported once, before their processes begin."""
MOST_BYTES = 1 << 20


@dataclass
class RunningCheck:
    """A check in its process. pipe: where its findings arrive."""

    module: ModuleType
    process: int
    pipe: int
    received: bytes = b""
    ended: bool = False


def examine(asked: Sequence[str], only_asked: bool, host: Host, patience_s: float | None = None) -> Examination:
    """The findings of all checks, or of those that the asked features need, and the state of each such feature."""
    begun, patience_s = time.monotonic(), patience_s or _patience_s()
    features = [name for name in FEATURES if name in asked or not only_asked]
    modules = [each for each in plugins.load_plugins(checks) if set(each.FEATURES) & set(features)]
    for name in SHARED:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    found = [finding for each in _run_all(modules, host, patience_s) for finding in _findings(each, patience_s)]
    found = [each for each in found if set(each.features) & set(features)]
    found = apt_packages.checked(found, host, max(patience_s - (time.monotonic() - begun), patience_s / 8))
    order = {name: at for at, name in enumerate(FEATURES)}
    found.sort(key=lambda finding: order[finding.features[0]])
    states = tuple(feature_state(name, found) for name in features)
    return Examination(tuple(found), states, tuple(asked))


def _patience_s() -> float:
    """PATIENCE_S, and longer where other programs want the CPUs: then a slow check does not hang."""
    return PATIENCE_S * min(MOST_BUSY, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _run_all(modules: Sequence[ModuleType], host: Host, patience_s: float) -> list[RunningCheck]:
    deadline = time.monotonic() + patience_s
    running: list[RunningCheck] = []
    try:
        running += (_start(module, host) for module in modules)
        _receive(running, deadline)
    finally:
        _stop(running)
    return running


def _start(module: ModuleType, host: Host) -> RunningCheck:
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        _work(module, host, theirs)
    os.close(theirs)
    with contextlib.suppress(OSError):
        os.setpgid(process, process)
    return RunningCheck(module, process, ours)


def _work(module: ModuleType, host: Host, pipe: int) -> NoReturn:
    """Run a check in the new process, write its findings into the pipe as lines of JSON, and end the process."""
    code = 1
    with contextlib.suppress(BaseException):
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, _end)
        nothing = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(nothing, each)
        sys.stdout = sys.stderr = os.fdopen(nothing, "w")
        for finding in _safely(module, host):
            os.write(pipe, msgspec.json.encode(finding) + b"\n")
        code = 0
    os._exit(code)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(1)


def _safely(module: ModuleType, host: Host) -> Iterator[Finding]:
    try:
        yield from module.check(host)
    except Exception as problem:
        yield _no_answer(module, f"the check failed ({one_line(f'{type(problem).__name__}: {problem}', 200)})")


def _no_answer(module: ModuleType, why: str) -> Finding:
    name = module.__name__.rpartition(".")[2].replace("_", " ")
    return Finding(name, module.FEATURES, State.CANNOT_TELL, f"Nobody can tell, because {why}.")


def _receive(running: Sequence[RunningCheck], deadline: float) -> None:
    """Read what the checks find, until all have ended or the time is over."""
    with DefaultSelector() as selector:
        for each in running:
            selector.register(each.pipe, EVENT_READ, each)
        while selector.get_map():
            ready = selector.select(max(0, deadline - time.monotonic()))
            if not ready:
                return
            for key, _ in ready:
                _take(key.data, selector)


def _take(check: RunningCheck, selector: DefaultSelector) -> None:
    part = os.read(check.pipe, 1 << 16)
    check.received += part
    if not part or len(check.received) > MOST_BYTES:
        check.ended = True
        selector.unregister(check.pipe)


def _stop(running: Sequence[RunningCheck]) -> None:
    """End the processes of all checks, with the programs that they have started.

    A process is waited for after its group was killed, because until then nothing else can have its number.
    """
    late = [each for each in running if not each.ended]
    _signal(late, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and not all(_has_ended(each, os.WNOWAIT) for each in late):
        time.sleep(0.002)
    _signal(running, signal.SIGKILL)
    # A process that waits for a device without an end cannot be killed, and nobody waits for it.
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and sum(map(_has_ended, running)) < len(running):
        time.sleep(0.002)
    for each in running:
        os.close(each.pipe)


def _signal(running: Sequence[RunningCheck], number: int) -> None:
    for each in running:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(each.process, number)


def _has_ended(check: RunningCheck, more: int = 0) -> bool:
    try:
        return os.waitid(os.P_PID, check.process, os.WEXITED | os.WNOHANG | more) is not None
    except ChildProcessError:
        return True


def _findings(check: RunningCheck, patience_s: float) -> Iterator[Finding]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Finding)
    lines = check.received.split(b"\n")
    with contextlib.suppress(msgspec.DecodeError):
        for line in lines[:-1]:
            yield decoder.decode(line)
    if not check.ended:
        yield _no_answer(check.module, f"the check did not end within {patience_s:g} s")
    elif len(lines) == 1:
        yield _no_answer(check.module, "the process of the check ended without an answer")
