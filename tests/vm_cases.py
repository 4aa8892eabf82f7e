# SPDX-License-Identifier: Apache-2.0
"""Small images, modules and emulators that are what they claim only at the places that are looked at."""

import os
import struct
from pathlib import Path

import pytest

from rtproof.vm.kernel_files import Kernel, open_kernel
from rtproof.vm.machine import Machine

RELEASE = "6.1.0-50-test"
BANNER = f"Linux version {RELEASE} (someone@somewhere) ".encode()
PT_NOTE = 4
PVH_ENTRY = 18


def at(place: int, *parts: tuple[int, bytes]) -> bytes:
    """Zero bytes up to a place, with parts put over them."""
    data = bytearray(place)
    for begin, part in parts:
        data[begin : begin + len(part)] = part
    return bytes(data)


def elf(machine: int = 62, content: bytes = BANNER, note: bool = True) -> bytes:
    """An ELF file with one note segment."""
    body = struct.pack("<III", 4, 8, PVH_ENTRY if note else 1) + b"Xen\0" + bytes(8)
    header = at(64, (0, b"\x7fELF\x02\x01\x01"), (18, struct.pack("<H", machine)), (32, struct.pack("<Q", 64)))
    header = at(64, (0, header), (54, struct.pack("<HH", 56, 1)))
    segment = struct.pack("<IIQQQQQQ", PT_NOTE, 0, 120, 0, 0, len(body), len(body), 4)
    return header + segment + body + content


def bzimage(packed: bytes, release: str = RELEASE) -> bytes:
    """A bzImage of one boot sector and one of setup, with the payload after them."""
    text = f"{release} (someone) #1".encode() + b"\0"
    return at(
        1024 + len(packed) + 16,
        (0x1F1, b"\x01"),
        (0x202, b"HdrS"),
        (0x20E, struct.pack("<H", 0x100)),
        (0x248, struct.pack("<II", 16, len(packed))),
        (0x300, text),
        (1040, packed),
    )


def module(name: str, depends: str = "", release: str = RELEASE) -> bytes:
    """A module, as far as its .modinfo goes."""
    fields = (f"depends={depends}", f"name={name}", f"vermagic={release} SMP mod_unload ")
    return b"\x7fELF" + b"".join(b"\0" + field.encode() for field in fields) + b"\0"


def kernel(folder: Path, modules: dict[str, bytes] | None = None) -> Kernel:
    """A kernel of ours in a folder, with files of modules by their names."""
    image = folder / "vmlinuz"
    image.write_bytes(bzimage(b"nothing"))
    place = folder / "lib" / "modules" / RELEASE
    for name, content in (modules or {}).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return open_kernel(image, place if modules else None)


def static_busybox(folder: Path) -> Path:
    """What passes for a static BusyBox until something starts it."""
    program = folder / "busybox"
    program.write_bytes(elf(note=False))
    return program


def machine(folder: Path) -> Machine:
    """A machine that cannot boot, with all that is needed to try."""
    return Machine(kernel(folder), busybox=static_busybox(folder))


def fake_qemu(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "7.2.22", then: str = "exit 0") -> Path:
    """Put a script before the emulator in PATH: it says the version, or does something else."""
    place = program(folder, says(version, then))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return place


def program(folder: Path, text: str, name: str = "qemu-system-x86_64") -> Path:
    """A script that stands for an emulator, in a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


def says(version: str, then: str = "") -> str:
    """A script that says QEMU's version, and does something else when asked anything else."""
    return f'if [ "$1" = --version ]; then echo "QEMU emulator version {version} (Test)"; exit; fi\n{then}'
