# SPDX-License-Identifier: Apache-2.0

import shutil
import subprocess
from pathlib import Path

import pytest
import vm_cases

from rtproof.agents.architectures import host_architecture
from rtproof.core.errors import UserError
from rtproof.vm import initramfs, kernel_files

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
