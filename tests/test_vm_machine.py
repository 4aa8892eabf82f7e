# SPDX-License-Identifier: Apache-2.0

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.vm.kernel_files import open_kernel
from rtproof.vm.machine import Machine, Mode

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch)
    return vm_cases.machine(tmp_path)


def test_the_same_machine_has_the_same_identity(machine: Machine) -> None:
    assert machine.identity == replace(machine).identity


def test_whatever_decides_the_guests_bytes_changes_the_identity(machine: Machine, tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_bytes(b"1")
    other.write_bytes(vm_cases.bzimage(b"something else"))
    variants = [
        machine,
        replace(machine, boot=("preempt=none",)),
        replace(machine, mode=Mode.WALL_CLOCK),
        replace(machine, cpus=2),
        replace(machine, memory_mib=256),
        replace(machine, files=(("/file", file),)),
        replace(machine, kernel=open_kernel(other)),
    ]
    assert len({variant.identity for variant in variants}) == len(variants)


def test_the_content_of_its_files_counts_not_their_names(machine: Machine, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"same")
    other.write_bytes(b"same")
    before = replace(machine, files=(("/file", one),)).identity
    assert replace(machine, files=(("/file", other),)).identity == before
    one.write_bytes(b"changed")
    assert replace(machine, files=(("/file", one),)).identity != before


def test_another_emulator_is_another_machine(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.identity
    vm_cases.fake_qemu(tmp_path / "newer", monkeypatch, "10.0.2")
    assert machine.identity != before
