# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: found by name, put in the order in which they load, checked against the kernel.

Names and dependencies stand in the modules themselves (section .modinfo), so no index by depmod is needed.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtproof.errors import UserError
from rtproof.vm import compressed
from rtproof.vm.kernel import Kernel

_FIELD = re.compile(rb"(?<=\0)(name|depends|vermagic)=([^\0]*)\0")
_ENDINGS = (".ko", ".ko.xz", ".ko.gz")


@dataclass(frozen=True)
class Module:
    """A module, unpacked. ``depends``: names of those that must be loaded before; ``release``: of its kernel."""

    name: str
    content: bytes
    depends: tuple[str, ...]
    release: str


def read_module(path: Path) -> Module:
    """The module in a file; UserError if that is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"the module {path} cannot be read: {error.strerror}") from error
    content = data if data.startswith(b"\x7fELF") else compressed.unpack(data)
    fields = dict(_FIELD.findall(content or b""))
    if content is None or b"vermagic" not in fields:
        raise UserError(f"{path} is no kernel module")
    name = fields.get(b"name", b"").decode() or plain_name(path.name)
    depends = tuple(plain_name(word) for word in fields.get(b"depends", b"").decode().split(",") if word)
    return Module(plain_name(name), content, depends, fields[b"vermagic"].split(b" ")[0].decode())


def plain_name(file_name: str) -> str:
    """A module's name as the kernel has it: without folder and endings, _ for -."""
    return Path(file_name).name.split(".ko")[0].replace("-", "_")


def in_order(kernel: Kernel, wanted: Sequence[str | Path]) -> list[Module]:
    """The modules to load one after the other: each after those it depends on; what is built in is left out.

    ``wanted``: names out of the kernel's folder of modules, or files. UserError for what is not there or of another
    kernel.
    """
    found: dict[str, Module] = {}
    for each in wanted:
        _add(kernel, each, found)
    for module in found.values():
        if kernel.release and module.release != kernel.release:
            raise UserError(
                f"the module {module.name} is for kernel {module.release}, and this kernel is {kernel.release}"
            )
    return list(found.values())


def _add(kernel: Kernel, wanted: str | Path, found: dict[str, Module]) -> None:
    name = plain_name(str(wanted))
    if name in found:
        return
    if isinstance(wanted, str) and name in _built_in(kernel.modules):
        return
    module = read_module(wanted if isinstance(wanted, Path) else _place(kernel, name))
    for needed in module.depends:
        _add(kernel, needed, found)
    found[module.name] = module


def has(kernel: Kernel, name: str) -> bool:
    """Whether a kernel has a module of that name, or what it does built in."""
    plain = plain_name(name)
    return kernel.modules is not None and (plain in _index(kernel.modules) or plain in _built_in(kernel.modules))


def _place(kernel: Kernel, name: str) -> Path:
    if kernel.modules is None:
        raise UserError(f"the module {name} is wanted, and the kernel came without a folder of modules")
    place = _index(kernel.modules).get(name)
    if place is None:
        raise UserError(f"there is no module {name} in {kernel.modules}")
    return place


@functools.cache
def _index(folder: Path) -> dict[str, Path]:
    return {plain_name(path.name): path for path in sorted(folder.rglob("*.ko*")) if path.name.endswith(_ENDINGS)}


@functools.cache
def _built_in(folder: Path | None) -> frozenset[str]:
    listed = folder / "modules.builtin" if folder else None
    names: Iterable[str] = listed.read_text().splitlines() if listed and listed.is_file() else ()
    return frozenset(map(plain_name, names))
