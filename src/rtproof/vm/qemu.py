# SPDX-License-Identifier: Apache-2.0
"""QEMU's program and its command line."""

import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof.errors import TargetError, UserError
from rtproof.vm.arch import arch_of
from rtproof.vm.mailbox import SIZE

if TYPE_CHECKING:
    from rtproof.vm.machine import Machine

OLDEST = (6, 2)
TURNS = (8, 1)
"""The first that shares virtual time between the processors of a guest; older ones give all of it to the first."""
MAIL_FILE = "mail"
INITRD_FILE = "initrd"
CONSOLE = "console"
"""Names in the guest's scratch folder, which is QEMU's working folder."""

# One virtual CPU whose instructions take 1 ns each, a clock that jumps to the next timer when it is idle, and nothing
# of this host's time or randomness. SeaBIOS and Linux ask for both.
_VIRTUAL_TIME = (
    *("-icount", "shift=0,sleep=off"),
    *("-rtc", "base=2024-01-01T00:00:00,clock=vm"),
    *("-seed", "1"),
)
# Randomised kernel addresses make virtual time differ between runs.
_BOOT = ("quiet", "nokaslr", "panic=-1")
# What the kernel does not know it hands to the first process as environment, and so to the agent, which writes it down.
_TOLD_VIRTUAL_TIME = 'RTPROOF_VIRTUAL_TIME="QEMU, 1 ns an instruction"'


def program(machine: "Machine") -> str:
    """The emulator's path; TargetError that names the package if it is missing, or if it is too old."""
    arch = arch_of(machine.kernel)
    found = shutil.which(arch.qemu)
    if not found:
        raise TargetError(f"the lab needs {arch.qemu}, which is not installed (Debian: apt-get install {arch.package})")
    version = _version(found)
    numbers = _numbers(version)
    if not numbers or numbers < OLDEST:
        said = f"version {_dotted(numbers)}" if numbers else repr(version)
        raise TargetError(f"{found} is {said}; the lab needs QEMU {_dotted(OLDEST)} or newer")
    return found


def refuse_starving(machine: "Machine") -> None:
    """UserError where this emulator would let only the first processor of the guest run: many kernels then hang."""
    if not machine.in_virtual_time or machine.cpus == 1:
        return
    numbers = _numbers(version_of(machine))
    if numbers and numbers < TURNS:
        raise UserError(
            f"cpus={machine.cpus} cannot be had in virtual time with QEMU {_dotted(numbers)}, in which only the first "
            f"processor of a busy guest runs, so that many kernels hang as they boot: take cpus=1, or QEMU "
            f"{_dotted(TURNS)} or newer (Debian 12: bookworm-backports), or mode=wall-clock"
        )


def _numbers(version: str) -> tuple[int, int] | None:
    found = re.search(r"version (\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


def version_of(machine: "Machine") -> str:
    """What the emulator says of its version."""
    return _version(program(machine))


@functools.cache
def _version(path: str) -> str:
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{path} cannot be run: {error}") from error
    return result.stdout.splitlines()[0] if result.stdout else ""


def kernel_file(machine: "Machine") -> Path:
    """The kernel in the form that the emulator boots fastest."""
    return arch_of(machine.kernel).bootable(machine.kernel)


def arguments(machine: "Machine", kernel: Path, accelerator: str) -> list[str]:
    """The command line after the program's name, but for what joins QEMU to this process.

    ``accelerator``: ``tcg`` or ``kvm``; in virtual time always the first.
    """
    arch = arch_of(machine.kernel)
    told = (_TOLD_VIRTUAL_TIME,) if machine.in_virtual_time else ()
    boot = " ".join((f"console={arch.console}", *_BOOT, *told, *machine.boot))
    cpu = ("-cpu", "host") if accelerator == "kvm" else arch.cpu
    return [
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *(*arch.board, *cpu, *_clock(machine.in_virtual_time, accelerator)),
        *("-smp", str(machine.cpus), "-m", str(machine.memory_mib)),
        *("-kernel", str(kernel), "-initrd", INITRD_FILE, "-append", boot),
        *("-chardev", f"pipe,id=console,path={CONSOLE}", "-serial", "chardev:console"),
        *("-object", f"memory-backend-file,id=mail,mem-path={MAIL_FILE},size={SIZE},share=on"),
        *("-device", "ivshmem-plain,memdev=mail,master=on"),
        # A watchdog is the guest's way to have its machine stopped at an instant of its choice.
        *("-device", "i6300esb", "-action", "watchdog=pause"),
    ]


def _clock(in_virtual_time: bool, accelerator: str) -> tuple[str, ...]:
    if in_virtual_time:
        return ("-accel", "tcg,thread=single", *_VIRTUAL_TIME)
    return ("-accel", "kvm" if accelerator == "kvm" else "tcg,thread=multi")
