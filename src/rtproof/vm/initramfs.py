# SPDX-License-Identifier: Apache-2.0
"""The guest's first file system: BusyBox, our init and helper, modules, and the machine's own files."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from rtproof.agents.architectures import architecture
from rtproof.agents.build import Program, build_program, source_folder
from rtproof.errors import UserError
from rtproof.vm import cpio
from rtproof.vm.modules import Module
from rtproof.vm.places import lab_cache

HELPER = "rtproof-guest"
_PT_INTERP = 3


def build_helper(arch: str) -> Path:
    """The guest's end of the channel to the host, compiled unless the cache has it."""
    return build_program(Program(HELPER, "the guest's helper", source_folder("guest")), arch)


def find_busybox(arch: str) -> Path:
    """A static BusyBox: the lab's own of that architecture, else this machine's. UserError if there is none."""
    candidates = [lab_cache() / "busybox" / arch / "busybox"]
    if platform.machine() in architecture(arch).machines:
        candidates += [Path("/bin/busybox"), Path("/usr/bin/busybox")]
    for candidate in candidates:
        if candidate.is_file() and is_static(candidate.read_bytes()):
            return candidate
    raise UserError(
        f"a guest for {arch} needs a static BusyBox, and there is none: fetch a kernel with rtproof lab kernels, "
        "or install one for this machine (Debian: apt-get install busybox-static)"
    )


def is_static(program: bytes) -> bool:
    """Whether an ELF program runs without an interpreter (elf.h: no program header of type PT_INTERP)."""
    if not program.startswith(b"\x7fELF"):
        return False
    wide = program[4] == 2
    at = int.from_bytes(program[32:40] if wide else program[28:32], "little")
    size, count = (int.from_bytes(program[place : place + 2], "little") for place in ((54, 56) if wide else (42, 44)))
    kinds = (int.from_bytes(program[at + n * size : at + n * size + 4], "little") for n in range(count))
    return _PT_INTERP not in kinds


def build(arch: str, busybox: Path | None, modules: Sequence[Module], files: Sequence[tuple[str, Path]]) -> bytes:
    """The archive for the kernel. ``files``: path in the guest, file here; they stay executable if they are."""
    entries = [
        cpio.file("init", (source_folder("guest") / "init").read_bytes(), executable=True),
        cpio.file("rtproof/guest", build_helper(arch).read_bytes(), executable=True),
        cpio.file("rtproof/busybox", (busybox or find_busybox(arch)).read_bytes(), executable=True),
        *(cpio.file(f"rtproof/modules/{n:03d}-{module.name}.ko", module.content) for n, module in enumerate(modules)),
        *(cpio.file(place, read_file(here), os.access(here, os.X_OK)) for place, here in files),
    ]
    return cpio.archive(entries)


def read_file(path: Path) -> bytes:
    """A file for the guest; UserError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}, which is to go into the guest, cannot be read: {error.strerror}") from error
