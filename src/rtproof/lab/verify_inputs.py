# SPDX-License-Identifier: Apache-2.0
"""Compare what a stored comparison was made from with what this machine would use now. Nothing is fetched or booted."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFDIR, S_IFMT, S_IFREG
from typing import Any, Literal, Self

import msgspec

from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.phrases import quantity
from rtproof.lab import kernel_catalogue
from rtproof.lab.guest_cell import CellSetting, GuestSystem, job_digest, machine_identity, parse_guest_load
from rtproof.vm.emulators import FETCHED, SYSTEM
from rtproof.vm.initramfs import build_guest_agent, toolchain_name
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import USUAL_PACE_US, Machine, emulator_version


class ComparedSystem(msgspec.Struct, frozen=True, kw_only=True):
    """A system of a result, and all that determines the bytes of its guest.

    exact_kernel: None for an image of the user's, of which image and modules_folder are the places. pace_us: None for
    one processor. guard: ``on``, or ``off`` with the reason.
    """

    name: str
    kernel: str
    exact_kernel: str | None
    image: str | None
    modules_folder: str | None
    release: str
    arch: str
    boot: tuple[str, ...]
    cpus_count: int
    pace_us: int | None
    soakers: bool
    memory_mib: int
    modules_asked: tuple[str, ...]
    qemu: str
    qemu_asked: str | None
    qemu_arguments: tuple[str, ...]
    kernel_sha256: str
    init_sha256: str
    helper_sha256: str
    busybox_sha256: str
    soaker_sha256: str | None
    guard: str
    modules: tuple[dict[Literal["name", "sha256"], str], ...]
    machine_sha256: str

    @classmethod
    def of(cls, system: GuestSystem) -> Self:
        machine, kernel = system.machine, system.machine.kernel
        inputs, exact = machine.inputs(), kernel_catalogue.exact_name(system.kernel, kernel)
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
            modules=tuple({"name": name, "sha256": digest} for name, digest in inputs.pop("modules")),
            machine_sha256=machine_identity(machine),
            **inputs,
        )


LAB_SCHEMA = "rtproof.lab.comparison"
LAB_SCHEMA_VERSION = 1
NOT_TOLD = "not in the result"
ABSENT = "not here"
_DIGEST = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{48}\b")
"""16 digits of a SHA-256 tell two files apart."""


class StoredCell(msgspec.Struct, frozen=True):
    """A cell of a result: its load, and a digest of the job of each shift."""

    load: str
    jobs_sha256: tuple[str, ...]


class StoredComparison(msgspec.Struct, frozen=True):
    """What ``lab verify`` needs of the result.json of a comparison."""

    agents_sha256: dict[str, str]
    toolchain: str
    setting: CellSetting
    systems: list[ComparedSystem]
    cells: list[StoredCell]


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
        raise UserError(f"{file} is damaged, or of an older rtproof: {error}") from error
    if not found.systems or not found.cells:
        raise UserError(f"{file} is damaged: it has no systems or no cells")
    return found


def compare_inputs(stored: StoredComparison, qemu: str = "") -> list[InputPair]:
    """Every input of the result beside that of this machine, in the order in which to mend them.

    qemu: system, fetched or a path, instead of what the result says. UserError or TargetError if this machine lacks the
    pinned compiler or a BusyBox.
    """
    found = [InputPair("compiler of what runs in the guest", stored.toolchain, toolchain_name())]
    for arch in dict.fromkeys(system.arch for system in stored.systems):
        agent = hashlib.sha256(build_guest_agent(arch).read_bytes()).hexdigest()
        found.append(InputPair(f"agent for {arch}", stored.agents_sha256.get(arch, NOT_TOLD), agent))
    for system in stored.systems:
        found += _system_pairs(system, qemu)
    # What the guests' shells were told: the agent's options, and how the lab starts the agent.
    for cell in stored.cells:
        shifts = range(max(len(cell.jobs_sha256), 1))
        ours = (job_digest(stored.setting, parse_guest_load(cell.load), shift) for shift in shifts)
        theirs, here = (hashlib.sha256("".join(jobs).encode()).hexdigest() for jobs in (cell.jobs_sha256, ours))
        found.append(InputPair(f"job under {cell.load}", theirs, here))
    return list(dict.fromkeys(found))


def _system_pairs(system: ComparedSystem, qemu: str) -> Iterator[InputPair]:
    of = f" of {system.name}"
    kernel = _kernel_here(system)
    if kernel is None:
        told = system.exact_kernel or system.kernel
        way = f"there is no {system.image}" if system.image else f"rtproof lab kernels fetch {told}"
        yield InputPair(f"kernel{of}", told, f"{ABSENT}: {way}")
        return
    if system.exact_kernel:
        yield InputPair(f"kernel{of}", system.exact_kernel, kernel_catalogue.exact_name(system.kernel, kernel))
    machine = Machine(
        kernel,
        boot=system.boot,
        cpus=system.cpus_count,
        memory_mib=system.memory_mib,
        modules=tuple(_module_here(system, asked) for asked in system.modules_asked),
        pace_us=system.pace_us or USUAL_PACE_US,
        soakers=system.soakers or system.pace_us is None,
        qemu=qemu or system.qemu_asked or "",
    )
    if absent := _absent_emulator(machine, qemu):
        yield InputPair(f"QEMU{of}", system.qemu, absent)
        return
    here = ComparedSystem.of(GuestSystem(system.kernel, "", machine))
    for field, what in INPUT_NAMES.items():
        yield InputPair(what.format(system), getattr(system, field) or ABSENT, getattr(here, field) or ABSENT)
    theirs, ours = _options(system.qemu_arguments), _options(here.qemu_arguments)
    # Without an option that only one side has, they are the same or their order differs.
    only_theirs, only_ours = [one for one in theirs if one not in ours], [one for one in ours if one not in theirs]
    yield InputPair(f"options of QEMU{of}", " ".join(only_theirs or theirs), " ".join(only_ours or ours))
    stored_modules, modules = (
        {each.get("name", NOT_TOLD): each.get("sha256", NOT_TOLD) for each in side.modules} for side in (system, here)
    )
    for name in dict.fromkeys([*stored_modules, *modules]):
        yield InputPair(f"module {name}{of}", stored_modules.get(name, NOT_TOLD), modules.get(name, ABSENT))


INPUT_NAMES = {
    "qemu": "QEMU",
    "guard": "guard of virtual time of {0.name}",
    "kernel_sha256": "kernel image of {0.name}",
    "init_sha256": "init of the guest",
    "helper_sha256": "helper of the guest for {0.arch}",
    "busybox_sha256": "BusyBox for {0.arch}",
    "soaker_sha256": "soaker for {0.arch}",
    "machine_sha256": "whole machine of {0.name}",
}
"""The inputs of a system with one digest each."""


def _absent_emulator(machine: Machine, qemu: str) -> str:
    """Why the QEMU of the result is not here, or "". No program is run because a result names its path."""
    if machine.qemu not in ("", SYSTEM, FETCHED) and not qemu:
        return f"{ABSENT}: it was made with a QEMU at {machine.qemu}, so give yours with --qemu"
    try:
        emulator_version(machine)
    except RtproofError as error:
        return f"{ABSENT}: {error}"
    return ""


def _options(arguments: Sequence[str]) -> list[str]:
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
    different = [pair for pair in pairs if pair.differs]
    lines = []
    for pair in different:
        theirs, here = (_DIGEST.sub(lambda digest: digest[1], text) for text in (pair.result, pair.here))
        lines.append(f"{pair.what}: {theirs} in the result, {here} here")
    if different:
        return [*lines, f"{len(different)} of {quantity(len(pairs), 'input')} differ from those of the result."]
    return [f"All {quantity(len(pairs), 'input')} are those of the result."]
