# SPDX-License-Identifier: Apache-2.0
"""One running QEMU: start it, command it over its monitor (QMP), and say in one sentence why it ended.

No QEMU outlives this process, however this process ends. QMP is described in docs/interop/qmp-spec of QEMU's sources.
The monitor is a socket that QEMU inherits.
"""

import json
import math
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rtproof.core.errors import TargetError
from rtproof.vm.emulators import GUARDS, REPORT_FILE, report_lines
from rtproof.vm.machine import (
    CONSOLE,
    INITRD_FILE,
    MAIL_FILE,
    NO_HOST_TIMERS,
    Machine,
    bootable_image,
    emulator_of,
    guard_of,
    pacer_arguments,
    qemu_arguments,
)
from rtproof.vm.mailbox import GuestState, Mailbox


class EmulatorEndedError(TargetError):
    """QEMU has ended although nobody asked it to. Only the guest's files say why."""


class QemuLines:
    """Lines that QEMU writes to a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._rest = b""

    def next(self, timeout_s: float) -> bytes | None:
        """The next line; None if no line arrives within the time. EmulatorEndedError if QEMU has ended."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            received = b""
            try:
                received = self.socket.recv(65536)
            except TimeoutError:
                return None
            except ConnectionError:
                pass
            if not received:
                raise EmulatorEndedError("QEMU ended unexpectedly")
            self._rest += received
        line, self._rest = self._rest.split(b"\n", 1)
        return line


class Monitor:
    """The monitor of one QEMU. Events are kept until ``happened`` asks for them.

    ``closed``: QEMU has closed the monitor, so it has ended or is about to end.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._lines = QemuLines(connection)
        self._events: list[str] = []
        self._greeted = False
        self.closed = False

    def command(self, name: str, timeout_s: float = 60, **arguments: Any) -> Any:
        """Send a command and return QEMU's answer. TargetError if QEMU refuses, ends or does not answer in time."""
        if not self._greeted:
            self._greeted = True
            self.command("qmp_capabilities", timeout_s)
        request = {"execute": name, "arguments": arguments}
        try:
            self._lines.socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            self.closed = True
            raise EmulatorEndedError(f"QEMU ended before the command {name}") from error
        while True:
            try:
                message = self._message(timeout_s)
            except TimeoutError as error:
                raise TargetError(f"QEMU does not answer the command {name} within {timeout_s:g} s") from error
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise TargetError(f"QEMU refuses the command {name}: {message['error'].get('desc', message)}")
            self._events.append(message.get("event", ""))

    def happened(self, event: str, timeout_s: float) -> bool:
        """Whether an event has arrived, or arrives within the time and before QEMU ends."""
        end = time.monotonic() + timeout_s
        while event not in self._events:
            try:
                self._events.append(self._message(end - time.monotonic()).get("event", ""))
            except (TimeoutError, TargetError):
                return False
        self._events.remove(event)
        return True

    def _message(self, timeout_s: float) -> dict[str, Any]:
        try:
            line = self._lines.next(timeout_s)
        except EmulatorEndedError:
            self.closed = True
            raise
        if line is None:
            raise TimeoutError
        return dict(json.loads(line))


SHOW_MESSAGES = "loglevel=7 among the kernel's arguments shows its messages"
WATCH_S = 0.5
"""How often the host looks whether a guest goes on."""
STANDSTILL_S = 20
"""A guest in virtual time whose QEMU uses no CPU time for this long does not go on."""
SPARE_MIB = 128
"""Memory that QEMU needs in addition to the guest's memory."""


class Guest:
    """A running QEMU, with its ``mailbox``, its ``monitor``, and the ``folder`` in which it works."""

    def __init__(self, popen: "subprocess.Popen[bytes]", mailbox: Mailbox, monitor: Monitor, folder: Path) -> None:
        self._popen = popen
        self.mailbox = mailbox
        self.monitor = monitor
        self.folder = folder
        self.begun = time.monotonic()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def console(self) -> Path:
        """The file with the output of the guest's first serial port."""
        return self.folder / f"{CONSOLE}.out"

    @property
    def complaint(self) -> str:
        """The text that QEMU itself printed, without its warnings, which are no reason to end."""
        return without_warnings((self.folder / "qemu.log").read_text(errors="replace"))

    @property
    def guarded(self) -> bool:
        """Whether the guard of virtual time waits in QEMU's main loop (see rtproof.vm.emulators)."""
        return GUARDS in report_lines(self.folder / REPORT_FILE)

    def tell_console(self, line: str) -> None:
        """Type a line on the guest's console, if the guest still runs. A signal handler may call this."""
        with suppress(OSError):
            console = os.open(self.folder / f"{CONSOLE}.in", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(console, f"{line}\n".encode())
            finally:
                os.close(console)

    def kill(self) -> None:
        """End QEMU without waiting, if it still runs. A signal handler may call this."""
        self._popen.kill()

    def alive(self) -> bool:
        return self._popen.poll() is None

    def cpu_seconds(self) -> float:
        """The host's CPU time that QEMU has used; 0 if it has ended (proc_pid_stat(5), utime and stime)."""
        try:
            fields = Path("/proc", str(self._popen.pid), "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0

    @property
    def ending(self) -> str:
        """How QEMU ended, with its own last words. "" while it runs."""
        code = self._popen.poll()
        if code is None:
            return ""
        said = f": {self.complaint.splitlines()[-1]}" if self.complaint else ""
        if code < 0:
            return f"QEMU was killed by signal {-code}{said}"
        if code:
            return f"QEMU ended with exit code {code}{said}"
        return f"the machine was reset or switched off{said}"

    def wait_for_stop(self, timeout_s: float, silent_cpu_s: float = math.inf, watch_clock: bool = True) -> bool:
        """Wait until the guest stops or QEMU ends. Whether the guest stopped; False also if the time is over.

        TargetError if QEMU used ``silent_cpu_s`` of CPU time and the guest printed nothing meanwhile: CPU time, because
        a busy host makes a guest slow. watch_clock: also if QEMU used none for STANDSTILL_S, because virtual time jumps
        when it waits.
        """
        end = time.monotonic() + timeout_s
        printed, used_s = -1, 0.0
        running_s, running_at = -1.0, 0.0
        while (left_s := end - time.monotonic()) > 0:
            if self.monitor.happened("STOP", min(left_s, WATCH_S)):
                return True
            if self.monitor.closed:
                return False
            size, cpu_s, now = self.console.stat().st_size, self.cpu_seconds(), time.monotonic()
            if size != printed:
                printed, used_s = size, cpu_s
            if cpu_s != running_s:
                running_s, running_at = cpu_s, now
            if cpu_s - used_s >= silent_cpu_s:
                raise TargetError(
                    f"the guest hangs: it printed nothing during {cpu_s - used_s:.0f} s of this host's CPU time "
                    f"({SHOW_MESSAGES})"
                )
            if watch_clock and now - running_at >= STANDSTILL_S:
                raise TargetError(
                    f"the guest hangs: its virtual time has stood still for {now - running_at:.0f} s ({SHOW_MESSAGES})"
                )
        return False

    def wait(self, timeout_s: float) -> bool:
        """Wait until QEMU ends or the time is over. Whether QEMU has ended."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        self._popen.kill()
        self._popen.wait()


_MESSAGE = re.compile(r"\S+: |\*\*$|\(")
"""The beginning of a message: QEMU's name, GLib's two stars before a failed assertion, or a process in brackets."""
_NO_REASON = re.compile(r": (warning|info): ")


def without_warnings(log: str) -> str:
    """What QEMU printed, without its warnings and hints. A line that begins no message goes on with the one before."""
    kept: list[str] = []
    harmless = False
    for line in log.splitlines():
        if _MESSAGE.match(line):
            harmless = bool(_NO_REASON.search(line))
        if not harmless:
            kept.append(line)
    return "\n".join(kept).strip()


@contextmanager
def running_guest(
    machine: Machine,
    folder: Path,
    incoming: BinaryIO | None = None,
    plugin: Sequence[str] = (),
) -> Iterator[Guest]:
    """Start QEMU in a scratch folder, stopped before the guest's first instruction. QEMU ends with the context.

    incoming: a file with the state of a stopped machine, from which it resumes. plugin: arguments of QEMU that load
    one.
    """
    program = emulator_of(machine).path
    needed = machine.memory_mib + SPARE_MIB
    found = re.search(r"^MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found and int(found[1]) >> 10 < needed:
        free = int(found[1]) >> 10
        raise TargetError(f"a guest of {machine.memory_mib} MiB needs {needed} MiB of memory; {free} MiB are free")
    initramfs = machine.initramfs()
    try:
        (folder / INITRD_FILE).write_bytes(initramfs)
        (folder / f"{CONSOLE}.out").touch()
        os.mkfifo(folder / f"{CONSOLE}.in")
    except OSError as error:
        raise TargetError(f"a guest's files cannot be written to {folder}: {error.strerror}") from error
    arguments = qemu_arguments(machine, bootable_image(machine.kernel))
    with ExitStack() as stack:
        mailbox = Mailbox(folder / MAIL_FILE)
        stack.callback(mailbox.close)
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        with theirs:
            monitor = ("-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control")
            resumed = ("-incoming", "fd:0", *NO_HOST_TIMERS, *pacer_arguments(machine))
            go_on = resumed if incoming else pacer_arguments(machine, at_boot=True)
            guard = guard_of(machine).words(folder / REPORT_FILE) if machine.in_virtual_time else ()
            # Each end of a turn also wakes two threads of QEMU that then find nothing to do. With SCHED_BATCH they wait
            # until the thread of the processors pauses. It changes no byte, and of 10.9 to 12.2 CPU seconds of a cell
            # 9.9 to 10.1 were left (n = 3 each, interleaved, 2 processors under mmap).
            chrt = shutil.which("chrt")
            batch = (chrt, "--batch", "0") if machine.takes_turns and chrt else ()
            command = [*batch, *guard, program, *arguments, *monitor, "-S", *go_on, *plugin]
            popen = _start(command, folder, theirs.fileno(), incoming)
        guest = Guest(popen, mailbox, Monitor(ours), folder)
        stack.callback(guest.end)
        yield guest


def _start(command: Sequence[str], folder: Path, monitor: int, incoming: BinaryIO | None) -> "subprocess.Popen[bytes]":
    """Start QEMU in a session of its own, away from the terminal's Ctrl-C. If this process is killed, QEMU is too."""
    launcher = shutil.which("setpriv")
    if not launcher:
        raise TargetError("the lab needs setpriv, which ends guests when this program ends (Debian: util-linux)")
    with (folder / "qemu.log").open("wb") as log:
        return subprocess.Popen(
            [launcher, "--pdeathsig", "KILL", *command],
            cwd=folder,
            stdin=incoming or subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(monitor,),
            start_new_session=True,
        )


LAST_SECONDS = 10
"""How many seconds QEMU may take to end."""
BOOT_QUESTION = "does this kernel boot on such a machine?"
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_HELPER = re.compile(r"rtproof-guest: (.*)")


@contextmanager
def keeping_console(guest: Guest, log: Path, before: bytes = b"") -> Iterator[None]:
    """At the end of the context, write the console's log to ``log``; every TargetError of the body gets its name."""
    try:
        yield
    except EmulatorEndedError as error:
        guest.wait(LAST_SECONDS)
        raise TargetError(f"{_why_not_done(guest, 0)}; the console's log is {log}") from error
    except TargetError as error:
        raise TargetError(f"{error}; the console's log is {log}") from error
    finally:
        with suppress(FileNotFoundError):  # after Ctrl-C the folder of the log may be gone
            log.write_bytes(before + guest.console.read_bytes())


def check_done(guest: Guest, timeout_s: float) -> None:
    """Raise TargetError unless the guest has done its job and handed over all results."""
    if guest.monitor.closed:
        guest.wait(LAST_SECONDS)
    guest.mailbox.feed()
    mail = guest.mailbox
    if mail.failure:
        raise TargetError(f"the guest says: {' '.join(mail.failure.split())}")
    if not (mail.end and mail.complete):
        raise TargetError(_why_not_done(guest, timeout_s))


def _why_not_done(guest: Guest, timeout_s: float) -> str:
    console = guest.console.read_text(errors="replace")
    if panic := _PANIC.search(console):
        return f"the guest's kernel panicked ({panic[1].strip()})"
    silent = guest.mailbox.state is GuestState.NOTHING
    if silent and (sentence := _HELPER.search(console)):
        return f"the guest cannot be reached: {sentence[1].strip()}"
    if guest.alive():
        late = f"the guest was not done within {timeout_s:g} s"
        return f"{late} and printed nothing: {BOOT_QUESTION}" if silent else late
    if silent and last_lines(console):
        return f"the guest died as it booted ({guest.ending}), after {last_lines(console)}"
    if silent:
        return f"the guest died at once and printed nothing ({guest.ending}): {BOOT_QUESTION}"
    return f"the guest died in the middle of the job ({guest.ending})"


def last_lines(console: str, most: int = 3) -> str:
    """The last lines of a console, quoted in one line; "" if it has none."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    return " / ".join(repr(line) for line in lines[-most:])
