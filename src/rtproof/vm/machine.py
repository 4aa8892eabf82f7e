# SPDX-License-Identifier: Apache-2.0
"""Describe the virtual machine to boot and how its time passes, and make QEMU's command line for it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.core.errors import UserError
from rtproof.vm import initramfs, kernel_files
from rtproof.vm.cache_folders import file_sha256, lab_cache, write_cache_file
from rtproof.vm.emulators import ASKED, ClockGuard, Emulator, choose_emulator, clock_guard
from rtproof.vm.kernel_files import Kernel, vmlinux_of
from rtproof.vm.mailbox import MAILBOX_BYTES


@dataclass(frozen=True)
class Arch:
    """An architecture that the lab can boot. qemu: the emulator. package: the emulator's package in Debian.

    board, cpu: QEMU's options. console: the kernel's name of the first serial port. virtual_time_boot: kernel arguments
    that are true only in virtual time.
    """

    name: str
    qemu: str
    package: str
    board: tuple[str, ...]
    cpu: tuple[str, ...] = ()
    console: str = "ttyAMA0"
    virtual_time_boot: tuple[str, ...] = ()


X86_64 = "x86_64"
ARCHES = {
    arch.name: arch
    for arch in (
        # The counted instructions are the TSC, so no other clock has to watch it. A kernel with Dovetail hung without.
        Arch(
            X86_64,
            "qemu-system-x86_64",
            "qemu-system-x86",
            ("-M", "pc"),
            console="ttyS0",
            virtual_time_boot=("tsc=reliable",),
        ),
        Arch("aarch64", "qemu-system-aarch64", "qemu-system-arm", ("-M", "virt"), ("-cpu", "cortex-a53")),
        # All devices are below 4 GiB, because many kernels cannot address more.
        Arch("armv7", "qemu-system-arm", "qemu-system-arm", ("-M", "virt,highmem=off"), ("-cpu", "cortex-a15")),
    )
}


def arch_of(kernel: Kernel) -> Arch:
    """The ``Arch`` of a kernel. UserError if the lab cannot boot its architecture."""
    if kernel.arch not in ARCHES:
        raise UserError(f"the lab cannot boot kernels for {kernel.arch}, only for {', '.join(ARCHES)}")
    return ARCHES[kernel.arch]


MAIL_FILE = "mail"
INITRD_FILE = "initrd"
CONSOLE = "console"
"""Names in the guest's scratch folder, which is QEMU's working folder."""

# Each instruction takes 1 ns, and an idle guest's clock jumps to the next timer. SeaBIOS and Linux ask for the time and
# for random numbers. Both are fixed here, so that they do not depend on this host.
_VIRTUAL_TIME = (
    *("-icount", "shift=0,sleep=off"),
    *("-rtc", "base=2024-01-01T00:00:00,clock=vm"),
    *("-seed", "1"),
)
# Randomised kernel addresses make virtual time differ between runs.
_BOOT_ARGUMENTS = ("nokaslr", "panic=-1")
# The kernel passes an argument that it does not know to the first process as an environment variable. The agent
# inherits the variable and writes it into the record.
_VIRTUAL_TIME_VARIABLE = 'RTPROOF_VIRTUAL_TIME="QEMU, 1 ns an instruction"'


def emulator_of(machine: "Machine") -> Emulator:
    """The QEMU that runs a machine. Its errors are those of ``choose_emulator``."""
    arch = arch_of(machine.kernel)
    return choose_emulator(arch.qemu, arch.package, machine.takes_turns, machine.qemu)


def emulator_version(machine: "Machine") -> str:
    return emulator_of(machine).version


def guard_of(machine: "Machine") -> ClockGuard:
    """The guard of the clock of a machine in virtual time, for its QEMU."""
    return clock_guard(emulator_of(machine).path)


MOST_CPUS_TAKING_TURNS = 8
USUAL_PACE_US = 4
"""With this pace and shorter ones, means of latencies do not move with it."""
LONGEST_PACE_US = 1000


def check_turns(machine: "Machine") -> None:
    """Raise an error if several processors of the machine cannot take turns: too many, or no QEMU that can do it."""
    if not machine.takes_turns:
        return
    if machine.cpus > MOST_CPUS_TAKING_TURNS:
        raise UserError(
            f"cpus={machine.cpus}: in virtual time at most {MOST_CPUS_TAKING_TURNS} processors share the instructions, "
            "because each has but a part of the speed; 2 and 4 are measured"
        )
    if not 1 <= machine.pace_us <= LONGEST_PACE_US:
        raise UserError(f"a pace of {machine.pace_us} us is not one of 1 to {LONGEST_PACE_US} us")
    emulator_of(machine)


NO_HOST_TIMERS = ("-global", "migration.announce-rounds=0")
"""For a guest that resumes. After a snapshot is loaded, QEMU announces the guest to its network five times, at instants
of the host's clock. A turn also ends at each of these instants (QEMU's sources, icount_get_limit). Then the order of
the turns depended on the host, and rarely even the bytes of a guest with one processor."""


BOOT_PACE_US = 1000
"""The pace of the boot, which short turns would make slow. A boot without any pace may hang: two processors that wait
for each other with interrupts off take turns of 2 s, because no timer is near."""


def pacer_arguments(machine: "Machine", *, at_boot: bool = False) -> tuple[str, ...]:
    """Arguments of QEMU that end the turn of a processor after ``pace_us``; none for a machine without turns.

    The timer of a network filter ends the turns. The filter belongs to no network card, so the guest cannot see it, and
    it is no part of a snapshot. Without it a turn lasts until the guest's next timer
    (accel/tcg/tcg-accel-ops-icount.c).
    """
    if not machine.takes_turns:
        return ()
    interval_us = BOOT_PACE_US if at_boot else machine.pace_us
    paced = f"filter-buffer,id=pace,netdev=tick,queue=rx,interval={interval_us}"
    return ("-netdev", "hubport,id=tick,hubid=0", "-object", paced)


def bootable_image(kernel: Kernel) -> Path:
    """The kernel in the form that the emulator boots fastest: of a bzImage the ELF kernel, if Python can unpack it."""
    if arch_of(kernel).name != X86_64:
        return kernel.image
    place = lab_cache() / "vmlinux" / kernel.identity
    if place.exists():
        os.utime(place)  # the cache drops what was not used for longest
        return place
    data = kernel.image.read_bytes()
    inner = None if data.startswith(b"\x7fELF") else vmlinux_of(data)
    if inner is None:
        return kernel.image
    write_cache_file(place, inner)
    return place


def qemu_arguments(machine: "Machine", kernel: Path) -> list[str]:
    """QEMU's arguments, except those that connect QEMU to this process. ``kernel``: the file to boot.

    The processors are always emulated: on some virtual hosts /dev/kvm runs some instructions, and hangs.
    """
    arch = arch_of(machine.kernel)
    told = (*arch.virtual_time_boot, _VIRTUAL_TIME_VARIABLE) if machine.in_virtual_time else ()
    boot = " ".join((f"console={arch.console}", "quiet", *_BOOT_ARGUMENTS, *told, *machine.boot))
    clock = (
        ("-accel", "tcg,thread=single", *_VIRTUAL_TIME) if machine.in_virtual_time else ("-accel", "tcg,thread=multi")
    )
    place = str(machine.serial.absolute()).replace(",", ",,") if machine.serial else ""
    serial = ("-chardev", f"socket,id=serial,path={place}", "-serial", "chardev:serial") if place else ()
    return [
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *(*arch.board, *arch.cpu, *clock),
        *("-smp", str(machine.cpus), "-m", str(machine.memory_mib)),
        *("-kernel", str(kernel), "-initrd", INITRD_FILE, "-append", boot),
        *("-chardev", f"pipe,id=console,path={CONSOLE}", "-serial", "chardev:console"),
        *serial,
        *("-object", f"memory-backend-file,id=mail,mem-path={MAIL_FILE},size={MAILBOX_BYTES},share=on"),
        *("-device", "ivshmem-plain,memdev=mail,master=on"),
        # With the watchdog the guest can stop its own machine at an instant that it chooses.
        *("-device", "i6300esb", "-action", "watchdog=pause"),
    ]


@dataclass(frozen=True)
class Machine:
    """The machine of a guest. boot: additional kernel arguments. memory_mib, cpus: what it has.

    files: pairs of a path in the guest and a file on this host. modules: names of modules in ``kernel.modules``, or .ko
    files, loaded in this order. busybox: None takes the lab's or this machine's. serial: a Unix socket of this host to
    which the second serial port connects. qemu: system, fetched or a path; "" means one that fits.

    in_virtual_time: each instruction takes 1 ns, and nothing else takes time, so the same guest does the same, whatever
    the host does. Several processors take turns of ``pace_us``, and soakers keep each busy, so that its speed does not
    depend on the others.
    """

    kernel: Kernel
    boot: tuple[str, ...] = ()
    in_virtual_time: bool = True
    cpus: int = 1
    memory_mib: int = 512
    files: tuple[tuple[str, Path], ...] = ()
    modules: tuple[str | Path, ...] = ()
    busybox: Path | None = None
    serial: Path | None = None
    pace_us: int = USUAL_PACE_US
    soakers: bool = True
    qemu: str = ""

    @property
    def takes_turns(self) -> bool:
        """Whether several processors share one stream of counted instructions."""
        return self.in_virtual_time and self.cpus > 1

    def initramfs(self) -> bytes:
        """The archive of the guest's first file system. UserError if a file or module is missing or does not fit."""
        loaded = kernel_files.in_load_order(self.kernel, self.modules)
        init = initramfs.init_script(self.takes_turns)
        return initramfs.build_initramfs(self.kernel.arch, self.busybox, loaded, self.files, init)

    def soaker(self) -> Path | None:
        """The program that keeps the processors busy; None for a machine that has none."""
        return initramfs.build_soaker(self.kernel.arch) if self.takes_turns and self.soakers else None

    def inputs(self) -> dict[str, Any]:
        """The inputs of which ``identity`` is made, by the names of a stored comparison. UserError if one lacks."""
        arch = self.kernel.arch
        loaded = kernel_files.in_load_order(self.kernel, self.modules)
        return {
            "qemu": emulator_version(self),
            "qemu_arguments": (*qemu_arguments(self, Path("kernel")), *pacer_arguments(self)),
            "kernel_sha256": self.kernel.identity,
            "init_sha256": hashlib.sha256(initramfs.init_script(self.takes_turns)).hexdigest(),
            "helper_sha256": _file_sha256(initramfs.build_helper(arch)),
            "busybox_sha256": _file_sha256(self.busybox or initramfs.find_busybox(arch)),
            "modules": tuple((module.name, hashlib.sha256(module.content).hexdigest()) for module in loaded),
            "soaker_sha256": _file_sha256(soaker) if (soaker := self.soaker()) else None,
            "guard": guard_of(self).state,
        }

    @property
    def boot_identity(self) -> str:
        """A SHA-256 of all that determines the booted guest: QEMU, its guard and arguments, kernel and initramfs.

        QEMU counts with its version; one named by its path, also with its file, because two builds may say the same
        version. The pace and the soakers come after the boot, so one snapshot serves all.
        """
        emulator = emulator_of(self)
        digest = f" {file_sha256(Path(emulator.path))}" if emulator.origin == ASKED else ""
        qemu = f"{emulator.version}{digest}\n{guard_of(self).identity}"
        arguments = "\n".join([*qemu_arguments(self, Path("kernel")), *pacer_arguments(self, at_boot=True)])
        kernel = hashlib.sha256(bootable_image(self.kernel).read_bytes()).hexdigest()
        inside = hashlib.sha256(self.initramfs()).hexdigest()
        whole = "\n".join([qemu, arguments, kernel, inside])
        return hashlib.sha256(whole.encode()).hexdigest()

    @property
    def identity(self) -> str:
        """A SHA-256 of all that determines the guest's bytes except its job."""
        if not self.takes_turns:
            return self.boot_identity
        soaker = self.soaker()
        whole = "\n".join(
            [self.boot_identity, *pacer_arguments(self), _file_sha256(soaker) if soaker else "no soakers"]
        )
        return hashlib.sha256(whole.encode()).hexdigest()


def _file_sha256(file: Path) -> str:
    return hashlib.sha256(initramfs.read_file(file)).hexdigest()
