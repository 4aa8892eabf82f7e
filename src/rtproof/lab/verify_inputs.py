# SPDX-License-Identifier: Apache-2.0
"""Compare what a stored comparison was made from with what this machine would use now. Nothing is fetched or booted."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFDIR, S_IFMT, S_IFREG
from typing import Any, Self

import msgspec

from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.phrases import quantity
from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellSetting, GuestSystem, job_digest, machine_identity, parse_guest_load
from rtproof.vm.emulators import FETCHED, SYSTEM
from rtproof.vm.initramfs import build_guest_agent, toolchain_name
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine, emulator_version


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


LAB_SCHEMA = "rtproof.lab.comparison"
LAB_SCHEMA_VERSION = 1
NOT_TOLD = "not in the result"
ABSENT = "not here"
NO_SOAKER = "none"
SHOWN_DIGITS = 16
"""So many characters of a digest tell two files apart."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class _StoredCell(msgspec.Struct, frozen=True):
    system: str
    load: str
    jobs_sha256: list[str] | None = None


class StoredComparison(msgspec.Struct, frozen=True):
    """What ``lab verify`` needs of the result.json of a comparison."""

    schema: str
    version: int
    qemu: dict[str, str]
    agents_sha256: dict[str, str]
    setting: ComparedSetting
    systems: list[ComparedSystem]
    cells: list[_StoredCell]
    toolchain: str | None = None


@dataclass(frozen=True)
class InputPair:
    """One input of a result: what it is, what the result says of it, and what this machine would use."""

    what: str
    result: str
    here: str

    @property
    def differs(self) -> bool:
        return self.result != self.here


def read_comparison(path: Path) -> StoredComparison:
    """The result of ``rtproof lab compare``: its result.json, or the folder with it. UserError for any other file."""
    file = path / "result.json" if path.is_dir() else path
    try:
        kind: Any = decode_json(read_bounded(file), object, f"{file} is no JSON")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    told = kind.get("schema") if isinstance(kind, dict) else None
    if told != LAB_SCHEMA:
        raise UserError(f"{file} is no result of rtproof lab compare: its schema is {told!r} and not {LAB_SCHEMA!r}")
    if (version := kind.get("version")) != LAB_SCHEMA_VERSION:
        raise UserError(f"{file} has version {version!r} of its schema; this rtproof reads {LAB_SCHEMA_VERSION}")
    try:
        found = msgspec.convert(kind, StoredComparison)
    except msgspec.ValidationError as error:
        raise UserError(f"{file} is damaged: {error}") from error
    if not found.systems or not found.cells:
        raise UserError(f"{file} is damaged: it has no systems or no cells")
    return found


def compare_inputs(stored: StoredComparison, qemu: str = "") -> list[InputPair]:
    """Every input of the result beside that of this machine, in the order in which to mend them.

    ``qemu``: system, fetched or a path, instead of what the result says of it. UserError or TargetError if this machine
    lacks the pinned compiler or a BusyBox.
    """
    found = [InputPair("compiler of what runs in the guest", stored.toolchain or NOT_TOLD, toolchain_name())]
    for arch in dict.fromkeys(system.arch for system in stored.systems):
        agent = hashlib.sha256(build_guest_agent(arch).read_bytes()).hexdigest()
        found.append(InputPair(f"agent for {arch}", stored.agents_sha256.get(arch, NOT_TOLD), agent))
    for system in stored.systems:
        found += _system_pairs(stored, system, qemu)
    # What the guests' shells were told: the agent's options, and how the lab starts the agent.
    setting, shifts = stored.setting.cell_setting(), range(max(stored.setting.shifts_count, 1))
    for cell in stored.cells:
        ours = [job_digest(setting, parse_guest_load(cell.load), shift) for shift in shifts]
        theirs, here = (
            NOT_TOLD if digests is None else hashlib.sha256("".join(digests).encode()).hexdigest()
            for digests in (cell.jobs_sha256, ours)
        )
        found.append(InputPair(f"job under {cell.load}", theirs, here))
    return list(dict.fromkeys(found))


def _system_pairs(stored: StoredComparison, system: ComparedSystem, qemu: str) -> Iterator[InputPair]:
    of = f" of {system.name}"
    kernel = _kernel_here(system)
    if kernel is None:
        told = system.exact_kernel or system.kernel
        way = f"there is no {system.image}" if system.image else f"rtproof lab kernels fetch {told}"
        yield InputPair(f"kernel{of}", told, f"{ABSENT}: {way}")
        return
    if system.exact_kernel:
        yield InputPair(f"kernel{of}", system.exact_kernel, kernel_catalogue.exact_name(system.kernel, kernel))
    machine = _machine_here(system, kernel, qemu)
    told = system.qemu or stored.qemu.get(system.arch, NOT_TOLD)
    if absent := _absent_emulator(machine, qemu):
        yield InputPair(f"QEMU{of}", told, absent)
        return
    here = ComparedSystem.of(GuestSystem(system.kernel, "", machine))
    yield InputPair("QEMU", told, here.qemu or NOT_TOLD)
    for field, what in INPUT_NAMES.items():
        yield InputPair(what.format(system), getattr(system, field) or NOT_TOLD, getattr(here, field))
    theirs, ours = _options(system.qemu_arguments or ()), _options(here.qemu_arguments or ())
    only_theirs, only_ours = (
        [each for each in theirs if each not in ours],
        [each for each in ours if each not in theirs],
    )
    # Without one that only one side has, they are the same or their order differs.
    told = NOT_TOLD if system.qemu_arguments is None else " ".join(only_theirs or theirs)
    yield InputPair(f"options of QEMU{of}", told, " ".join(only_ours or ours))
    if machine.takes_turns:
        yield InputPair(f"soaker for {system.arch}", system.soaker_sha256 or NO_SOAKER, here.soaker_sha256 or NO_SOAKER)
    stored_modules, modules = ({each.name: each.sha256 for each in side.modules} for side in (system, here))
    for name in dict.fromkeys([*stored_modules, *modules]):
        yield InputPair(f"module {name}{of}", stored_modules.get(name, NOT_TOLD), modules.get(name, ABSENT))


INPUT_NAMES = {
    "guard": "guard of virtual time of {0.name}",
    "kernel_sha256": "kernel image of {0.name}",
    "init_sha256": "init of the guest",
    "helper_sha256": "helper of the guest for {0.arch}",
    "busybox_sha256": "BusyBox for {0.arch}",
    "machine_sha256": "whole machine of {0.name}",
}
"""The inputs of a system with one digest each."""


def _absent_emulator(machine: Machine, qemu: str) -> str:
    """Why the QEMU that the result was made with is not here; "" if there is one.

    A result may come from anybody, so no program is run because a result names its path.
    """
    if machine.qemu not in ("", SYSTEM, FETCHED) and not qemu:
        return f"{ABSENT}: it was made with a QEMU at {machine.qemu}, so give yours with --qemu"
    try:
        emulator_version(machine)
    except RtproofError as error:
        return f"{ABSENT}: {error}"
    return ""


def _options(arguments: Sequence[str]) -> list[str]:
    """QEMU's options, each with its values."""
    found: list[str] = []
    for word in arguments:
        if word.startswith("-") or not found:
            found.append(word)
        else:
            found[-1] += f" {word}"
    return found


def _kernel_here(system: ComparedSystem) -> Kernel | None:
    """The kernel that the same --kernel would take, if that needs no network."""
    if not system.image:
        entry = kernel_catalogue.catalogue_entry(system.kernel)
        return kernel_catalogue.opened_kernel(entry)
    folder = Path(system.modules_folder) if system.modules_folder else None
    if not _is_there(system.image, S_IFREG) or (folder and not _is_there(folder, S_IFDIR)):
        return None
    return kernel_catalogue.resolve_kernel(system.image, folder)


def _is_there(path: str | Path, kind: int) -> bool:
    """Whether there is a file of this kind. A result may come from anybody: its names may be too long or hold a NUL."""
    try:
        return S_IFMT(Path(path).stat().st_mode) == kind
    except (OSError, ValueError):
        return False


def _machine_here(system: ComparedSystem, kernel: Kernel, qemu: str) -> Machine:
    default = Machine(kernel)
    return Machine(
        kernel,
        boot=tuple(system.boot),
        cpus=system.cpus_count,
        memory_mib=default.memory_mib if system.memory_mib is None else system.memory_mib,
        modules=tuple(_module_here(system, asked) for asked in system.modules_asked),
        pace_us=default.pace_us if system.pace_us is None else system.pace_us,
        soakers=default.soakers if system.soakers is None or system.pace_us is None else system.soakers,
        qemu=qemu or system.qemu_asked or "",
    )


def _module_here(system: ComparedSystem, asked: str) -> str | Path:
    """The module as it would be loaded now. Our own is built again where its kernel is one of the catalogue."""
    if "/" not in asked and not asked.endswith(".ko"):
        return asked
    own = Path(asked).name == f"{kernel_catalogue.OUR_MODULE}.ko"
    if own and not system.image:
        return kernel_catalogue.module_for_kernel(system.kernel)
    if not _is_there(asked, S_IFREG):
        raise UserError(f"{asked}, a module of the result, is no file here")
    return Path(asked)


def verification_sentences(pairs: Sequence[InputPair]) -> list[str]:
    """A line for each input that differs, and a last line that counts them."""

    def shown(text: str) -> str:
        return text[:SHOWN_DIGITS] if _DIGEST.fullmatch(text) else text

    different = [pair for pair in pairs if pair.differs]
    lines = [f"{pair.what}: {shown(pair.result)} in the result, {shown(pair.here)} here" for pair in different]
    if different:
        return [*lines, f"{len(different)} of {quantity(len(pairs), 'input')} differ from those of the result."]
    return [f"All {quantity(len(pairs), 'input')} are those of the result."]
