# SPDX-License-Identifier: Apache-2.0
"""One class per architecture: all that QEMU needs to know of it."""

from pathlib import Path

from rtproof.errors import UserError
from rtproof.vm.kernel import Kernel, vmlinux_of
from rtproof.vm.places import lab_cache, write_whole


class Arch:
    """What is common. ``qemu``: the emulator; ``package``: Debian's package of it; ``board``, ``cpu``: its options

    for the machine and for an emulated processor; ``console``: the kernel's name of the first serial port.
    """

    name = ""
    qemu = ""
    package = ""
    board: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    console = "ttyAMA0"

    def bootable(self, kernel: Kernel) -> Path:
        """The file to give to QEMU, in the form that boots fastest."""
        return kernel.image


class X86_64(Arch):  # noqa: N801 - the architecture's own name
    """PC."""

    name = "x86_64"
    qemu = "qemu-system-x86_64"
    package = "qemu-system-x86"
    board = ("-M", "pc")
    console = "ttyS0"

    def bootable(self, kernel: Kernel) -> Path:
        """The ELF kernel out of a bzImage: emulated, unpacking takes longer than the rest of the boot.

        Only with what Python itself unpacks, so that a kernel boots in the same way on every host.
        """
        place = lab_cache() / "vmlinux" / kernel.identity
        if place.exists():
            return place
        data = kernel.image.read_bytes()
        inner = None if data.startswith(b"\x7fELF") else vmlinux_of(data)
        if inner is None:
            return kernel.image
        write_whole(place, inner)
        return place


class Aarch64(Arch):
    """QEMU's own board for 64-bit ARM."""

    name = "aarch64"
    qemu = "qemu-system-aarch64"
    package = "qemu-system-arm"
    board = ("-M", "virt")
    cpu = ("-cpu", "cortex-a53")


class Armv7(Arch):
    """QEMU's own board for 32-bit ARM, with all devices below 4 GiB: many of these kernels see no more."""

    name = "armv7"
    qemu = "qemu-system-arm"
    package = "qemu-system-arm"
    board = ("-M", "virt,highmem=off")
    cpu = ("-cpu", "cortex-a15")


ARCHES: dict[str, Arch] = {arch.name: arch for arch in (X86_64(), Aarch64(), Armv7())}


def arch_of(kernel: Kernel) -> Arch:
    """The class for a kernel; UserError if the lab has none."""
    if kernel.arch not in ARCHES:
        raise UserError(f"the lab cannot boot kernels for {kernel.arch}, only for {', '.join(ARCHES)}")
    return ARCHES[kernel.arch]
