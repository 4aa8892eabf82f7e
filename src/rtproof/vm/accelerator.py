# SPDX-License-Identifier: Apache-2.0
"""Whether guests can run on this processor itself (KVM) or must be emulated (TCG)."""

import functools
import os
import platform
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from rtproof.agents.architectures import architecture
from rtproof.vm import qemu
from rtproof.vm.machine import Machine

KVM = Path("/dev/kvm")
_PATIENCE_S = 10
_EXIT_CODE = 33
# mov al, 16; out 0xf4, al; hlt: at a PC's first instruction, 16 bytes before the end of its firmware. QEMU's device
# for tests ends it with twice that number and one.
_FIRST_INSTRUCTIONS = b"\xb0\x10\xe6\xf4\xf4"
_FIRMWARE = _FIRST_INSTRUCTIONS.rjust(65536 - 16 + len(_FIRST_INSTRUCTIONS), b"\xf4").ljust(65536, b"\xf4")


def choose(machine: Machine) -> str:
    """``kvm`` if this host's processor can run the guest, ``tcg`` otherwise."""
    fits = machine.kernel.arch == "x86_64" and platform.machine() in architecture(machine.kernel.arch).machines
    return "kvm" if fits and _works(qemu.program(machine)) else "tcg"


@functools.cache
def _works(program: str) -> bool:
    """Run three instructions: on some virtual hosts the device is there, opens, and hangs in the first of them."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return False
    with tempfile.TemporaryDirectory() as folder:
        firmware = Path(folder, "firmware")
        firmware.write_bytes(_FIRMWARE)
        command = [program, "-accel", "kvm", "-M", "pc", "-nodefaults", "-no-user-config", "-display", "none"]
        device = ("-device", "isa-debug-exit,iobase=0xf4,iosize=1")
        return _exit_code([*command, "-bios", str(firmware), *device]) == _EXIT_CODE


def _exit_code(command: list[str]) -> int | None:
    popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return popen.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        popen.kill()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(1)
