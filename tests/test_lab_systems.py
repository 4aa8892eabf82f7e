# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from lab_cases import kernel

from rtproof.core.errors import UserError
from rtproof.lab.systems import NamedKernel, is_rt, models_of, open_named, systems, with_modules
from rtproof.vm.kernel_files import Kernel

OLD_RT = NamedKernel("debian-6.1-rt", kernel("6.1.0-50-rt-amd64"), catalogue=True)
NEW_RT = NamedKernel("debian-6.12-rt", kernel("6.12.95+deb12-rt-amd64"), catalogue=True)
PLAIN = NamedKernel("debian-6.1", kernel("6.1.0-50-amd64"), catalogue=True)


@pytest.fixture(autouse=True)
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("vmlinuz").write_bytes(b"an image")


def names(*kernels: NamedKernel, preempts: tuple[str, ...] = (), boots: tuple[str, ...] = ()) -> list[str]:
    return [system.name for system in systems(kernels, preempts, boots)]


def test_a_model_is_a_system_of_each_kernel_that_has_it() -> None:
    found = names(OLD_RT, NEW_RT, PLAIN, preempts=("none", "full"))
    assert found == [
        "debian-6.1-rt",
        "debian-6.12-rt preempt=full",
        "debian-6.1 preempt=none",
        "debian-6.1 preempt=full",
    ]


def test_a_kernel_without_the_model_is_booted_as_it_comes() -> None:
    assert names(NEW_RT, PLAIN, preempts=("lazy",)) == ["debian-6.12-rt preempt=lazy", "debian-6.1"]
    assert systems([NEW_RT], ["none"])[0].machine.boot == ()


@pytest.mark.parametrize(
    ("release", "models"),
    [
        ("6.1.0-50-rt-amd64", ()),
        ("6.12.95+deb12-rt-amd64", ("full", "lazy")),
        ("6.12.95+deb12-amd64", ("none", "voluntary", "full")),
        ("6.18.0", ("none", "voluntary", "full", "lazy")),
        ("", ("none", "voluntary", "full", "lazy")),
    ],
)
def test_models_follow_from_the_release(release: str, models: tuple[str, ...]) -> None:
    assert models_of(kernel(release)) == models


def test_the_banner_tells_an_rt_kernel_whatever_its_release() -> None:
    Path("vmlinuz").write_bytes(b"\0" * 600 + b"5.15.1 (me@here) #3 SMP PREEMPT_RT Fri Nov 20\0")
    assert is_rt(kernel("5.15.1"))
    Path("vmlinuz").write_bytes(b"5.15.1 (me@here) #3 SMP PREEMPT_DYNAMIC Fri\0" + b"CONFIG_PREEMPT_RT is not set")
    assert not is_rt(kernel("5.15.1"))


def test_boot_arguments_are_for_all_and_several_are_systems_of_their_own() -> None:
    (one,) = systems([PLAIN], ["none"], ["threadirqs nohz=off"])
    assert (one.name, one.machine.boot) == ("debian-6.1 preempt=none", ("preempt=none", "threadirqs", "nohz=off"))
    assert names(PLAIN, boots=("", "threadirqs")) == ["debian-6.1 no arguments", "debian-6.1 threadirqs"]


def test_images_of_one_name_are_told_apart() -> None:
    old, new = NamedKernel("bzImage", kernel("6.1.1")), NamedKernel("bzImage", kernel("6.1.2"))
    assert names(old, new) == ["bzImage 6.1.1", "bzImage 6.1.2"]
    twin = NamedKernel("bzImage", Kernel("x86_64", Path("vmlinuz"), None, "6.1.1", "another image"))
    assert names(old, twin) == ["bzImage (1)", "bzImage (2)"]


def test_the_same_system_twice_is_refused() -> None:
    with pytest.raises(UserError, match="preempt=none is asked for twice"):
        names(PLAIN, PLAIN, preempts=("none",))


def resolve(text: str, modules: Path | None) -> Kernel:
    return Kernel("x86_64", Path(text), modules, "6.1.1", "")


def test_a_name_an_image_and_an_image_with_modules() -> None:
    assert open_named("debian-6.1", resolve).catalogue
    own = open_named("./vmlinuz", resolve)
    assert (own.name, own.catalogue, own.kernel.modules) == ("vmlinuz", False, None)
    assert open_named("vmlinuz:lib/modules/6.1.1", resolve).kernel.modules == Path("lib/modules/6.1.1")


def test_a_folder_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder: give the kernel image itself"):
        open_named(str(tmp_path), resolve)


def test_our_module_goes_with_the_probe_that_needs_it() -> None:
    def own(name: str) -> Path:
        return Path(f"{name}.ko")

    image = NamedKernel("bzImage", kernel())
    given = (Path("mine.ko"),)
    assert with_modules(PLAIN, (), "timer", own).modules == ()
    assert with_modules(PLAIN, (), "kernel:x=y", own).modules == (Path("debian-6.1.ko"),)
    assert with_modules(PLAIN, given, "kernel", own).modules == given
    assert with_modules(image, (), "kernel", own).modules == ()
