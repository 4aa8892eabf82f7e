# SPDX-License-Identifier: Apache-2.0
"""What the checks ask this machine. Every question has an end: programs are stopped, and files are read in part.

A test gives another root folder, other privileges and other answers of the kernel. Programs are found by ``PATH``.
"""

import ctypes
import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

from rtproof.core.printable import one_line

MOST_BYTES = 1 << 16
"""Of a file or of what a program prints. The rest is not read."""
PROGRAM_S = 0.8
"""How long a program may take to print its version."""
MOST_SHOWN = 80
CAPABILITIES = {"dac_override": 1, "sys_module": 16, "sys_admin": 21, "sys_nice": 23, "ipc_lock": 14}
"""Bits of a set of capabilities (linux/capability.h)."""
SUDOERS = frozenset({"sudo", "wheel", "admin"})
"""The groups whose members may usually use sudo."""
CONTAINERS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
OUTSIDE = {"pid": 4026531836, "cgroup": 4026531835}
"""The numbers of a system's first namespaces. A machine made from an image still has a file of CONTAINERS."""


@dataclass(frozen=True)
class ProgramAnswer:
    """What a program did. path: "" if there is no such program. line: the first that it printed. printed: all of it.

    fault: why it cannot be used, as the end of a sentence that begins with its name; "" if it answered.
    """

    path: str
    line: str = ""
    fault: str = ""
    printed: str = ""


def _policy_error(policy: int, priority: int) -> int:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError as error:
        return error.errno or 0
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return 0


def try_real_time() -> int:
    """0, or the error number with which the kernel refuses SCHED_FIFO. This process has it for an instant only."""
    return _policy_error(os.SCHED_FIFO, 1)


def try_lock(size: int) -> int:
    """0, or the error number with which the kernel refuses to lock so many bytes of this process for an instant."""
    with mmap.mmap(-1, size) as memory:
        library = ctypes.CDLL(None, use_errno=True)
        place = ctypes.c_char.from_buffer(memory)
        failed = library.mlock(ctypes.byref(place), ctypes.c_size_t(size))
        error = ctypes.get_errno() if failed else 0
        del place
    return error


def try_cpu(cpu: int) -> int:
    """0, or the error number with which the kernel refuses to move this process to a CPU. It stays there."""
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        return error.errno or 0
    return 0


@dataclass(frozen=True)
class Attempts:
    """What is tried on the process of a check. It has ended when the check has, and nothing of it stays."""

    real_time: Callable[[], int] = try_real_time
    lock: Callable[[int], int] = try_lock
    cpu: Callable[[int], int] = try_cpu


@dataclass(frozen=True)
class Host:
    """This machine. root: the folder that stands for /. user: its effective number."""

    root: Path = Path("/")
    user: int = field(default_factory=os.geteuid)
    attempts: Attempts = Attempts()

    def path(self, name: str) -> Path:
        """The file that an absolute path names."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str:
        """The text of a file, at most MOST_BYTES of it. OSError if it cannot be read. It does not wait for a device."""
        file = os.open(self.path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.read(file, MOST_BYTES).decode(errors="replace").strip()
        finally:
            os.close(file)

    def text(self, name: str) -> str:
        """As ``read``; "" if the file cannot be read."""
        try:
            return self.read(name)
        except OSError:
            return ""

    def can(self, capability: str) -> bool:
        """Whether this process has a capability (capabilities(7)), such as ``sys_nice``."""
        for line in self.text("/proc/self/status").splitlines():
            name, _, value = line.partition(":")
            if name == "CapEff":
                return bool(int(value, 16) >> CAPABILITIES[capability] & 1)
        return self.user == 0

    @property
    def in_user_namespace(self) -> bool:
        """Whether the capabilities of this process count in its user namespace only (user_namespaces(7))."""
        return self.text("/proc/self/uid_map").split() not in ([], ["0", "0", "4294967295"])

    @property
    def container(self) -> str:
        """The name of what runs this container, such as ``podman``; "" if no sign of a container is here."""
        for line in self.text("/proc/1/environ").split("\0"):
            name, _, value = line.partition("=")
            if name == "container" and value:
                return one_line(value, MOST_SHOWN)
        if all(self._namespace(kind) == f"{kind}:[{number}]" for kind, number in OUTSIDE.items()):
            return ""
        signs = (name for path, name in CONTAINERS.items() if self.path(path).exists())
        return next(signs, "")

    def _namespace(self, kind: str) -> str:
        with suppress(OSError):
            return str(self.path(f"/proc/self/ns/{kind}").readlink())
        return ""

    def ask(self, program: str, *arguments: str, patience_s: float = PROGRAM_S) -> ProgramAnswer:
        """Run a program without input. It is stopped when it takes too long, and its output is read in part."""
        path = shutil.which(program)
        if path is None:
            return ProgramAnswer("", fault="is not installed")
        try:
            popen = subprocess.Popen(
                [path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return ProgramAnswer(path, fault=f"cannot be started: {error.strerror}")
        with popen:
            try:
                printed, ended = _output(popen, time.monotonic() + patience_s)
            finally:
                with suppress(ProcessLookupError):
                    popen.kill()
        fault = _fault(popen.returncode, printed, ended, patience_s)
        return ProgramAnswer(path, _first_line(printed), fault, printed.decode(errors="replace"))


def _output(popen: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """What a program printed, and whether it ended in time or printed more than anybody reads."""
    assert popen.stdout is not None
    printed = b""
    with DefaultSelector() as selector:
        selector.register(popen.stdout, EVENT_READ)
        while len(printed) < MOST_BYTES:
            if not selector.select(max(0, deadline - time.monotonic())):
                return printed, False
            part = os.read(popen.stdout.fileno(), MOST_BYTES)
            if not part:
                break
            printed += part
        else:
            return printed, True
    with suppress(subprocess.TimeoutExpired):
        popen.wait(max(0.01, deadline - time.monotonic()))
        return printed, True
    return printed, False


def _first_line(printed: bytes) -> str:
    lines = (one_line(line, MOST_SHOWN) for line in printed.decode(errors="replace").splitlines())
    return next(filter(None, lines), "")


def _fault(code: int, printed: bytes, ended: bool, patience_s: float) -> str:
    if not ended:
        return f"did not answer within {patience_s:g} s"
    if code in (126, 127):
        return f"cannot be run: {_first_line(printed) or f'exit code {code}'}"
    if code < 0 and len(printed) < MOST_BYTES:
        return f"was ended by {signal.Signals(-code).name}"
    return ""
