# SPDX-License-Identifier: Apache-2.0

import os
import shutil
from pathlib import Path

import lab_kernels
import pytest
from lab_cases import kernel

from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.lab.systems import NamedKernel, is_rt, models_of, open_named, systems, with_modules
from rtproof.vm.kernel_files import Kernel, read_module

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


@pytest.fixture
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
def kernel_modules(tmp_path: Path) -> Kernel:
    folder = tmp_path / "lib" / "modules" / RELEASE
    folder.mkdir(parents=True)
    return Kernel("x86_64", tmp_path / "vmlinuz", folder, RELEASE, "0")


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    folder = tmp_path / "headers"
    folder.mkdir()
    (folder / "Makefile").write_text(MAKEFILE.format(magic=MAGIC))
    for name in (".config", "Module.symvers"):
        (folder / name).touch()
    return folder


@needs_make
def test_a_module_is_built_once_outside_its_sources(
    kernel_modules: Kernel, headers: Path, kmod: Path, tmp_path: Path
) -> None:
    before = sorted(kmod.rglob("*"))
    built = kernel_catalogue.build_module(kernel_modules, headers)
    assert kernel_catalogue.build_module(kernel_modules, headers) == built
    assert len((tmp_path / "log").read_text().splitlines()) == 1
    assert sorted(kmod.rglob("*")) == before
    assert sorted(path.name for path in built.parent.iterdir()) == ["files.json", "rtproof.ko"]
    assert b"CC=x86_64-linux-gnu-gcc BTF=\0" in built.read_bytes()


MADE_OF = ("kmod/main.c", "kmod/rtproof.h", "kmod/Kbuild", "headers/.config", "headers/Module.symvers")


@needs_make
@pytest.mark.parametrize("changed", [*MADE_OF, "kmod/tests/probe.c", "kmod/left.o"])
@pytest.mark.usefixtures("kmod")
def test_a_change_of_what_it_is_made_of_is_a_new_module(
    kernel_modules: Kernel, headers: Path, tmp_path: Path, changed: str
) -> None:
    first = kernel_catalogue.build_module(kernel_modules, headers)
    with (tmp_path / changed).open("a") as file:
        file.write("\n")
    assert (kernel_catalogue.build_module(kernel_modules, headers) != first) == (changed in MADE_OF)


@pytest.fixture
def own_tree(headers: Path) -> Path:
    """A build tree of the user's own kernel, as far as it is read."""
    for name, text in (
        ("include/config/auto.conf", "CONFIG_X86_64=y\n"),
        ("include/generated/utsrelease.h", f'#define UTS_RELEASE "{RELEASE}"\n'),
    ):
        (headers / name).parent.mkdir(parents=True, exist_ok=True)
        (headers / name).write_text(text)
    return headers


@needs_make
@pytest.mark.usefixtures("kmod")
def test_a_module_for_headers_of_ones_own_is_built_each_time(own_tree: Path, tmp_path: Path) -> None:
    """A structure of the kernel may change without a trace in .config and Module.symvers."""
    built = kernel_catalogue.module_for_headers(own_tree)
    (own_tree / "Makefile").write_text(f"modules:\n\tprintf 'new\\0vermagic={MAGIC} \\0' > $(M)/rtproof.ko\n")
    assert kernel_catalogue.module_for_headers(own_tree) == built
    assert built.read_bytes().startswith(b"new")


@needs_make
@pytest.mark.usefixtures("kmod")
@pytest.mark.parametrize(
    "release", [b"", b'""', b'"../../evil"', b'"6.1\0"', b'\xff"6.1\xfe"', b'"' + b"6" * 65 + b'"', b'"6.1/x"']
)
def test_headers_of_no_release_are_refused(own_tree: Path, tmp_path: Path, release: bytes) -> None:
    (own_tree / "include/generated/utsrelease.h").write_bytes(b"#define UTS_RELEASE " + release)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"utsrelease\.h names no release of a kernel"):
        kernel_catalogue.module_for_headers(own_tree)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_pipe_among_the_headers_is_refused_and_not_waited_for(own_tree: Path) -> None:
    (own_tree / "include/config/auto.conf").unlink()
    os.mkfifo(own_tree / "include/config/auto.conf")
    with pytest.raises(UserError, match=r"auto\.conf is no file"):
        kernel_catalogue.module_for_headers(own_tree)


@needs_make
@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ('echo "cc: note"; echo "$(M)/main.c:3:1: error: bad" >&2; exit 1', r"headers: main\.c:3:1: error: bad$"),
        ("exit 1", r"headers: make: \*\*\* .*modules.* Error 1"),
        ("true", r"made no rtproof\.ko$"),
    ],
)
@pytest.mark.usefixtures("kmod")
def test_what_cannot_be_built_is_said_and_not_kept(
    kernel_modules: Kernel, headers: Path, tmp_path: Path, recipe: str, sentence: str
) -> None:
    (headers / "Makefile").write_text(f"modules:\n\t@{recipe}\n")
    with pytest.raises(UserError, match=sentence):
        kernel_catalogue.build_module(kernel_modules, headers)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock" and path.is_file()] == []


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
@pytest.mark.usefixtures("kmod")
def test_our_module_is_for_debians_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    built = lab_kernels.module(name)
    assert read_module(built).release == kernel_catalogue.fetch_kernel(name).release
    assert built.read_bytes().startswith(b"\x7fELF")
    assert str(Path.home()).encode() not in built.read_bytes()


OLD_RT = NamedKernel("debian-6.1-rt", kernel("6.1.0-50-rt-amd64"), catalogue=True)
NEW_RT = NamedKernel("debian-6.12-rt", kernel("6.12.95+deb12-rt-amd64"), catalogue=True)
PLAIN = NamedKernel("debian-6.1", kernel("6.1.0-50-amd64"), catalogue=True)


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vmlinuz").write_bytes(b"an image")


def names(*kernels: NamedKernel, preempts: tuple[str, ...] = (), boots: tuple[str, ...] = ()) -> list[str]:
    return [system.name for system in systems(kernels, preempts, boots)]


@pytest.mark.usefixtures("images")
def test_a_model_is_a_system_of_each_kernel_that_has_it() -> None:
    first, second, *others = names(OLD_RT, NEW_RT, PLAIN, preempts=("none", "full"))
    assert (first, second) == ("debian-6.1-rt", "debian-6.12-rt preempt=full")
    assert others == ["debian-6.1 preempt=none", "debian-6.1 preempt=full"]


@pytest.mark.usefixtures("images")
def test_models_follow_from_the_release() -> None:
    assert models_of(kernel("6.1.0-50-rt-amd64")) == ()
    assert models_of(kernel("6.12.95+deb12-rt-amd64")) == ("full", "lazy")
    assert models_of(kernel("6.12.95+deb12-amd64")) == ("none", "voluntary", "full")
    assert models_of(kernel("6.18.0")) == models_of(kernel("")) == ("none", "voluntary", "full", "lazy")


@pytest.mark.usefixtures("images")
def test_the_banner_tells_an_rt_kernel_whatever_its_release() -> None:
    Path("vmlinuz").write_bytes(b"\0" * 600 + b"5.15.1 (me@here) #3 SMP PREEMPT_RT Fri Nov 20\0")
    assert is_rt(kernel("5.15.1"))
    Path("vmlinuz").write_bytes(b"5.15.1 (me@here) #3 SMP PREEMPT_DYNAMIC Fri\0" + b"CONFIG_PREEMPT_RT is not set")
    assert not is_rt(kernel("5.15.1"))


@pytest.mark.usefixtures("images")
def test_boot_arguments_are_for_all_and_several_are_systems_of_their_own() -> None:
    (one,) = systems([PLAIN], ["none"], ["threadirqs nohz=off"])
    assert (one.name, one.machine.boot) == ("debian-6.1 preempt=none", ("preempt=none", "threadirqs", "nohz=off"))
    assert names(PLAIN, boots=("", "threadirqs")) == ["debian-6.1 no arguments", "debian-6.1 threadirqs"]


@pytest.mark.usefixtures("images")
def test_images_of_one_name_are_told_apart() -> None:
    old, new = NamedKernel("bzImage", kernel("6.1.1")), NamedKernel("bzImage", kernel("6.1.2"))
    assert names(old, new) == ["bzImage 6.1.1", "bzImage 6.1.2"]
    twin = NamedKernel("bzImage", Kernel("x86_64", Path("vmlinuz"), None, "6.1.1", "another image"))
    assert names(old, twin) == ["bzImage (1)", "bzImage (2)"]


def resolve(text: str, modules: Path | None) -> Kernel:
    return Kernel("x86_64", Path(text), modules, "6.1.1", "")


@pytest.mark.usefixtures("images")
def test_a_name_an_image_and_an_image_with_modules() -> None:
    assert open_named("debian-6.1", resolve).catalogue
    own = open_named("./vmlinuz", resolve)
    assert (own.name, own.catalogue, own.kernel.modules) == ("vmlinuz", False, None)
    assert open_named("vmlinuz:lib/modules/6.1.1", resolve).kernel.modules == Path("lib/modules/6.1.1")


@pytest.mark.usefixtures("images")
def test_our_module_goes_with_the_probe_that_needs_it() -> None:
    def own(name: str) -> Path:
        return Path(f"{name}.ko")

    image = NamedKernel("bzImage", kernel())
    given = (Path("mine.ko"),)
    assert with_modules(PLAIN, (), "timer", own).modules == ()
    assert with_modules(PLAIN, (), "kernel:x=y", own).modules == (Path("debian-6.1.ko"),)
    assert with_modules(PLAIN, given, "kernel", own).modules == given
    assert with_modules(image, (), "kernel", own).modules == ()
