# SPDX-License-Identifier: Apache-2.0

import shutil
import subprocess

import pytest

from rtproof.vm import initramfs


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
