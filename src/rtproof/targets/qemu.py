# SPDX-License-Identifier: Apache-2.0
"""A guest in QEMU: a kernel of your choice, booted for the run and gone after it.

In virtual time its figures are instructions counted, not a board's microseconds.
"""

import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rtproof.core.errors import TargetError, UserError
from rtproof.core.files import write_whole
from rtproof.vm.guest import CONSOLE_LOG, Job, archive_files, started_guest, wait_until_over
from rtproof.vm.initramfs import build_guest_agent
from rtproof.vm.kernel_files import open_kernel
from rtproof.vm.machine import USUAL_PACE_US, Machine, check_turns
from rtproof.vm.mailbox import GuestState
from rtproof.vm.qemu_process import Guest

OPTIONS: dict[str, str] = {
    "kernel": "file of a kernel image",
    "modules": "the kernel's folder lib/modules/RELEASE, needed to load modules from it",
    "insert": "modules to load: names or .ko files, separated by commas",
    "boot": "more arguments for the kernel, separated by spaces",
    "mode": "virtual-time (instructions counted, the default) or wall-clock",
    "cpus": "number of processors (1); in virtual time several take turns, which needs QEMU 8.1 (rtproof lab qemu)",
    "pace": "with several processors in virtual time: length of a turn in microseconds (4)",
    "soakers": "with several processors in virtual time: keep each busy, so that their speeds are constant (yes)",
    "qemu": "which QEMU: system, fetched, or the path of one (one that fits)",
    "memory": "MiB of memory (512)",
    "files": "files for the guest: PLACE=FILE, separated by commas",
    "setup": "commands for the guest's shell before the program",
    "serial": "a Unix socket of this host, which the guest's second serial port is; only with mode=wall-clock",
}
BOOT_TIMEOUT_S = 300
GENERATOR = "generator"
_POLL_S = 0.05
_LAST_SECONDS = 10
_MOST_DIGITS = 9
_MACHINES = {"x86_64": "x86_64", "aarch64": "aarch64", "armv7": "armv7l"}
_PROGRAMS = "/rtproof/programs"


class QemuProcess:
    """A program that is the only job of a guest. results: the files that it left in /out, by name."""

    def __init__(self, guest: Guest, stack: ExitStack) -> None:
        self._guest = guest
        self._stack = stack
        self._killed = False
        self.results: dict[str, bytes] = {}

    def lines(self) -> Iterator[str]:
        """The program's lines, until QEMU ends, the guest panics, or the guest fails to boot in time."""
        rest = b""
        while not self._over():
            *lines, rest = (rest + self._guest.mailbox.feed()).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        rest += self._guest.mailbox.feed()
        yield from rest.decode(errors="replace").splitlines()

    def _over(self) -> bool:
        if self._guest.mailbox.state < GuestState.RUNNING and time.monotonic() - self._guest.begun > BOOT_TIMEOUT_S:
            return True
        return self._guest.monitor.happened("STOP", _POLL_S) or self._guest.monitor.closed

    def interrupt(self) -> None:
        self._guest.tell_console("int")

    def terminate(self) -> None:
        self._guest.tell_console("term")

    def kill(self) -> None:
        self._killed = True
        self._guest.kill()

    def wait(self) -> int:
        """TargetError if the guest did not end because its program had ended."""
        with self._stack:
            if self._killed:
                return -signal.SIGKILL
            wait_until_over(self._guest, _LAST_SECONDS)
            mail = self._guest.mailbox
            self.results = archive_files(mail.results.getvalue())
        return mail.end[0] if mail.end else 0


class QemuTarget:
    """A machine that boots anew for each program. The log of its console is kept beside the files that come back."""

    def __init__(self, machine: Machine, stack: ExitStack, setup: str = "") -> None:
        self._machine = machine
        self._stack = stack
        self._setup = setup
        self._pushed: dict[str, Path] = {}
        self._log = Path(CONSOLE_LOG)
        self._process: QemuProcess | None = None

    def machine(self) -> str:
        return _MACHINES[self._machine.kernel.arch]

    def own_agent(self) -> Path:
        """The agent that the pinned compiler builds, because virtual time depends on every instruction."""
        return build_guest_agent(self._machine.kernel.arch)

    def host_name(self) -> str:
        return "rtproof-guest"

    def push(self, program: Path) -> str:
        """Note the program, and return its path in the guest. It is copied when the next program starts."""
        place = f"{_PROGRAMS}/{program.name}"
        self._pushed[place] = program
        return place

    def place(self, file: Path) -> str:
        """A path in /out, the folder whose files come back. Two guests may have their records in one folder."""
        self._log = file.parent / (f"{file.stem}-{CONSOLE_LOG}" if file.stem == GENERATOR else CONSOLE_LOG)
        return f"/out/{file.name}"

    def pull(self, remote: str, file: Path) -> None:
        """Write the file that the last program left in /out. Without such a file, the console's log is removed too."""
        content = self._process.results.get(remote.removeprefix("/out/")) if self._process else None
        if content:
            write_whole(file, content)
        else:
            self._log.unlink(missing_ok=True)

    def start(self, arguments: Sequence[str]) -> QemuProcess:
        """Start the program as the job of a new guest, which boots or resumes from a snapshot.

        A guest whose folder has the log of another one gets a log with a number.
        """
        first, number = self._log, 1
        while self._log.exists():
            number += 1
            self._log = first.with_stem(f"{first.stem}-{number}")
        job = Job(f"{self._setup}\nexec {shlex.join(arguments)}", tuple(self._pushed.items()))
        stack = self._stack.enter_context(ExitStack())
        guest = stack.enter_context(started_guest(self._machine, job, self._log, BOOT_TIMEOUT_S))
        self._process = QemuProcess(guest, stack)
        return self._process


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[QemuTarget]:
    """A guest with the kernel that the options name. It boots when a program is started."""
    machine = _machine(options)
    check_turns(machine)
    with ExitStack() as stack:
        yield QemuTarget(machine, stack, options.get("setup", ""))


def _machine(options: dict[str, str]) -> Machine:
    if not options.get("kernel"):
        raise UserError("the target qemu needs a kernel: --target-option kernel=FILE")
    modules = options.get("modules")
    mode = options.get("mode", VIRTUAL_TIME)
    if mode not in (VIRTUAL_TIME, WALL_CLOCK):
        raise UserError(f"mode {mode!r} is neither {VIRTUAL_TIME} nor {WALL_CLOCK}")
    in_virtual_time = mode == VIRTUAL_TIME
    serial = options.get("serial")
    if serial and in_virtual_time:
        raise UserError("serial= needs mode=wall-clock: what comes from this host has no place in virtual time")
    cpus = _number(options, "cpus", 1)
    idle = [name for name in ("pace", "soakers") if name in options and not (in_virtual_time and cpus > 1)]
    if idle:
        raise UserError(f"{idle[0]}= is for processors that take turns: it needs cpus=2 or more in virtual time")
    if options.get("soakers", "yes") not in ("yes", "no"):
        raise UserError(f"soakers={options['soakers']} is neither yes nor no")
    kernel = open_kernel(Path(options["kernel"]), Path(modules) if modules else None)
    if kernel.arch not in _MACHINES:
        raise TargetError(f"there is no guest for {kernel.arch}")
    return Machine(
        kernel,
        boot=tuple(options.get("boot", "").split()),
        in_virtual_time=in_virtual_time,
        cpus=cpus,
        memory_mib=_number(options, "memory", 512),
        files=tuple(_place_and_file(text) for text in _listed(options, "files")),
        modules=tuple(Path(text) if "/" in text or ".ko" in text else text for text in _listed(options, "insert")),
        serial=Path(serial) if serial else None,
        pace_us=_number(options, "pace", USUAL_PACE_US),
        soakers=options.get("soakers") != "no",
        qemu=options.get("qemu", ""),
    )


VIRTUAL_TIME, WALL_CLOCK = "virtual-time", "wall-clock"


def _number(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise UserError(f"{name}={text} is not a whole number of at least 1")
    return int(text)


def _listed(options: dict[str, str], name: str) -> list[str]:
    return [part.strip() for part in options.get(name, "").split(",") if part.strip()]


def _place_and_file(text: str) -> tuple[str, Path]:
    place, equals, file = text.partition("=")
    if not (equals and place.startswith("/") and file):
        raise UserError(f"{text!r} is not PLACE=FILE, where PLACE is a path in the guest such as /etc/settings")
    return place, Path(file)
