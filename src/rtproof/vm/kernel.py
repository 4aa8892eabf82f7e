# SPDX-License-Identifier: Apache-2.0
"""Kernel images: what one is for, told from its bytes.

Sources: Documentation/arch/x86/boot.rst, arm64/booting.rst, arm/booting.rst; elf.h.
"""

import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import UserError
from rtproof.vm import compressed

_ELF_MACHINES = {62: "x86_64", 183: "aarch64", 40: "armv7"}
_BANNER = re.compile(rb"Linux version (\d[^ \0%]{0,128}) ")


@dataclass(frozen=True)
class Kernel:
    """A kernel to boot. ``arch``: the agent's name of its architecture; ``release``: what ``uname -r`` will say;

    ``modules``: its folder lib/modules/RELEASE, if there is one; ``identity``: SHA-256 of the image.
    """

    arch: str
    image: Path
    modules: Path | None
    release: str
    identity: str


def open_kernel(image: Path, modules: Path | None = None) -> Kernel:
    """Look at an image: bzImage, ELF vmlinux, arm64 Image (also compressed), ARM zImage. UserError if it is none."""
    try:
        data = image.read_bytes()
    except OSError as error:
        raise UserError(f"the kernel {image} cannot be read: {error.strerror}") from error
    arch = architecture_of(data)
    if not arch:
        raise UserError(f"{image} is no kernel image: neither bzImage, ELF vmlinux, arm64 Image nor ARM zImage")
    release = _release(data) or (modules.name if modules else "")
    if modules is not None:
        _check_modules(modules, release)
    return Kernel(arch, image.resolve(), modules, release, hashlib.sha256(data).hexdigest())


def architecture_of(data: bytes) -> str:
    """The agent's name of the architecture that an image is for; empty if it is no image."""
    if data[0x202:0x206] == b"HdrS":
        return "x86_64"
    if data[0x38:0x3C] == b"ARM\x64":
        return "aarch64"
    if data[0x24:0x28] == b"\x18\x28\x6f\x01":
        return "armv7"
    if data.startswith(b"\x7fELF") and len(data) > 20:
        return _ELF_MACHINES.get(struct.unpack_from("<H", data, 18)[0], "")
    if data.startswith(b"\x1f\x8b"):
        inner = compressed.unpack(data)
        return "aarch64" if inner and architecture_of(inner) == "aarch64" else ""
    return ""


def _release(data: bytes) -> str:
    """From the header of a bzImage, else from the banner that every kernel prints, which may be compressed."""
    if data[0x202:0x206] == b"HdrS":
        at = struct.unpack_from("<H", data, 0x20E)[0] + 0x200
        return data[at : at + 200].split(b"\0")[0].split(b" ")[0].decode(errors="replace")
    found = _BANNER.search(data) or _BANNER.search(
        compressed.find(data, lambda inner: bool(_BANNER.search(inner))) or b""
    )
    return found[1].decode(errors="replace") if found else ""


def _check_modules(modules: Path, release: str) -> None:
    if not modules.is_dir():
        raise UserError(f"there is no folder of modules at {modules}")
    if release and modules.name != release:
        raise UserError(f"the modules in {modules} are not for this kernel, which is {release}")


def vmlinux_of(bzimage: bytes) -> bytes | None:
    """The ELF kernel inside a bzImage if it is packed with what Python can unpack and can be entered as PVH."""
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    payload = (bzimage[0x1F1] + 1) * 512 + offset
    inner = compressed.unpack(bzimage[payload : payload + length])
    return inner if inner and inner.startswith(b"\x7fELF") and _has_pvh_note(inner) else None


def _has_pvh_note(elf: bytes) -> bool:
    """XEN_ELFNOTE_PHYS32_ENTRY (18, include/xen/interface/elfnote.h) of Xen, in a note segment."""
    at, size, count = (struct.unpack_from(form, elf, place)[0] for form, place in (("<Q", 32), ("<H", 54), ("<H", 56)))
    for number in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", elf, at + number * size)
        if kind == 4 and struct.pack("<I", 18) + b"Xen\0" in elf[start : start + length]:
            return True
    return False
