# SPDX-License-Identifier: Apache-2.0
"""The processor architectures for which the agent is built, as data. A new architecture is one new entry."""

import platform
from dataclasses import dataclass

from rtproof.core.errors import UserError

ELF_64_BITS = 2


@dataclass(frozen=True)
class Architecture:
    """One build of the agent. zig: target and CPU for ``zig cc``.

    machines: what ``uname -m`` says where this build runs. qemu: user-mode emulator and options nearest to the oldest
    such processor. elf: class (1: 32 bits, 2: 64 bits), order of bytes (1: little, 2: big) and machine in the header of
    its program files.
    """

    name: str
    zig: tuple[str, ...]
    machines: tuple[str, ...]
    qemu: tuple[str, ...]
    elf: tuple[int, int, int]

    @property
    def has_scanner(self) -> bool:
        """Whether the scanner of large records can be compiled for it: it multiplies with 128 bits."""
        return self.elf[0] == ELF_64_BITS


ARCHITECTURES = (
    Architecture(
        "x86_64", ("-target", "x86_64-linux-musl", "-mcpu=baseline"), ("x86_64",), ("qemu-x86_64",), (2, 1, 62)
    ),
    Architecture(
        "aarch64",
        ("-target", "aarch64-linux-musl", "-mcpu=baseline"),
        ("aarch64", "arm64"),
        ("qemu-aarch64",),
        (2, 1, 183),
    ),
    # Soft float on all three ARM builds: a static program need not match the target's other programs, and many of these
    # processors have no floating-point unit or only half of one.
    Architecture(
        "armv7",
        ("-target", "arm-linux-musleabi", "-mcpu=generic+v7a"),
        ("armv7l", "armv8l"),
        ("qemu-arm", "-cpu", "cortex-a8"),
        (1, 1, 40),
    ),
    Architecture(
        "arm926",
        ("-target", "arm-linux-musleabi", "-mcpu=arm926ej_s"),
        ("armv5tel", "armv5tejl", "armv5tl", "armv6l"),
        ("qemu-arm", "-cpu", "arm926"),
        (1, 1, 40),
    ),
    # Apart from arm926, because that build has v5 instructions, which are illegal here. QEMU's one v4T processor is
    # called ti925t.
    Architecture(
        "arm920t",
        ("-target", "arm-linux-musleabi", "-mcpu=arm920t"),
        ("armv4tl",),
        ("qemu-arm", "-cpu", "ti925t"),
        (1, 1, 40),
    ),
    Architecture(
        "riscv64", ("-target", "riscv64-linux-musl", "-mcpu=baseline"), ("riscv64",), ("qemu-riscv64",), (2, 1, 243)
    ),
    Architecture(
        "ppc64le", ("-target", "powerpc64le-linux-musl", "-mcpu=baseline"), ("ppc64le",), ("qemu-ppc64le",), (2, 1, 21)
    ),
    Architecture(
        "i386",
        ("-target", "x86-linux-musl", "-mcpu=pentium"),
        ("i386", "i486", "i586", "i686"),
        ("qemu-i386", "-cpu", "pentium"),
        (1, 1, 3),
    ),
    # Soft float: the e500 of many boards has no classic floating-point unit.
    Architecture("ppc", ("-target", "powerpc-linux-musleabi", "-mcpu=ppc"), ("ppc",), ("qemu-ppc",), (1, 2, 20)),
)


def architecture(name: str) -> Architecture:
    """The architecture of that name; UserError with the list of names otherwise."""
    for candidate in ARCHITECTURES:
        if candidate.name == name:
            return candidate
    raise UserError(f"there is no architecture {name!r}; there are: {', '.join(a.name for a in ARCHITECTURES)}")


def architecture_of_machine(machine: str) -> Architecture:
    """The architecture for what ``uname -m`` says on a target; UserError if the agent is not built for it."""
    for candidate in ARCHITECTURES:
        if machine in candidate.machines:
            return candidate
    raise UserError(f"there is no agent for a machine that calls itself {machine!r}")


OLDER = {"x86_64": ("i386",), "aarch64": ("armv7", "arm926"), "armv7": ("arm926",), "arm926": ("arm920t",)}
"""Builds that may run where the first does not: a kernel can refuse 64-bit programs, or a name promise too much."""


def candidates_for(machine: str) -> tuple[Architecture, ...]:
    """The builds to try on a machine, the most fitting first; UserError if there is none."""
    first = architecture_of_machine(machine)
    return (first, *(architecture(name) for name in OLDER.get(first.name, ())))


def host_architecture() -> Architecture:
    return architecture_of_machine(platform.machine())
