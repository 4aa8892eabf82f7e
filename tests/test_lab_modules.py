# SPDX-License-Identifier: Apache-2.0

import lzma
import os
import shutil
from pathlib import Path

import lab_kernels
import pytest

from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.vm.kernel_files import Kernel

RELEASE = "6.1.0-50-rt-amd64"
MAGIC = f"{RELEASE} SMP preempt_rt mod_unload"

# Stands for the kernel's own: makes what the sources ask for, in the folder that it is given.
MAKEFILE = """\
modules:
	@echo made >> $(LOG)
	@printf '\\0vermagic=%s \\0CC=%s BTF=%s\\0' '{magic}' '$(CC)' '$(CONFIG_DEBUG_INFO_BTF_MODULES)' > $(M)/rtproof.ko
	@cat $(M)/*.h $(M)/*.c >> $(M)/rtproof.ko
"""

needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


@pytest.fixture(autouse=True)
def kmod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources, compilers and a cache of its own."""
    folder = tmp_path / "kmod"
    (folder / "tests").mkdir(parents=True)
    for name in ("Kbuild", "rtproof.h", "main.c", "left.o", "tests/probe.c"):
        (folder / name).write_text(f"/* {name} */\n")
    for prefix in ("x86_64-linux-gnu-", "arm-linux-gnueabihf-"):
        script(tmp_path / "bin" / f"{prefix}gcc", "echo gcc 12")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setattr(kernel_catalogue, "_COMPILERS", ("gcc",))
    monkeypatch.setattr(kernel_catalogue, "module_sources", lambda: folder)
    return folder


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    folder = tmp_path / "lib" / "modules" / RELEASE
    folder.mkdir(parents=True)
    (folder / "loop.ko.xz").write_bytes(lzma.compress(f"\0vermagic={MAGIC} \0".encode()))
    return Kernel("x86_64", tmp_path / "vmlinuz", folder, RELEASE, "0")


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    folder = tmp_path / "headers"
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE.format(magic=MAGIC))
    for name in (".config", "Module.symvers"):
        (folder / name).touch()
    return folder


def times_made(tmp_path: Path) -> int:
    return len((tmp_path / "log").read_text().splitlines())


@needs_make
def test_a_module_is_built_once_outside_its_sources(kernel: Kernel, headers: Path, kmod: Path, tmp_path: Path) -> None:
    before = sorted(kmod.rglob("*"))
    built = kernel_catalogue.build_module(kernel, headers)
    assert kernel_catalogue.build_module(kernel, headers) == built
    assert times_made(tmp_path) == 1
    assert sorted(kmod.rglob("*")) == before
    assert sorted(path.name for path in built.parent.iterdir()) == ["files.json", "rtproof.ko"]
    assert b"CC=x86_64-linux-gnu-gcc BTF=\0" in built.read_bytes()
    assert kernel_catalogue.vermagic(built) == MAGIC


@needs_make
@pytest.mark.parametrize(
    "changed", ["kmod/main.c", "kmod/rtproof.h", "kmod/Kbuild", "headers/.config", "headers/Module.symvers"]
)
def test_a_change_of_anything_it_is_made_of_is_a_new_module(
    kernel: Kernel, headers: Path, tmp_path: Path, changed: str
) -> None:
    first = kernel_catalogue.build_module(kernel, headers)
    with (tmp_path / changed).open("a") as file:
        file.write("\n")
    assert kernel_catalogue.build_module(kernel, headers) != first


@needs_make
def test_another_compiler_makes_a_new_module(kernel: Kernel, headers: Path, tmp_path: Path) -> None:
    first = kernel_catalogue.build_module(kernel, headers)
    script(tmp_path / "bin" / "x86_64-linux-gnu-gcc", "echo gcc 13")
    assert kernel_catalogue.build_module(kernel, headers) != first


@needs_make
@pytest.mark.parametrize("changed", ["tests/probe.c", "left.o"])
def test_what_it_is_not_made_of_does_not_matter(kernel: Kernel, headers: Path, kmod: Path, changed: str) -> None:
    first = kernel_catalogue.build_module(kernel, headers)
    (kmod / changed).write_text("other")
    assert kernel_catalogue.build_module(kernel, headers) == first


@needs_make
def test_modules_of_the_tests_are_built_beside_our_headers(kernel: Kernel, headers: Path) -> None:
    (headers / "Makefile").write_text(
        f"modules:\n\t@test -f $(M)/../rtproof.h && printf '\\0vermagic={MAGIC} \\0' > $(M)/probe.ko\n"
    )
    assert kernel_catalogue.build_module(kernel, headers, "probe").name == "probe.ko"


@needs_make
@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ('echo "cc: note"; echo "$(M)/main.c:3:1: error: bad" >&2; exit 1', r"headers: main\.c:3:1: error: bad$"),
        ("exit 1", r"headers: make: \*\*\* .*modules.* Error 1"),
        ("true", r"make no rtproof\.ko$"),
        ("printf '\\0vermagic=6.2 SMP \\0' > $(M)/rtproof.ko", f"rtproof.ko is built for '6.2 SMP', .* only '{MAGIC}'"),
        ("echo none > $(M)/rtproof.ko", r"rtproof\.ko is built for ''"),
    ],
)
def test_what_cannot_be_built_is_said_and_not_kept(
    kernel: Kernel, headers: Path, tmp_path: Path, recipe: str, sentence: str
) -> None:
    (headers / "Makefile").write_text(f"modules:\n\t@{recipe}\n")
    with pytest.raises(UserError, match=sentence):
        kernel_catalogue.build_module(kernel, headers)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock" and path.is_file()] == []


def test_headers_that_are_none_are_said(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"/none/\.config cannot be read: No such file"):
        kernel_catalogue.build_module(kernel, tmp_path / "none")


@pytest.mark.parametrize(
    ("arch", "packages"),
    [
        ("x86_64", "gcc-x86-64-linux-gnu make"),
        ("aarch64", "gcc-aarch64-linux-gnu make"),
        ("armv7", "gcc-arm-linux-gnueabihf make"),
    ],
)
def test_without_a_compiler_what_to_install_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, packages: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=rf"for {arch} cannot be built here .*apt-get install {packages}\)"):
        kernel_catalogue.toolchain(arch)


def test_the_compiler_is_that_of_the_kernels_architecture() -> None:
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    found = kernel_catalogue.toolchain("armv7")
    assert (found.prefix, found.compiler, found.identity) == (
        "arm-linux-gnueabihf-",
        "arm-linux-gnueabihf-gcc",
        "gcc 12",
    )


def test_a_compressed_module_says_what_it_is_for(kernel: Kernel) -> None:
    assert kernel.modules is not None
    assert kernel_catalogue.vermagic(kernel.modules / "loop.ko.xz") == MAGIC


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
def test_our_module_is_for_debians_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    built = lab_kernels.module(name)
    assert kernel_catalogue.vermagic(built).split()[0] == kernel_catalogue.fetch_kernel(name).release
    assert built.read_bytes().startswith(b"\x7fELF")
    assert str(Path.home()).encode() not in built.read_bytes()
