# SPDX-License-Identifier: Apache-2.0
"""Pack the guest's first file system: BusyBox, rtproof's init and helper, modules, and the machine's own files.

Linux unpacks the archive at boot. Its form is cpio "newc" (Documentation/driver-api/early-userspace/buffer-format.rst).
The same entries give the same bytes, because the archive has no times, owners or inode numbers of this host.
"""

import os
import platform
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rtproof.agents.architectures import architecture
from rtproof.agents.build import PINNED, PINNED_ZIG, ProgramSources, build_agent, build_program, source_folder
from rtproof.core.errors import UserError
from rtproof.vm.cache_folders import lab_cache
from rtproof.vm.kernel_files import PT_INTERP, Module, elf_segments

_MAGIC = "070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True, order=True)
class CpioEntry:
    """One file or folder of the archive. ``path``: without a leading slash. ``mode``: as in ``st_mode``."""

    path: str
    mode: int
    content: bytes = b""


def cpio_file(path: str, content: bytes, executable: bool = False) -> CpioEntry:
    return CpioEntry(str(PurePosixPath(path)).lstrip("/"), stat.S_IFREG | (0o755 if executable else 0o644), content)


def cpio_folder(path: str) -> CpioEntry:
    return CpioEntry(str(PurePosixPath(path)).lstrip("/"), stat.S_IFDIR | 0o755)


def cpio_archive(entries: Iterable[CpioEntry]) -> bytes:
    """The archive of the entries and of all their parent folders, sorted by path.

    If two entries have the same path, the last one counts.
    """
    given = list(entries)
    parents = {str(parent) for entry in given for parent in PurePosixPath(entry.path).parents if str(parent) != "."}
    by_path = {entry.path: entry for entry in (*map(cpio_folder, parents), *given)}
    parts = [_member(number, by_path[path]) for number, path in enumerate(sorted(by_path), start=1)]
    return b"".join([*parts, _member(0, CpioEntry(_TRAILER, 0))])


def _member(inode: int, entry: CpioEntry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    head = _MAGIC + "".join(f"{number:08x}" for number in numbers)
    return _padded(head.encode() + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


HELPER = "rtproof-guest"


def toolchain_name() -> str:
    return f"zig {PINNED_ZIG} (ziglang of PyPI)"


def build_guest_agent(arch: str) -> Path:
    """The agent for guests, by the pinned compiler: virtual time counts every instruction. UserError without it."""
    return build_agent(arch, PINNED)


def build_helper(arch: str) -> Path:
    """The path of the guest's helper, which talks to the host. The pinned compiler builds it unless it is kept."""
    return build_program(ProgramSources(HELPER, "the guest's helper", source_folder("guest")), arch, PINNED)


SOAKER = "rtproof-soaker"


def build_soaker(arch: str) -> Path:
    """The program that keeps a guest's processors busy. The pinned compiler builds it unless it is kept."""
    return build_program(ProgramSources(SOAKER, "the soaker", source_folder("soaker")), arch, PINNED)


_SETTLE = b"/rtproof/guest settle"
_RANDOM = b"dd if=/dev/random of=/dev/null bs=1 count=1 2>/dev/null"
"""A kernel makes its first random number in a second of work, which each job would wait for."""


def init_script(random_first: bool = False) -> bytes:
    """The guest's first program, a script for BusyBox. random_first: it makes the first random number as it boots."""
    script = (source_folder("guest") / "init").read_bytes()
    return script.replace(_SETTLE, b"%b\n%b" % (_RANDOM, _SETTLE)) if random_first else script


def find_busybox(arch: str) -> Path:
    """The path of a static BusyBox: the lab's own for the architecture, otherwise this machine's. UserError if none."""
    candidates = [lab_cache() / "busybox" / arch / "busybox"]
    if platform.machine() in architecture(arch).machines:
        candidates += [Path("/bin/busybox"), Path("/usr/bin/busybox")]
    for candidate in candidates:
        program = candidate.read_bytes() if candidate.is_file() else b""
        # A static ELF program runs without an interpreter (elf.h: no program header of type PT_INTERP).
        if program.startswith(b"\x7fELF") and all(kind != PT_INTERP for kind, *_ in elf_segments(program)):
            return candidate
    raise UserError(
        f"a guest for {arch} needs a static BusyBox, and there is none: fetch a kernel with rtproof lab kernels, "
        "or install one for this machine (Debian: apt-get install busybox-static)"
    )


def build_initramfs(
    arch: str,
    busybox: Path | None,
    modules: Sequence[Module],
    files: Sequence[tuple[str, Path]],
    init: bytes | None = None,
) -> bytes:
    """The initramfs for the guest's kernel. busybox: None means the one that ``find_busybox`` finds.

    init: None: the usual. files: pairs of a path in the guest and a file on this host. Executable files stay
    executable.
    """
    entries = [
        cpio_file("init", init_script() if init is None else init, executable=True),
        cpio_file("rtproof/guest", build_helper(arch).read_bytes(), executable=True),
        cpio_file("rtproof/busybox", (busybox or find_busybox(arch)).read_bytes(), executable=True),
        *(cpio_file(f"rtproof/modules/{n:03d}-{module.name}.ko", module.content) for n, module in enumerate(modules)),
        *(cpio_file(place, read_file(here), os.access(here, os.X_OK)) for place, here in files),
    ]
    return cpio_archive(entries)


def read_file(path: Path) -> bytes:
    """The content of a file for the guest. UserError if the file cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"the file {path} for the guest cannot be read: {error.strerror}") from error
