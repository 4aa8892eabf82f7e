# SPDX-License-Identifier: Apache-2.0

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.vm import guest
from rtproof.vm.machine import Machine
from rtproof.vm.mailbox import GuestState

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)"),
]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """With a device for KVM that can be opened, and an emulator that never says a word."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(guest, "KVM", tmp_path)
    monkeypatch.setattr(guest, "PATIENCE_S", 0.1)
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="exec sleep 600")
    yield vm_cases.machine(tmp_path)
    guest.choose_accelerator.cache_clear()


def test_a_guest_that_hangs_or_ends_is_emulated(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtproof.vm.qemu_process.Monitor.command", lambda *_: {})
    assert guest.choose_accelerator(machine) == "tcg"
    guest.choose_accelerator.cache_clear()
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="echo no kvm >&2; exit 1")
    monkeypatch.undo()
    assert guest.choose_accelerator(replace(machine, cpus=2)) == "tcg"


def test_a_guest_that_comes_up_runs_on_the_processor(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtproof.vm.qemu_process.Monitor.command", lambda *_: {})
    monkeypatch.setattr("rtproof.vm.mailbox.Mailbox.state", GuestState.ALIVE)
    assert guest.choose_accelerator(machine) == "kvm"


def test_another_architecture_is_emulated_without_a_try(machine: Machine) -> None:
    assert guest.choose_accelerator(replace(machine, kernel=replace(machine.kernel, arch="aarch64"))) == "tcg"
