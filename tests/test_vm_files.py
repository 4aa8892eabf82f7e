# SPDX-License-Identifier: Apache-2.0

import gzip
import hashlib
import io
import lzma
import tarfile
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import TargetError, UserError
from rtproof.vm import guest, initramfs, kernel_files
from rtproof.vm.guest import Job
from rtproof.vm.kernel_files import open_kernel, vmlinux_of

TREE = {
    "kernel/net/top.ko.xz": lzma.compress(vm_cases.module("top", "left-side,right")),
    "kernel/net/left-side.ko": vm_cases.module("left_side", "base"),
    "kernel/net/right.ko": vm_cases.module("right", "base"),
    "kernel/lib/base.ko": vm_cases.module("base"),
    "modules.builtin": b"kernel/drivers/char/always.ko\n",
}


def names(folder: Path, *wanted: str | Path) -> list[str]:
    return [module.name for module in kernel_files.in_load_order(vm_cases.kernel(folder, TREE), wanted)]


def test_each_module_comes_once_and_after_those_it_needs(tmp_path: Path) -> None:
    assert names(tmp_path, "right", "top") == ["base", "right", "left_side", "top"]


def test_a_file_brings_what_it_needs_from_the_folder(tmp_path: Path) -> None:
    own = tmp_path / "own.ko"
    own.write_bytes(vm_cases.module("own", "base"))
    assert names(tmp_path, own) == ["base", "own"]


def test_a_name_may_have_either_dash_and_a_packed_module_is_unpacked(tmp_path: Path) -> None:
    (_, left) = kernel_files.in_load_order(vm_cases.kernel(tmp_path, TREE), ["left-side"])
    assert left.content == TREE["kernel/net/left-side.ko"]


def test_a_module_for_another_kernel_is_refused_before_anything_boots(tmp_path: Path) -> None:
    other = tmp_path / "other.ko"
    other.write_bytes(vm_cases.module("other", release="5.10.0"))
    with pytest.raises(UserError, match=rf"other is for kernel 5.10.0, and this kernel is {vm_cases.RELEASE}"):
        names(tmp_path, other)


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF and no more", b"\xfd7zXZ\x00broken"])
def test_a_file_that_is_no_module_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "some.ko"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"some\.ko is not a kernel module"):
        names(tmp_path, file)


def test_a_file_is_a_member_and_then_comes_the_trailer() -> None:
    head = "070701" + "".join(f"{n:08x}" for n in (1, 0o100644, 0, 0, 1, 0, 3, 0, 0, 0, 0, 2, 0))
    trailer = "070701" + "".join(f"{n:08x}" for n in (0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11, 0))
    assert initramfs.cpio_archive([initramfs.cpio_file("a", b"abc")]) == (
        head.encode() + b"a\0abc\0" + trailer.encode() + b"TRAILER!!!\0\0\0\0"
    )


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
    with pytest.raises(UserError, match="is not a kernel image: neither bzImage"):
        open_kernel(path)


def test_the_kernel_inside_a_bzimage_is_found_if_it_can_be_entered() -> None:
    inside = vm_cases.elf()
    assert vmlinux_of(vm_cases.bzimage(lzma.compress(inside) + b"size")) == inside
    assert vmlinux_of(vm_cases.bzimage(lzma.compress(vm_cases.elf(note=False)))) is None
    assert vmlinux_of(vm_cases.bzimage(b"\x28\xb5\x2f\xfd which Python does not unpack")) is None


def archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    return packed.getvalue()


def test_a_job_is_its_script_and_its_files_and_always_the_same_bytes(tmp_path: Path) -> None:
    program, text = tmp_path / "program", tmp_path / "text"
    program.write_bytes(b"1")
    program.chmod(0o755)
    text.write_bytes(b"2")
    packed = guest.pack_job(Job("echo", (("/lab/text", text), ("/lab/program", program))))
    text.touch()
    assert packed == guest.pack_job(Job("echo", (("/lab/program", program), ("/lab/text", text))))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert [(m.name, m.mode, m.mtime) for m in tar] == [
            ("rtproof/job.sh", 0o755, 0),
            ("lab/program", 0o755, 0),
            ("lab/text", 0o644, 0),
        ]


def test_results_are_written_below_the_folder_and_over_nothing(tmp_path: Path) -> None:
    guest.unpack_results(archive("./a", "./b/c"), tmp_path)
    assert (tmp_path / "b" / "c").read_bytes() == b"abc"
    with pytest.raises(UserError, match="exists already"):
        guest.unpack_results(archive("./a"), tmp_path)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "b/../../a"])
def test_results_outside_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="outside of their folder"):
        guest.unpack_results(archive(name), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
