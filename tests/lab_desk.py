# SPDX-License-Identifier: Apache-2.0
"""The commands of the lab with everything below them but QEMU: kernels and guests are fakes of lab_cases."""

import os
from collections.abc import Mapping
from pathlib import Path

import lab_cases
import pytest

from rtproof.core.errors import UserError
from rtproof.lab import guest_cell, kernel_catalogue, systems, verify_inputs
from rtproof.lab.guest_cell import CellCost, GuestCell
from rtproof.record import run_folder
from rtproof.vm.kernel_files import Kernel

LOADS = ("mmap", "dd", "fails", "invalid", "cpu", "net", "timers")
AGENT = "#!/bin/sh\nprintf 'load\\t%s\\thelp\\n' " + " ".join(LOADS) + "\n"


def resolve(text: str, modules: Path | None = None, say: object = None) -> Kernel:
    """A catalogue that has everything that begins with debian-."""
    if not text.startswith("debian-") and not Path(text).exists():
        raise UserError(
            f"{text!r} is neither a file nor the name of a kernel; the names are: debian-6.1-rt, debian-6.1"
        )
    release = "6.12.0" if "6.12" in text else "6.1.0"
    return lab_cases.kernel(release + ("-rt-amd64" if "rt" in text else "-amd64"), Path("vmlinuz"))


def module(name: str, say: object = None) -> Path:
    return Path(f"{name}.ko")


def measure(infos: Mapping[str, run_folder.RunInfo], cell: GuestCell, folder: Path) -> CellCost:
    run_folder.write_run_info(folder, infos["x86_64"])
    return lab_cases.fill(cell, folder)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a cache of its own, an agent that knows loads, and an image."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    Path("vmlinuz").write_bytes(b"an image")
    monkeypatch.setattr("rtproof.experiment.guest_runner.build_guest_agent", lambda arch="": agent)
    monkeypatch.setattr(kernel_catalogue, "resolve_kernel", resolve)
    monkeypatch.setattr(kernel_catalogue, "module_for_kernel", module)
    monkeypatch.setattr(systems, "Machine", lab_cases.FakeMachine)
    monkeypatch.setattr(guest_cell, "boot_guest", lab_cases.boot)
    monkeypatch.setattr(guest_cell, "measure_guest_cell", measure)
    monkeypatch.setattr("rtproof.experiment.guest_runner.emulator_version", lambda machine: "QEMU emulator version 7.2")
    assert os.access(agent, os.X_OK)
    return tmp_path


@pytest.fixture
def verifying(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The desk on a machine that has what its results are made from."""
    monkeypatch.setattr(verify_inputs, "Machine", lab_cases.FakeMachine)
    monkeypatch.setattr(verify_inputs, "emulator_version", lambda machine: "QEMU emulator version 7.2")
    monkeypatch.setattr(verify_inputs, "build_guest_agent", lambda arch: desk / "agent")
    monkeypatch.setattr(kernel_catalogue, "exact_name", lambda name, kernel: f"{name.partition('@')[0]}@6.1.192-2")
    monkeypatch.setattr(kernel_catalogue, "opened_kernel", lambda entry: lab_cases.kernel("6.1.0-amd64"))
    return desk


def assert_refused(capsys: pytest.CaptureFixture[str], sentence: str) -> None:
    """Nothing but one sentence, which begins like this."""
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"rtproof: {sentence}")
