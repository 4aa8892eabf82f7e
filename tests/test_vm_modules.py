# SPDX-License-Identifier: Apache-2.0

import lzma
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import UserError
from rtproof.vm import kernel_files

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
    with pytest.raises(UserError, match="the module base is wanted, and the kernel came without"):
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
    with pytest.raises(UserError, match=r"some\.ko is no kernel module"):
        names(tmp_path, file)


def test_whether_a_kernel_has_a_module_is_asked_by_either_name(tmp_path: Path) -> None:
    kernel = vm_cases.kernel(tmp_path, TREE)
    found = {name: kernel_files.has_module(kernel, name) for name in ("left-side", "left_side", "always", "absent")}
    assert found == {"left-side": True, "left_side": True, "always": True, "absent": False}
    assert not kernel_files.has_module(vm_cases.kernel(tmp_path), "base")
