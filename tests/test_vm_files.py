# SPDX-License-Identifier: Apache-2.0

import bz2
import gzip
import hashlib
import io
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import vm_cases

from rtproof.agents.architectures import host_architecture
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


def test_what_is_built_in_needs_no_loading(tmp_path: Path) -> None:
    assert names(tmp_path, "always", "base") == ["base"]


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no module nonesuch in"):
        names(tmp_path, "nonesuch")


def test_names_need_a_folder_of_modules(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the module base is needed, but no folder of modules"):
        kernel_files.in_load_order(vm_cases.kernel(tmp_path), ["base"])


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


def test_whether_a_kernel_has_a_module_is_asked_by_either_name(tmp_path: Path) -> None:
    kernel = vm_cases.kernel(tmp_path, TREE)
    found = {name: kernel_files.has_module(kernel, name) for name in ("left-side", "left_side", "always", "absent")}
    assert found == {"left-side": True, "left_side": True, "always": True, "absent": False}
    assert not kernel_files.has_module(vm_cases.kernel(tmp_path), "base")


def test_a_file_is_a_member_and_then_comes_the_trailer() -> None:
    head = "070701" + "".join(f"{n:08x}" for n in (1, 0o100644, 0, 0, 1, 0, 3, 0, 0, 0, 0, 2, 0))
    trailer = "070701" + "".join(f"{n:08x}" for n in (0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11, 0))
    assert initramfs.cpio_archive([initramfs.cpio_file("a", b"abc")]) == (
        head.encode() + b"a\0abc\0" + trailer.encode() + b"TRAILER!!!\0\0\0\0"
    )


def test_the_order_of_the_entries_does_not_matter() -> None:
    entries = [
        initramfs.cpio_file("b/c", b"1"),
        initramfs.cpio_file("a", b"2"),
        initramfs.cpio_file("/b/d", b"3", executable=True),
    ]
    assert initramfs.cpio_archive(entries) == initramfs.cpio_archive(entries[::-1])


def test_of_two_files_at_a_place_the_last_counts() -> None:
    assert initramfs.cpio_archive(
        [initramfs.cpio_file("a", b"1"), initramfs.cpio_file("a", b"2")]
    ) == initramfs.cpio_archive([initramfs.cpio_file("a", b"2")])


@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_the_program_cpio_reads_it_folders_first() -> None:
    packed = initramfs.cpio_archive(
        [initramfs.cpio_file("x/y/z", b"content", executable=True), initramfs.cpio_file("a", b"")]
    )
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=packed, capture_output=True, check=True).stdout.decode()
    assert [(line.split()[0], line.split()[-1]) for line in listed.splitlines()] == [
        ("-rw-r--r--", "a"),
        ("drwxr-xr-x", "x"),
        ("drwxr-xr-x", "x/y"),
        ("-rwxr-xr-x", "x/y/z"),
    ]


needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")


def test_a_program_with_an_interpreter_is_not_static() -> None:
    wide = vm_cases.elf(note=False)
    assert initramfs.is_static(wide)
    assert not initramfs.is_static(wide[:64] + b"\x03" + wide[65:])
    assert not initramfs.is_static(b"#!/bin/sh\n")


def test_the_labs_own_busybox_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own = tmp_path / "rtproof" / "lab" / "busybox" / "aarch64"
    own.mkdir(parents=True)
    busybox = vm_cases.static_busybox(own)
    assert initramfs.find_busybox("aarch64") == busybox


def test_without_a_busybox_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"a guest for armv7 needs a static BusyBox.*rtproof lab kernels"):
        initramfs.find_busybox("armv7")


@needs_compiler
@pytest.mark.skipif(not shutil.which("cpio"), reason="cpio is not installed")
def test_it_has_all_that_the_guest_needs(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"x")
    program.chmod(0o755)
    loaded = kernel_files.in_load_order(vm_cases.kernel(tmp_path, {"one.ko": vm_cases.module("one")}), ["one"])
    packed = initramfs.build_initramfs(
        host_architecture().name, vm_cases.static_busybox(tmp_path), loaded, [("/lab/program", program)]
    )
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=packed, capture_output=True, check=True).stdout.decode()
    assert [(line.split()[0], line.split()[-1]) for line in listed.splitlines() if not line.startswith("d")] == [
        ("-rwxr-xr-x", "init"),
        ("-rwxr-xr-x", "lab/program"),
        ("-rwxr-xr-x", "rtproof/busybox"),
        ("-rwxr-xr-x", "rtproof/guest"),
        ("-rw-r--r--", "rtproof/modules/000-one.ko"),
    ]


@needs_compiler
def test_the_helper_is_static_and_says_what_it_misses_outside_of_a_guest() -> None:
    helper = initramfs.build_helper(host_architecture().name)
    assert initramfs.is_static(helper.read_bytes())
    said = subprocess.run([helper, "settle"], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr == "rtproof-guest: this kernel shows no PCI device 1af4:1110\n"


TEXT = b"content " * 100
STREAMS = {
    "xz": lzma.compress(TEXT),
    "xz for x86": lzma.compress(
        TEXT,
        check=lzma.CHECK_CRC32,
        filters=[{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}],
    ),
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
}


@pytest.mark.parametrize("packed", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_is_unpacked_and_what_follows_it_is_left_out(packed: bytes) -> None:
    assert kernel_files.unpack_stream(packed + b"\x01\x02\x03\x04") == TEXT


@pytest.mark.parametrize("data", [b"", b"something", b"\xfd7zXZ\x00broken....", b"\x1f\x8b\x08\xff\xff\xff"])
def test_what_is_no_stream_gives_nothing(data: bytes) -> None:
    assert not kernel_files.unpack_stream(data)


def test_the_first_stream_with_the_wanted_content_is_found() -> None:
    other, wanted = gzip.compress(b"other"), lzma.compress(b"wanted")
    data = b"head" + other + b"between" + wanted + b"end"
    assert kernel_files.find_stream(data, lambda content: content == b"wanted") == b"wanted"
    assert kernel_files.find_stream(data, lambda content: content == b"absent") is None


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


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent for the guest cannot be read"):
        guest.pack_job(Job("", (("/x", tmp_path / "absent"),)))


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


def test_a_broken_archive_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be unpacked"):
        guest.unpack_results(b"\x01" * 2048, tmp_path)
