# SPDX-License-Identifier: Apache-2.0

import lzma
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import UserError
from rtproof.vm.kernel_files import open_kernel
from rtproof.vm.machine import ARCHES, arch_of


def test_a_bzimage_is_booted_as_what_is_inside_and_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image = tmp_path / "vmlinuz"
    image.write_bytes(vm_cases.bzimage(lzma.compress(vm_cases.elf())))
    kernel = open_kernel(image)
    inside = arch_of(kernel).bootable(kernel)
    assert inside.read_bytes() == vm_cases.elf()
    image.unlink()
    assert arch_of(kernel).bootable(kernel) == inside


@pytest.mark.parametrize("image", [vm_cases.bzimage(b"packed otherwise"), vm_cases.elf()])
def test_what_cannot_be_unpacked_is_booted_as_it_is(
    image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "image"
    path.write_bytes(image)
    kernel = open_kernel(path)
    assert arch_of(kernel).bootable(kernel) == path


def test_every_class_is_complete() -> None:
    for name, arch in ARCHES.items():
        assert arch.name == name
        assert arch.qemu.startswith("qemu-system-")
        assert arch.package.startswith("qemu-system-")
        assert arch.board


def test_other_architectures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot boot kernels for riscv64, only for x86_64, aarch64, armv7"):
        arch_of(replace(vm_cases.kernel(tmp_path), arch="riscv64"))
