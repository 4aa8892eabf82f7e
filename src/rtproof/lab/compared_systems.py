# SPDX-License-Identifier: Apache-2.0
"""What a result of ``rtproof lab compare`` tells of its systems and of the setting of its cells, for JSON and back."""

from typing import Self

import msgspec

from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellSetting, GuestSystem, machine_identity


class ComparedModule(msgspec.Struct, frozen=True):
    """A kernel module that was loaded."""

    name: str
    sha256: str


class ComparedSystem(msgspec.Struct, frozen=True, kw_only=True):
    """A system of a result, and all that determines the bytes of its guest.

    A default stands for what results of earlier versions lack. exact_kernel: None for an image of the user's, of which
    image and modules_folder are the places. pace_us: None for one processor. guard: ``on``, or ``off`` with the reason.
    """

    name: str
    kernel: str
    exact_kernel: str | None = None
    image: str | None = None
    modules_folder: str | None = None
    release: str = ""
    arch: str
    boot: tuple[str, ...]
    cpus_count: int
    pace_us: int | None = None
    soakers: bool | None = None
    memory_mib: int | None = None
    modules_asked: tuple[str, ...] = ()
    qemu: str | None = None
    qemu_asked: str | None = None
    qemu_arguments: tuple[str, ...] | None = None
    kernel_sha256: str
    init_sha256: str | None = None
    helper_sha256: str | None = None
    busybox_sha256: str | None = None
    soaker_sha256: str | None = None
    guard: str | None = None
    modules: tuple[ComparedModule, ...] = ()
    machine_sha256: str

    @classmethod
    def of(cls, system: GuestSystem) -> Self:
        machine, kernel = system.machine, system.machine.kernel
        inputs, exact = machine.inputs(), kernel_catalogue.exact_name(system.kernel, kernel)
        modules = tuple(ComparedModule(name, digest) for name, digest in inputs.pop("modules"))
        return cls(
            name=system.name,
            kernel=system.kernel,
            exact_kernel=exact or None,
            image=None if exact else str(kernel.image),
            modules_folder=None if exact or not kernel.modules else str(kernel.modules),
            release=kernel.release,
            arch=kernel.arch,
            boot=machine.boot,
            cpus_count=machine.cpus,
            pace_us=machine.pace_us if machine.takes_turns else None,
            soakers=machine.takes_turns and machine.soakers,
            memory_mib=machine.memory_mib,
            modules_asked=tuple(map(str, machine.modules)),
            qemu_asked=machine.qemu or None,
            modules=modules,
            machine_sha256=machine_identity(machine),
            **inputs,
        )


class ComparedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent did in every cell. more_arguments: further arguments of the agent."""

    probe: str
    period_ns: int
    duration_ns: int
    warmup_ns: int
    more_arguments: tuple[str, ...]
    shifts_count: int
    setup: tuple[str, ...] = ()

    @classmethod
    def of(cls, setting: CellSetting, shifts: int) -> Self:
        return cls(
            probe=setting.probe,
            period_ns=setting.period_ns,
            duration_ns=setting.duration_ns,
            warmup_ns=setting.warmup_ns,
            more_arguments=setting.more,
            shifts_count=shifts,
            setup=setting.setup,
        )

    def cell_setting(self) -> CellSetting:
        return CellSetting(
            self.probe,
            self.period_ns,
            self.duration_ns,
            self.warmup_ns,
            more=self.more_arguments,
            setup=self.setup,
            setup_must_work=bool(self.setup),
        )
