# SPDX-License-Identifier: Apache-2.0

import gzip
import hashlib
import lzma
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import UserError
from rtproof.vm.kernel_files import open_kernel, vmlinux_of

ARM64 = vm_cases.at(0x40, (0x38, b"ARM\x64")) + b"\0" + vm_cases.BANNER
ARM = vm_cases.at(0x28, (0x24, b"\x18\x28\x6f\x01")) + lzma.compress(vm_cases.BANNER)
IMAGES = {
    "bzImage": (vm_cases.bzimage(b"nothing"), "x86_64"),
    "vmlinux": (vm_cases.elf(), "x86_64"),
    "vmlinux for arm64": (vm_cases.elf(machine=183), "aarch64"),
    "arm64 Image": (ARM64, "aarch64"),
    "arm64 Image.gz": (gzip.compress(ARM64), "aarch64"),
    "ARM zImage": (ARM, "armv7"),
}


@pytest.mark.parametrize(("image", "arch"), IMAGES.values(), ids=IMAGES.keys())
def test_an_image_says_its_architecture_and_release(image: bytes, arch: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(image)
    kernel = open_kernel(path)
    assert (kernel.arch, kernel.release) == (arch, vm_cases.RELEASE)
    assert kernel.identity == hashlib.sha256(image).hexdigest()


@pytest.mark.parametrize(
    "data",
    [b"", b"#!/bin/sh\n", gzip.compress(b"text"), vm_cases.elf(machine=8), bytes(2048)],
    ids=["empty", "script", "packed text", "for MIPS", "zeros"],
)
def test_what_is_no_kernel_is_refused_in_a_sentence(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    with pytest.raises(UserError, match="is no kernel image: neither bzImage"):
        open_kernel(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        open_kernel(tmp_path / "absent")


def test_a_folder_of_modules_must_be_there_and_be_of_this_kernel(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(vm_cases.elf())
    with pytest.raises(UserError, match="there is no folder of modules"):
        open_kernel(image, tmp_path / "absent")
    (tmp_path / "5.10.0").mkdir()
    with pytest.raises(UserError, match=rf"not for this kernel, which is {vm_cases.RELEASE}"):
        open_kernel(image, tmp_path / "5.10.0")


def test_the_kernel_inside_a_bzimage_is_found_if_it_can_be_entered() -> None:
    inside = vm_cases.elf()
    assert vmlinux_of(vm_cases.bzimage(lzma.compress(inside) + b"size")) == inside
    assert vmlinux_of(vm_cases.bzimage(lzma.compress(vm_cases.elf(note=False)))) is None
    assert vmlinux_of(vm_cases.bzimage(b"\x28\xb5\x2f\xfd which Python does not unpack")) is None
