# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import TargetError, UserError
from rtproof.vm.machine import Mode, emulator_path, emulator_version, qemu_arguments, refuse_starving


def test_a_missing_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError, match=r"qemu-system-x86_64, .*Debian: apt-get install qemu-system-x86\)"):
        emulator_path(vm_cases.machine(tmp_path))


@pytest.mark.parametrize("version", ["6.1.0", "5.2.0", "2.12"])
def test_too_old_an_emulator_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    with pytest.raises(TargetError, match=rf"is version {version[:3]}\S*; the lab needs QEMU 6.2 or newer"):
        emulator_path(vm_cases.machine(tmp_path))


def test_what_says_no_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch).write_text("#!/bin/sh\necho nothing\n")
    with pytest.raises(TargetError, match="is 'nothing'; the lab needs QEMU"):
        emulator_path(vm_cases.machine(tmp_path))


@pytest.mark.parametrize("version", ["6.2.0", "7.2.22", "10.0.2"])
def test_newer_emulators_are_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    assert emulator_path(vm_cases.machine(tmp_path)) == str(program)
    assert emulator_version(vm_cases.machine(tmp_path)) == f"QEMU emulator version {version} (Test)"


def test_the_command_line_of_virtual_time_has_nothing_of_this_host(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), boot=("preempt=none",), memory_mib=256)
    said = " ".join(qemu_arguments(machine, Path("kernel"), "tcg"))
    assert "-M pc -accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2024-01-01T00:00:00,clock=vm" in said
    assert "-seed 1 -smp 1 -m 256 -kernel kernel -initrd initrd" in said
    assert "-append console=ttyS0 quiet nokaslr panic=-1 " in said
    assert " preempt=none -chardev" in said
    assert "-nodefaults -no-user-config -display none -nic none -no-reboot" in said


@pytest.mark.parametrize(
    ("accelerator", "words"), [("tcg", "-accel tcg,thread=multi"), ("kvm", "-cpu host -accel kvm")]
)
def test_in_wall_clock_time_the_clock_is_the_hosts(accelerator: str, words: str, tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), mode=Mode.WALL_CLOCK)
    said = " ".join(qemu_arguments(machine, Path("kernel"), accelerator))
    assert words in said
    assert "icount" not in said
    assert "-rtc" not in said


@pytest.mark.parametrize(
    ("arch", "words"),
    [("aarch64", "-M virt -cpu cortex-a53"), ("armv7", "-M virt,highmem=off -cpu cortex-a15")],
)
def test_arm_has_boards_of_its_own(arch: str, words: str, tmp_path: Path) -> None:
    machine = vm_cases.machine(tmp_path)
    said = " ".join(qemu_arguments(replace(machine, kernel=replace(machine.kernel, arch=arch)), Path("k"), "tcg"))
    assert words in said
    assert "console=ttyAMA0" in said


@pytest.mark.parametrize("version", ["6.2.0", "7.2.22", "8.0.5"])
def test_several_processors_in_virtual_time_are_refused_where_only_one_would_run(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    machine = replace(vm_cases.machine(tmp_path), cpus=2)
    sentence = rf"cpus=2 cannot be had in virtual time with QEMU {version[:3]}, .*: take cpus=1, or QEMU 8.1 or newer"
    with pytest.raises(UserError, match=sentence):
        refuse_starving(machine)
    refuse_starving(replace(machine, mode=Mode.WALL_CLOCK))
    refuse_starving(replace(machine, cpus=1))


@pytest.mark.parametrize("version", ["8.1.0", "10.0.2", "11.1.3"])
def test_several_processors_are_let_run_where_they_take_turns(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    refuse_starving(replace(vm_cases.machine(tmp_path), cpus=4))
