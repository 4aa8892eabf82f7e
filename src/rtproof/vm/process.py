# SPDX-License-Identifier: Apache-2.0
"""One QEMU, from its start to its end; nothing of it outlives this process, however that ends."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rtproof.errors import TargetError
from rtproof.vm import qemu
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import Mailbox
from rtproof.vm.qmp import Monitor

_POLL_S = 0.005
SPARE_MIB = 128
"""Memory that QEMU takes beside the guest's."""


class Guest:
    """A running QEMU: its ``mailbox``, its ``monitor``, and the folder it works in."""

    def __init__(self, popen: "subprocess.Popen[bytes]", mailbox: Mailbox, monitor: Monitor, folder: Path) -> None:
        self._popen = popen
        self.mailbox = mailbox
        self.monitor = monitor
        self.folder = folder
        self.begun = time.monotonic()

    @property
    def console(self) -> Path:
        """What the guest's first serial port said."""
        return self.folder / f"{qemu.CONSOLE}.out"

    @property
    def complaint(self) -> str:
        """What QEMU itself said on standard error."""
        return (self.folder / "qemu.log").read_text(errors="replace").strip()

    def tell_console(self, line: str) -> None:
        """Type a line on the guest's console; nothing happens if it has ended. A signal handler may do this."""
        with suppress(OSError):
            console = os.open(self.folder / f"{qemu.CONSOLE}.in", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(console, f"{line}\n".encode())
            finally:
                os.close(console)

    def kill(self) -> None:
        """End QEMU now, if it still runs, and wait for nothing. A signal handler may do this."""
        self._popen.kill()

    def alive(self) -> bool:
        """Whether QEMU runs."""
        return self._popen.poll() is None

    def wait(self, timeout_s: float) -> bool:
        """Wait until QEMU has ended or the time is over; whether it has ended."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait_until_loaded(self, timeout_s: float) -> None:
        """Wait until the state that this guest goes on from is in its memory."""
        end = time.monotonic() + timeout_s
        while self.monitor.command("query-status")["status"] == "inmigrate":
            if time.monotonic() > end:
                raise TargetError(f"the snapshot was not loaded within {timeout_s:g} s")
            time.sleep(_POLL_S)

    def end(self) -> None:
        """End QEMU, if it still runs."""
        self._popen.kill()
        self._popen.wait()


@contextmanager
def running(
    machine: Machine, folder: Path, accelerator: str = "tcg", incoming: BinaryIO | None = None
) -> Iterator[Guest]:
    """Start QEMU, stopped before its first instruction, in a scratch folder; it ends with the context.

    ``incoming``: a file with the state of a stopped machine, to go on with instead of booting.
    """
    program = qemu.program(machine)
    _check_memory(machine.memory_mib)
    _lay_out(folder, machine.initramfs())
    arguments = qemu.arguments(machine, qemu.kernel_file(machine), accelerator)
    with ExitStack() as stack:
        mailbox = Mailbox(folder / qemu.MAIL_FILE)
        stack.callback(mailbox.close)
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        with theirs:
            monitor = ("-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control")
            go_on = ("-incoming", "fd:0") if incoming else ()
            command = [program, *arguments, *monitor, "-S", *go_on]
            popen = _start(command, folder, theirs.fileno(), incoming)
        guest = Guest(popen, mailbox, Monitor(ours), folder)
        stack.callback(guest.end)
        yield guest


def _lay_out(folder: Path, initramfs: bytes) -> None:
    try:
        (folder / qemu.INITRD_FILE).write_bytes(initramfs)
        (folder / f"{qemu.CONSOLE}.out").touch()
        os.mkfifo(folder / f"{qemu.CONSOLE}.in")
    except OSError as error:
        raise TargetError(f"a guest's files cannot be written to {folder}: {error.strerror}") from error


def _start(command: Sequence[str], folder: Path, monitor: int, incoming: BinaryIO | None) -> "subprocess.Popen[bytes]":
    """In a session of its own, because the terminal's Ctrl-C is for us; the kernel kills it should we be killed."""
    launcher = shutil.which("setpriv")
    if not launcher:
        raise TargetError("the lab needs setpriv, which ends guests with this program (Debian: util-linux)")
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


def _check_memory(memory_mib: int) -> None:
    needed = memory_mib + SPARE_MIB
    found = re.search(r"^MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    available = int(found[1]) >> 10 if found else needed
    if available < needed:
        raise TargetError(f"a guest of {memory_mib} MiB needs {needed} MiB of memory; {available} MiB are free")
