# SPDX-License-Identifier: Apache-2.0
"""Kernel images and kernel modules: read their architecture, release and dependencies from their bytes.

Modules are sorted into the order in which they load. Each module holds its own name and dependencies (section
.modinfo), so no index by depmod is needed. Compressed files are unpacked with Python's own libraries.

Sources: Documentation/arch/x86/boot.rst, arm64/booting.rst, arm/booting.rst; elf.h.
"""

import bz2
import functools
import hashlib
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rtproof.core.bounded import read_bounded
from rtproof.core.errors import UserError


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


IMAGE_BYTES, UNPACKED_BYTES = 512 << 20, 256 << 20
"""Of a file with a kernel, and of what a stream in it holds. No kernel that boots comes near."""

_DECOMPRESSORS: tuple[tuple[bytes, Callable[[], _Decompressor]], ...] = (
    (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, UNPACKED_BYTES)),
    (b"\x1f\x8b\x08", lambda: zlib.decompressobj(wbits=31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\x5d\x00\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, UNPACKED_BYTES)),
)


def unpack_stream(data: bytes) -> bytes | None:
    """The content of the compressed stream (xz, gzip, bzip2, lzma) at the start of the data.

    Bytes after the stream are left out. None if there is no such stream or it is broken.
    """
    for magic, decompressor in _DECOMPRESSORS:
        if data.startswith(magic):
            try:
                return decompressor().decompress(data, UNPACKED_BYTES)
            except (lzma.LZMAError, zlib.error, OSError, EOFError):
                return None
    return None


_ELF_MACHINES = {62: "x86_64", 183: "aarch64", 40: "armv7"}
_BANNER = re.compile(rb"Linux version (\d[^ \0%]{0,128}) ")


@dataclass(frozen=True)
class Kernel:
    """A kernel to boot. ``arch``: the agent's name of its architecture. ``release``: what ``uname -r`` prints.

    ``modules``: its folder lib/modules/RELEASE, if there is one. ``identity``: SHA-256 of the image.
    """

    arch: str
    image: Path
    modules: Path | None
    release: str
    identity: str


def open_kernel(image: Path, modules: Path | None = None) -> Kernel:
    """Read a kernel image: a bzImage, an ELF vmlinux, an arm64 Image (also compressed), or an ARM zImage.

    UserError if the file is no such image, or if the folder of modules is missing or belongs to another release.
    """
    try:
        data = read_bounded(image, IMAGE_BYTES)
    except OSError as error:
        raise UserError(f"the kernel {image} cannot be read: {error.strerror}") from error
    arch = architecture_of(data)
    if not arch:
        raise UserError(f"{image} is not a kernel image: neither bzImage, ELF vmlinux, arm64 Image nor ARM zImage")
    release = _release(data) or (modules.name if modules else "")
    if modules is not None and not modules.is_dir():
        raise UserError(f"there is no folder of modules at {modules}")
    if modules is not None and release and modules.name != release:
        raise UserError(f"the modules in {modules} are not for this kernel, which is {release}")
    return Kernel(arch, image.resolve(), modules, release, hashlib.sha256(data).hexdigest())


def architecture_of(data: bytes) -> str:
    """The agent's name of the architecture of a kernel image; "" if the data are no kernel image."""
    if data[0x202:0x206] == b"HdrS":
        return "x86_64"
    if data[0x38:0x3C] == b"ARM\x64":
        return "aarch64"
    if data[0x24:0x28] == b"\x18\x28\x6f\x01":
        return "armv7"
    if data.startswith(b"\x7fELF") and len(data) > 20:
        return _ELF_MACHINES.get(struct.unpack_from("<H", data, 18)[0], "")
    if data.startswith(b"\x1f\x8b"):
        inner = unpack_stream(data)
        return "aarch64" if inner and architecture_of(inner) == "aarch64" else ""
    return ""


def _release(data: bytes) -> str:
    """The release, from the header of a bzImage or from the banner that every kernel prints at boot.

    The banner may lie in a compressed stream of the image. "" if there is no banner.
    """
    if data[0x202:0x206] == b"HdrS":
        at = struct.unpack_from("<H", data, 0x20E)[0] + 0x200
        return data[at : at + 200].split(b"\0")[0].split(b" ")[0].decode(errors="replace")
    found = _BANNER.search(data)
    for magic, _ in _DECOMPRESSORS[:3]:  # a stream of xz, gzip or bzip2 may begin anywhere
        at = data.find(magic)
        while not found and at >= 0:
            found = _BANNER.search(unpack_stream(data[at:]) or b"")
            at = data.find(magic, at + 1)
    return found[1].decode(errors="replace") if found else ""


def vmlinux_of(bzimage: bytes) -> bytes | None:
    """The ELF kernel inside a bzImage. None if Python cannot unpack it or it has no PVH entry point.

    That is Xen's note XEN_ELFNOTE_PHYS32_ENTRY (18, include/xen/interface/elfnote.h).
    """
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    payload = (bzimage[0x1F1] + 1) * 512 + offset
    inner = unpack_stream(bzimage[payload : payload + length])
    if not inner or not inner.startswith(b"\x7fELF"):
        return None
    note = struct.pack("<I", 18) + b"Xen\0"
    notes = (inner[start : start + length] for kind, start, _, length in elf_segments(inner) if kind == PT_NOTE)
    return inner if any(note in each for each in notes) else None


PT_LOAD, PT_INTERP, PT_NOTE = 1, 3, 4
"""Kinds of segments (elf.h)."""


def elf_segments(elf: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Each segment of an ELF program: its kind, its offset in the file, its address, and its length in the file."""
    wide = elf[4:5] == b"\2"
    at = int.from_bytes(elf[32:40] if wide else elf[28:32], "little")
    size, count = (int.from_bytes(elf[place : place + 2], "little") for place in ((54, 56) if wide else (42, 44)))
    form = struct.Struct("<I4x2Q8xQ" if wide else "<3I4xI")
    for head in range(at, at + size * count, size or 1):
        if head + form.size > len(elf):
            return
        kind, offset, address, length = form.unpack_from(elf, head)
        yield kind, offset, address, length


# Kernel modules: find them by name, sort them into the order in which they load, and check that they fit the kernel.


_FIELD = re.compile(rb"(?<=\0)(name|depends|vermagic)=([^\0]*)\0")
_ENDINGS = (".ko", ".ko.xz", ".ko.gz")


@dataclass(frozen=True)
class Module:
    """An unpacked module. ``depends``: names of the modules to load before. ``release``: the kernel's release."""

    name: str
    content: bytes
    depends: tuple[str, ...]
    release: str


def read_module(path: Path) -> Module:
    """Read a module from a file. UserError if the file cannot be read or is no kernel module."""
    try:
        data = read_bounded(path, IMAGE_BYTES)
    except OSError as error:
        raise UserError(f"the module {path} cannot be read: {error.strerror}") from error
    content = data if data.startswith(b"\x7fELF") else unpack_stream(data)
    fields = dict(_FIELD.findall(content or b""))
    if content is None or b"vermagic" not in fields:
        raise UserError(f"{path} is not a kernel module")
    name = fields.get(b"name", b"").decode() or plain_name(path.name)
    depends = tuple(plain_name(word) for word in fields.get(b"depends", b"").decode().split(",") if word)
    return Module(plain_name(name), content, depends, fields[b"vermagic"].split(b" ")[0].decode())


def plain_name(file_name: str) -> str:
    """A module's name as the kernel writes it: without folder and endings, and with _ for -."""
    return Path(file_name).name.split(".ko")[0].replace("-", "_")


def in_load_order(kernel: Kernel, wanted: Sequence[str | Path]) -> list[Module]:
    """The modules in the order in which to load them: each comes after those that it depends on.

    ``wanted``: names of modules in the kernel's folder, or files. A module that is built in is left out. UserError if a
    module is missing or belongs to another kernel.
    """
    found: dict[str, Module] = {}
    for each in wanted:
        _add_module(kernel, each, found)
    for module in found.values():
        if kernel.release and module.release != kernel.release:
            raise UserError(
                f"the module {module.name} is for kernel {module.release}, and this kernel is {kernel.release}"
            )
    return list(found.values())


def _add_module(kernel: Kernel, wanted: str | Path, found: dict[str, Module]) -> None:
    name = plain_name(str(wanted))
    if name in found:
        return
    if isinstance(wanted, str) and name in _built_in(kernel.modules):
        return
    if not isinstance(wanted, Path) and kernel.modules is None:
        raise UserError(f"the module {name} is needed, but no folder of modules was given for this kernel")
    place = wanted if isinstance(wanted, Path) else _module_index(kernel.modules or Path()).get(name)
    if place is None:
        raise UserError(f"there is no module {name} in {kernel.modules}")
    module = read_module(place)
    for needed in module.depends:
        _add_module(kernel, needed, found)
    found[module.name] = module


def has_module(kernel: Kernel, name: str) -> bool:
    """Whether a kernel has a module of this name, as a file or built in."""
    plain = plain_name(name)
    return kernel.modules is not None and (plain in _module_index(kernel.modules) or plain in _built_in(kernel.modules))


@functools.cache
def _module_index(folder: Path) -> dict[str, Path]:
    return {plain_name(path.name): path for path in sorted(folder.rglob("*.ko*")) if path.name.endswith(_ENDINGS)}


@functools.cache
def _built_in(folder: Path | None) -> frozenset[str]:
    listed = folder / "modules.builtin" if folder else None
    names: Iterable[str] = listed.read_text().splitlines() if listed and listed.is_file() else ()
    return frozenset(map(plain_name, names))
